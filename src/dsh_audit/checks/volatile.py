"""Recognise content that changes by itself: timestamps, dates, paths, counters, ids, growth."""

from __future__ import annotations

import re
from typing import Literal

from dsh_audit.text.pointer import common_ends

Kind = Literal["timestamp", "date", "time", "uuid", "id", "path", "counter", "growth", "order"]

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp][Mm])?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT)?(?:[+-]\d{2}:?\d{2})?(?:\s\([A-Za-z ]+\))?)"
_ISO_DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}"
_NAMED_DAY = (
    rf"(?:(?:{_DAY},?\s)?{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}"
    rf"|(?:{_DAY},?\s)?\d{{1,2}}\s{_MONTH},?\s\d{{4}}|\d{{1,2}}/\d{{1,2}}/\d{{4}}|\d{{4}}年\d{{1,2}}月\d{{1,2}}日)"
)
_PATTERN = re.compile(
    rf"(?P<uuid>\b[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}\b)"
    rf"|(?P<timestamp>(?:{_ISO_DAY}|{_NAMED_DAY})(?:[T,]|\s|,\s)+{_CLOCK}{_ZONE}|\b1[5-9]\d{{8}}(?:\d{{3}}(?:\d{{3}})?)?\b)"
    rf"|(?P<date>(?:{_DAY},?\s)?(?:{_ISO_DAY}|{_NAMED_DAY}))"
    rf"|(?P<time>\b{_CLOCK}{_ZONE})"
    r"|(?P<path>(?<![\w/])(?:~|[A-Za-z]:)?(?:[/\\][\w.@+~-]+){2,}[/\\]?|(?<![\w/])(?:~|[A-Za-z]:)[/\\][\w.@+~-]+)"
    r"|(?P<id>\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{7,64}\b|\b[A-Za-z]+[_-](?=\w*\d)[A-Za-z0-9]{8,}\b)"
    r"|(?P<counter>(?<![\w.])-?\d+(?:[.,]\d+)*)"
)
_MAX_TEXT = 200_000


def volatile_kinds(before: str, after: str) -> tuple[Kind, ...]:
    """What kinds of self-changing content make up the whole difference between two texts.

    Args:
        before, after: different texts.

    Returns:
        Kinds in order of first appearance; ``growth`` where text was only added; empty where anything else changed.
    """
    one, two = _middle(before, after)
    if not one.strip() and two:
        return ("growth",)
    if len(one) > _MAX_TEXT or len(two) > _MAX_TEXT:
        return ()
    masked, found = _mask(one)
    other, also = _mask(two)
    if masked == other:
        kinds = [kind for (kind, old), (_, new) in zip(found, also, strict=True) if old != new]
        return tuple(dict.fromkeys(kinds))
    return ()


def _mask(text: str) -> tuple[str, list[tuple[Kind, str]]]:
    found: list[tuple[Kind, str]] = []

    def note(match: re.Match[str]) -> str:
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        found.append((kind, match.group()))
        return f"\0{kind}\0"

    return _PATTERN.sub(note, text), found


def _middle(before: str, after: str) -> tuple[str, str]:
    """Both texts without their common start and end, widened to whole lines on both sides, growth aside."""
    start, end = common_ends(before, after)
    if start + end >= len(before):
        return "", after[start : len(after) - end]
    first = before.rfind("\n", 0, start) + 1
    stop = before.find("\n", len(before) - end)
    tail = 0 if stop < 0 else len(before) - stop
    return before[first : len(before) - tail], after[first : len(after) - tail]
