"""A prompt change as a short unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from operator import eq
from typing import ClassVar

from dsh_audit.checks.volatile import Kind, volatile_kinds
from dsh_audit.record import dataclass
from dsh_audit.text.alignment import common_items
from dsh_audit.text.pointer import common_start

MAX_LINES = 60
MAX_WIDTH = 240
_MAX_COMPARED = 400
_CONTEXT = 2


@dataclass(frozen=True, slots=True)
class TextChange:
    """How one text became another.

    Args:
        before_chars, after_chars: lengths in characters.
        shared_chars: characters before the first difference.
        volatile: kinds of self-changing content that explain the whole difference.
        diff: lines of a unified diff, long ones cut around the difference; at most ``MAX_LINES``.
        is_truncated: more lines differ than are shown.
    """

    before_chars: int
    after_chars: int
    shared_chars: int
    volatile: tuple[Kind, ...]
    diff: tuple[str, ...]
    is_truncated: bool

    JSON: ClassVar = "before_chars after_chars shared_chars volatile diff truncated=is_truncated"


def diff_text(before: str, after: str) -> TextChange:
    """Compare two texts, line by line around what differs."""
    start = common_start(before, after)
    lines, truncated = _diff_lines(before, after)
    kinds = volatile_kinds(before, after)
    return TextChange(len(before), len(after), start, kinds, tuple(lines), truncated)


def _diff_lines(before: str, after: str) -> tuple[list[str], bool]:
    one, two, offset = _around(before.split("\n"), after.split("\n"))
    too_long = max(len(one), len(two)) > _MAX_COMPARED
    shown: list[str] = []
    for line in _unified(one[:_MAX_COMPARED], two[:_MAX_COMPARED], offset):
        if len(shown) == MAX_LINES:
            return shown, True
        shown.append(line)
    return shown, too_long


def _around(one: list[str], two: list[str]) -> tuple[list[str], list[str], int]:
    """The lines that differ with a little context, and how many lines were left out before them."""
    start, end = common_items(one, two, eq)
    first, last = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
    return one[first : len(one) - last], two[first : len(two) - last], first


def _unified(one: list[str], two: list[str], offset: int) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        old = f"-{first[1] + offset + 1},{last[2] - first[1]}"
        yield f"@@ {old} +{first[3] + offset + 1},{last[4] - first[3]} @@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (" " + _cut(line, 0) for line in one[i1:i2])
                continue
            starts = [common_start(a, b) for a, b in zip(one[i1:i2], two[j1:j2], strict=False)]
            yield from ("-" + _cut(line, at) for line, at in _paired(one[i1:i2], starts))
            yield from ("+" + _cut(line, at) for line, at in _paired(two[j1:j2], starts))


def _paired(lines: list[str], starts: list[int]) -> Iterator[tuple[str, int]]:
    for index, line in enumerate(lines):
        yield line, starts[index] if index < len(starts) else 0


def _cut(line: str, at: int) -> str:
    """A line, cut to MAX_WIDTH characters around an index."""
    if len(line) <= MAX_WIDTH:
        return line
    start = max(0, min(at - MAX_WIDTH // 3, len(line) - MAX_WIDTH))
    cut = line[start : start + MAX_WIDTH]
    return f"{'…' if start else ''}{cut}{'…' if start + MAX_WIDTH < len(line) else ''}"
