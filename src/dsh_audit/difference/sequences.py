"""Two lists by their keys: what was added, removed, moved or changed in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from difflib import SequenceMatcher
from operator import eq
from typing import Literal

from dsh_audit.record import dataclass
from dsh_audit.text.alignment import common_items

EditKind = Literal["inserted", "removed", "moved", "changed"]

_MAX_MIDDLE = 3000


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference between two lists.

    Args:
        kind: what happened to the value.
        left, right: its places; None on the side that lacks it.
    """

    kind: EditKind
    left: int | None
    right: int | None


def diff_keys(left: Sequence[Hashable], right: Sequence[Hashable], alike: Callable[[int, int], bool]) -> list[Edit]:
    """The differences in order of place.

    Args:
        alike: whether two values at about the same place are one value that changed.
    """
    start, end = common_items(left, right, eq)
    edits: list[Edit] = []
    for i1, i2, j1, j2 in _replaced(left[start : len(left) - end], right[start : len(right) - end]):
        edits += _pair(range(start + i1, start + i2), range(start + j1, start + j2), alike)
    return _moved(edits, left, right)


def _replaced(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int, int, int]]:
    """Ranges that differ; beyond ``_MAX_MIDDLE`` values everything is one range, so that time stays bounded."""
    if max(len(left), len(right)) > _MAX_MIDDLE or not left or not right:
        return [(0, len(left), 0, len(right))] if left or right else []
    opcodes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]


def _pair(left: range, right: range, alike: Callable[[int, int], bool]) -> list[Edit]:
    """Pairs of alike values in order, greedily; what has no pair was removed or inserted."""
    edits: list[Edit] = []
    at = right.start
    # A partner is looked for only as far as the lists could drift apart.
    reach = max(0, len(right) - len(left)) + 1
    for i in left:
        partner = next((j for j in range(at, min(right.stop, at + reach)) if alike(i, j)), None)
        if partner is None:
            edits.append(Edit("removed", i, None))
            continue
        edits += [Edit("inserted", None, j) for j in range(at, partner)]
        edits.append(Edit("changed", i, partner))
        at = partner + 1
    return edits + [Edit("inserted", None, j) for j in range(at, right.stop)]


def _moved(edits: list[Edit], left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Edit]:
    """A value removed here and inserted there was moved."""
    arrived: dict[Hashable, list[int]] = {}
    for edit in edits:
        if edit.kind == "inserted" and edit.right is not None:
            arrived.setdefault(right[edit.right], []).append(edit.right)
    moves: dict[int, int] = {}
    for edit in edits:
        if edit.kind == "removed" and edit.left is not None and arrived.get(left[edit.left]):
            moves[edit.left] = arrived[left[edit.left]].pop(0)
    gone = Counter(moves.values())
    kept = [edit for edit in edits if not (edit.kind == "inserted" and edit.right in gone)]
    return [
        Edit("moved", edit.left, moves[edit.left]) if edit.kind == "removed" and edit.left in moves else edit
        for edit in kept
    ]
