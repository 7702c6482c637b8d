"""Two tool lists: added, removed, reordered, redefined, with JSON pointers into each changed definition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from dsh_audit.checks.volatile import Kind, volatile_kinds
from dsh_audit.events import Json
from dsh_audit.text import ecma

MAX_POINTERS = 20


@dataclass(frozen=True, slots=True)
class ToolPointer:
    """One place where a tool's definition differs.

    Args:
        tool: its name.
        pointer: JSON pointer inside the definition; empty for the whole.
        kind: ``added``, ``removed``, ``changed`` or ``key-order``.
        before, after: start of the JSON text of either side; None when absent.
    """

    tool: str
    pointer: str
    kind: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ToolsChange:
    """How one tool list became another; all members are names.

    Args:
        added, removed: in the order of the list that has them.
        reordered: tools that stand in another order relative to the others that stayed.
        changed: tools of the same name whose printed definition differs.
        pointers: where the definitions differ.
        volatile: kinds of self-changing content that explain every changed definition.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reordered: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    pointers: tuple[ToolPointer, ...] = field(default=())
    volatile: tuple[Kind, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.reordered or self.changed)


def diff_tools(before: Sequence[Json], after: Sequence[Json]) -> ToolsChange:
    """Compare two tool lists; linear but for the sort of what moved."""
    old, new = _keyed(before), _keyed(after)
    stayed = [key for key in new if key in old]
    changed = [key for key in stayed if not _same_text(old[key], new[key])]
    pointers: list[ToolPointer] = []
    kinds: list[Kind] = []
    explained = bool(changed)
    for key in changed:
        one, two = ecma.stringify_text(old[key]), ecma.stringify_text(new[key])
        found = volatile_kinds(one, two)
        kinds += [kind for kind in found if kind != "growth"]
        explained = explained and bool(found) and found != ("growth",)
        pointers += _pointers(key[0], old[key], new[key])
    return ToolsChange(
        added=tuple(key[0] for key in new if key not in old),
        removed=tuple(key[0] for key in old if key not in new),
        reordered=tuple(key[0] for key in _moved(old, stayed)),
        changed=tuple(key[0] for key in changed),
        pointers=tuple(pointers[:MAX_POINTERS]),
        volatile=tuple(dict.fromkeys(kinds)) if explained else (),
    )


_Key = tuple[str, int]
"""Name of a tool and how many of that name stand before it."""


def _keyed(tools: Sequence[Json]) -> dict[_Key, Json]:
    keyed: dict[_Key, Json] = {}
    counts: dict[str, int] = {}
    for tool in tools:
        name = str(tool.get("name", "")) if isinstance(tool, dict) else ""
        keyed[name, counts.get(name, 0)] = tool
        counts[name] = counts.get(name, 0) + 1
    return keyed


def _same_text(one: Json, two: Json) -> bool:
    return one is two or ecma.stringify(one) == ecma.stringify(two)


def _moved(old: dict[_Key, Json], stayed: list[_Key]) -> list[_Key]:
    """The fewest tools that must move to get the new order: those outside a longest increasing run."""
    places = {key: index for index, key in enumerate(old)}
    order = [places[key] for key in stayed]
    tails: list[int] = []
    tail_at: list[int] = []
    previous: list[int] = []
    for index, value in enumerate(order):
        at = bisect_left(tails, value)
        previous.append(tail_at[at - 1] if at else -1)
        tails[at : at + 1] = [value]
        tail_at[at : at + 1] = [index]
    kept: set[int] = set()
    index = tail_at[-1] if tail_at else -1
    while index >= 0:
        kept.add(index)
        index = previous[index]
    return [key for index, key in enumerate(stayed) if index not in kept]


def _pointers(name: str, before: Json, after: Json) -> list[ToolPointer]:
    # Imported here: the comparison pulls in a large package that most runs never need.
    from dsh_audit.text.value_diff import find_changes, first_key_order_difference

    kinds = {"only-captured": "added", "only-replayed": "removed", "changed": "changed"}
    found = [
        ToolPointer(name, change.pointer, kinds[change.kind], change.replayed, change.captured)
        for change in find_changes(after, before, limit=MAX_POINTERS)
    ]
    if not found:
        pointer = first_key_order_difference(after, before)
        found = [ToolPointer(name, pointer or "", "key-order")]
    return found
