"""String rules of pi-ai: blank, clean, the id hash and the id alphabet.

Strings here are well paired: ``ecma.parse`` and ``ecma.join`` leave no two halves of a surrogate pair side by
side, so any surrogate is an unpaired one. Lengths are UTF-16 code units.
Source: wire-pi-ai 3; pi-ai 0.82.1 utils/sanitize-unicode, utils/hash.
"""

from __future__ import annotations

import re

from dsh_audit.text.ecma import SPACE

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSAFE = re.compile("[^a-zA-Z0-9_-]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MASK = 0xFFFFFFFF


def is_blank(text: str) -> bool:
    """Whether nothing is left after JavaScript's trim, which knows other spaces than Python's strip."""
    return not text.strip(SPACE)


def trim(text: str) -> str:
    """JavaScript's trim."""
    return text.strip(SPACE)


def clean(text: str) -> str:
    """The text without its unpaired surrogates."""
    return text if text.isascii() else _SURROGATE.sub("", text)


def safe_id(text: str) -> str:
    """Each code unit outside [A-Za-z0-9_-] replaced by an underscore (so two for an astral character)."""
    return _UNSAFE.sub(lambda found: "_" if found[0] <= "\uffff" else "__", text)


def hash36(text: str) -> str:
    """The short hash of pi-ai: two 32-bit lanes in base 36, the second lane first, unpadded."""
    lane_a, lane_b = 0xDEADBEEF, 0x41C6CE57
    units = text.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(units), 2):
        unit = units[at] | units[at + 1] << 8
        lane_a = (lane_a ^ unit) * 2654435761 & _MASK
        lane_b = (lane_b ^ unit) * 1597334677 & _MASK
    lane_a = (lane_a ^ lane_a >> 16) * 2246822507 & _MASK ^ (lane_b ^ lane_b >> 13) * 3266489909 & _MASK
    lane_b = (lane_b ^ lane_b >> 16) * 2246822507 & _MASK ^ (lane_a ^ lane_a >> 13) * 3266489909 & _MASK
    return _base36(lane_b) + _base36(lane_a)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
