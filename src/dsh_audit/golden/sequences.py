"""Two lists of pinned values: what was added, removed, moved or changed in place, by digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from dsh_audit.golden.case import PinnedValue

EditKind = Literal["inserted", "removed", "moved", "changed"]

_MAX_MIDDLE = 3000


@dataclass(frozen=True, slots=True)
class Edit:
    """One difference between two lists.

    Args:
        kind: what happened to the value.
        expected_at, actual_at: its places; None on the side that lacks it.
    """

    kind: EditKind
    expected_at: int | None
    actual_at: int | None


def diff_values(
    expected: Sequence[PinnedValue],
    actual: Sequence[PinnedValue],
    alike: Callable[[PinnedValue, PinnedValue], bool],
) -> list[Edit]:
    """The differences in order of place.

    Args:
        alike: whether two values at about the same place are one value that changed.
    """
    start, end = _trim(expected, actual)
    left, right = expected[start : len(expected) - end], actual[start : len(actual) - end]
    edits: list[Edit] = []
    for i1, i2, j1, j2 in _replaced([one.sha256 for one in left], [one.sha256 for one in right]):
        edits += _pair(left[i1:i2], right[j1:j2], i1 + start, j1 + start, alike)
    return _moved(edits, expected, actual)


def _trim(expected: Sequence[PinnedValue], actual: Sequence[PinnedValue]) -> tuple[int, int]:
    shorter = min(len(expected), len(actual))
    start = 0
    while start < shorter and expected[start].sha256 == actual[start].sha256:
        start += 1
    end = 0
    while end < shorter - start and expected[-1 - end].sha256 == actual[-1 - end].sha256:
        end += 1
    return start, end


def _replaced(left: list[str], right: list[str]) -> list[tuple[int, int, int, int]]:
    """Ranges that differ; beyond ``_MAX_MIDDLE`` values everything is one range, so that time stays bounded."""
    if max(len(left), len(right)) > _MAX_MIDDLE or not left or not right:
        return [(0, len(left), 0, len(right))] if left or right else []
    opcodes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return [(i1, i2, j1, j2) for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]


def _pair(
    left: Sequence[PinnedValue],
    right: Sequence[PinnedValue],
    left_at: int,
    right_at: int,
    alike: Callable[[PinnedValue, PinnedValue], bool],
) -> list[Edit]:
    """Pairs of alike values in order, greedily; what has no pair was removed or inserted."""
    edits: list[Edit] = []
    j = 0
    for i, value in enumerate(left):
        # A partner is looked for only as far as the lists could drift apart.
        reach = max(0, len(right) - len(left)) + 1
        partner = next((k for k in range(j, min(len(right), j + reach)) if alike(value, right[k])), None)
        if partner is None:
            edits.append(Edit("removed", left_at + i, None))
            continue
        edits += [Edit("inserted", None, right_at + k) for k in range(j, partner)]
        edits.append(Edit("changed", left_at + i, right_at + partner))
        j = partner + 1
    return edits + [Edit("inserted", None, right_at + k) for k in range(j, len(right))]


def _moved(edits: list[Edit], expected: Sequence[PinnedValue], actual: Sequence[PinnedValue]) -> list[Edit]:
    """A value removed here and inserted there was moved."""
    arrived: dict[str, list[int]] = {}
    for edit in edits:
        if edit.kind == "inserted" and edit.actual_at is not None:
            arrived.setdefault(actual[edit.actual_at].sha256, []).append(edit.actual_at)
    moves: dict[int, int] = {}
    for edit in edits:
        if edit.kind == "removed" and edit.expected_at is not None and arrived.get(expected[edit.expected_at].sha256):
            moves[edit.expected_at] = arrived[expected[edit.expected_at].sha256].pop(0)
    gone = Counter(moves.values())
    kept = [edit for edit in edits if not (edit.kind == "inserted" and edit.actual_at in gone)]
    return [
        Edit("moved", edit.expected_at, moves[edit.expected_at])
        if edit.kind == "removed" and edit.expected_at in moves
        else edit
        for edit in kept
    ]
