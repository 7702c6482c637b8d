"""Two tool lists: added, removed, reordered, redefined, with JSON pointers into each changed definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from dsh_audit.checks.volatile import Kind, volatile_kinds
from dsh_audit.difference.requests import Change
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer

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


_KINDS = {"only-captured": "added", "only-replayed": "removed", "changed": "changed"}


def tools_change(changes: Iterable[Change]) -> ToolsChange:
    """The tools among the changes of a request."""
    names: dict[str, list[str]] = {"added": [], "removed": [], "moved": [], "changed": []}
    pointers: list[ToolPointer] = []
    kinds: list[tuple[Kind, ...]] = []
    for change in changes:
        if change.part != "tool":
            continue
        names["changed" if change.kind == "respelled" else change.kind] += change.names
        if change.before is not None and change.after is not None:
            texts = (ecma.stringify_text(side.load()) for side in (change.before, change.after) if side.load)
            kinds.append(tuple(kind for kind in volatile_kinds(*texts) if kind != "growth"))
            pointers += _pointers(change)
    volatile = tuple(dict.fromkeys(kind for found in kinds for kind in found)) if all(kinds) else ()
    added, removed, moved, changed = map(tuple, names.values())
    return ToolsChange(added, removed, moved, changed, tuple(pointers[:MAX_POINTERS]), volatile)


def _pointers(change: Change) -> Iterator[ToolPointer]:
    assert change.after is not None
    depth, name = len(change.after.path), change.names[0]
    if change.kind == "respelled":
        yield ToolPointer(name, join_pointer(change.path[2:]), "key-order")
    for place in change.places:
        yield ToolPointer(name, join_pointer(place.path[depth:]), _KINDS[place.kind], place.replayed, place.captured)
