"""What differs between two JSON values, bounded in number, size and time.

The values are walked side by side down to the first places that differ; only small pairs found there are
given to DeepDiff, which is slow on large ones and blind to key order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Literal, TypeAlias

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.alignment import common_items
from dsh_audit.text.pointer import common_start, join_pointer

MAX_CHANGES = 8
MAX_EXCERPT = 120

_MAX_NODES = 200
_MAX_DEPTH = 20
_MAX_TEXT = 4000
_TRIM_DEPTH = 32

ChangeKind: TypeAlias = Literal["changed", "only-captured", "only-replayed"]

_Path: TypeAlias = tuple[Any, ...]
"""Linked from the inside out: () or (outer path, name or index)."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One place where two values differ.

    Args:
        path: names and indices, in the captured value, or in the replayed one for ``only-replayed``.
        captured: start of its JSON text, or the text around the first differing character; None when absent.
        replayed: the same of the other side.
        what: what was done to which part of a request, where the values are requests.
    """

    kind: ChangeKind
    path: tuple[str | int, ...]
    captured: str | None
    replayed: str | None
    what: str = ""

    JSON: ClassVar = "kind pointer captured replayed what"

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer."""
        return join_pointer(self.path)


def find_changes(captured: Json, replayed: Json, *, limit: int = MAX_CHANGES) -> tuple[ValueChange, ...]:
    """The first differences in the order of the captured value; empty when only key order differs."""
    changes: list[ValueChange] = []
    todo: list[tuple[_Path, int, Json, Json]] = [((), 0, captured, replayed)]
    while todo and len(changes) < limit:
        path, depth, left, right = todo.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                changes.extend(islice(_member_changes(path, left, right), limit))
            pairs = [(name, value, right[name]) for name, value in left.items() if name in right]
        elif isinstance(left, list) and isinstance(right, list):
            is_trimmed = len(left) != len(right) and depth < _TRIM_DEPTH
            start, end = common_items(left, right, ecma.same_json) if is_trimmed else (0, 0)
            if len(left) != len(right):
                changes.extend(islice(_item_changes(path, start, end, left, right), limit))
                continue
            pairs = [(index, value, right[index]) for index, value in enumerate(left)]
        else:
            if not ecma.same_json(left, right):
                changes.append(_change("changed", path, left, right))
            continue
        todo.extend(((path, name), depth + 1, one, other) for name, one, other in reversed(pairs))
    return tuple(changes[:limit])


def first_key_order_difference(captured: Json, replayed: Json) -> tuple[str | int, ...] | None:
    """The path of the first object, in order of the captured value, whose names stand in another order."""
    todo: list[tuple[_Path, Json, Json]] = [((), captured, replayed)]
    while todo:
        path, left, right = todo.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if list(left) != list(right):
                return _flat(path)
            todo.extend(((path, name), value, right[name]) for name, value in reversed(left.items()))
        elif isinstance(left, list) and isinstance(right, list):
            pairs = list(enumerate(zip(left, right, strict=False)))
            todo.extend(((path, index), one, other) for index, (one, other) in reversed(pairs))
    return None


def _member_changes(path: _Path, left: dict[str, Json], right: dict[str, Json]) -> Iterator[ValueChange]:
    for name in left:
        if name not in right:
            yield ValueChange("only-captured", _flat((path, name)), excerpt(left[name]), None)
    for name in right:
        if name not in left:
            yield ValueChange("only-replayed", _flat((path, name)), None, excerpt(right[name]))


def _item_changes(
    path: _Path, start: int, end: int, left: list[Json], right: list[Json]
) -> Iterator[ValueChange]:
    """Differences of two lists of unequal length, given what was trimmed."""
    middle = left[start : len(left) - end], right[start : len(right) - end]
    if all(middle) and _is_small(middle):
        yield from sorted(_deep_diff(path, start, *middle), key=_order)  # DeepDiff gives hash order
        return
    for index in range(start, start + min(map(len, middle))):
        yield _change("changed", (path, index), left[index], right[index])
    for index in range(start + len(middle[1]), len(left) - end):
        yield ValueChange("only-captured", _flat((path, index)), excerpt(left[index]), None)
    for index in range(start + len(middle[0]), len(right) - end):
        yield ValueChange("only-replayed", _flat((path, index)), None, excerpt(right[index]))


def _deep_diff(path: _Path, start: int, left: list[Json], right: list[Json]) -> Iterator[ValueChange]:
    from deepdiff import DeepDiff  # its import takes longer than most commands

    tree = DeepDiff(right, left, view="tree", ignore_numeric_type_changes=True)
    for group, levels in tree.items():
        for level in levels:
            index, *rest = level.path(output_format="list")
            at: _Path = (path, index + start)
            for token in rest:
                at = (at, token)
            if group.endswith("_added"):
                yield ValueChange("only-captured", _flat(at), excerpt(level.t2), None)
            elif group.endswith("_removed"):
                yield ValueChange("only-replayed", _flat(at), None, excerpt(level.t1))
            else:
                yield _change("changed", at, level.t2, level.t1)


def _order(change: ValueChange) -> tuple[list[tuple[bool, int, str]], str]:
    """By path, indices as numbers."""
    places = [(isinstance(t, str), t if isinstance(t, int) else 0, str(t)) for t in change.path]
    return places, change.kind


def _is_small(value: Json) -> bool:
    nodes, text = 0, 0
    todo: list[tuple[int, Json]] = [(0, value)]
    while todo:
        depth, item = todo.pop()
        nodes += 1
        text += len(item) if isinstance(item, str) else 0
        if nodes > _MAX_NODES or depth > _MAX_DEPTH or text > _MAX_TEXT:
            return False
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
        if len(children) > _MAX_NODES:
            return False
        todo.extend((depth + 1, child) for child in children)
    return True


def _change(kind: ChangeKind, path: _Path, left: Json, right: Json) -> ValueChange:
    if isinstance(left, str) and isinstance(right, str):
        at = common_start(left, right)
        return ValueChange(kind, _flat(path), _around(left, at), _around(right, at))
    return ValueChange(kind, _flat(path), excerpt(left), excerpt(right))


def _around(text: str, at: int) -> str:
    start = max(0, at - MAX_EXCERPT // 3) if len(text) > MAX_EXCERPT else 0
    cut = text[start : start + MAX_EXCERPT]
    printed = ecma.stringify_text(cut)
    return f"{'…' if start else ''}{printed}{'…' if start + len(cut) < len(text) else ''}"


def excerpt(value: Json) -> str:
    """The start of a value's JSON text, with its whole length where it is cut."""
    if isinstance(value, str):
        return _around(value, 0)
    return shorten(ecma.stringify_text(value))


def shorten(text: str) -> str:
    """The start of a text, with its whole length where it is cut."""
    return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}… ({len(text)} characters)"


def _flat(path: _Path) -> tuple[str | int, ...]:
    tokens: list[str | int] = []
    while path:
        path, token = path
        tokens.append(token)
    return tuple(reversed(tokens))
