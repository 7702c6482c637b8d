"""Tagged netstrings, ``<size>:<payload><tag>``: what mitmproxy writes its flows in.

Tags: ``,`` bytes, ``;`` text, ``#`` integer, ``^`` float, ``!`` bool, ``~`` null, ``]`` list, ``}`` dict. Bytes are
given as places, so that a body is not copied to be found. Work is linear in the input, depth is bounded.
Source: mitmproxy 11.0.2 ``mitmproxy/io/tnetstring.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from dsh_audit.record import dataclass

MAX_DEPTH = 40
MAX_SIZE_DIGITS = 12

_MAX_NUMBER = 64


class TnetstringError(ValueError):
    """Not a tagged netstring; says where and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(f"{why} at byte {at}")
        self.at = at


@dataclass(frozen=True, slots=True)
class Place:
    """A bytes value: where its payload stands in the data."""

    at: int
    size_bytes: int

    def of(self, data: bytes) -> bytes:
        """The payload."""
        return data[self.at : self.at + self.size_bytes]


Value: TypeAlias = "Place | str | int | float | bool | list[Value] | dict[str, Value] | None"


def parse_size(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The size that a netstring announces, and where its payload starts.

    Raises:
        TnetstringError: no digits, or too many, before a colon.
    """
    colon = data.find(b":", at, min(end, at + MAX_SIZE_DIGITS + 1))
    digits = data[at:colon]
    if colon < 0 or not digits.isdigit() or (digits[0] == 0x30 and len(digits) > 1):
        raise TnetstringError(at, "no size")
    return int(digits), colon + 1


def parse_tnetstring(data: bytes, at: int = 0, end: int | None = None, depth: int = 0) -> tuple[Value, int]:
    """A value and the offset behind it.

    Raises:
        TnetstringError: cut, too deep, or malformed.
    """
    end = len(data) if end is None else end
    size, start = parse_size(data, at, end)
    stop = start + size
    if stop >= end:
        raise TnetstringError(at, "cut")
    return _parse_payload(data, start, stop, data[stop : stop + 1], depth), stop + 1


def _parse_payload(data: bytes, start: int, stop: int, tag: bytes, depth: int) -> Value:
    if tag == b",":
        return Place(start, stop - start)
    if tag == b";":
        return data[start:stop].decode("utf-8", "surrogateescape")
    if tag in (b"]", b"}"):
        if depth >= MAX_DEPTH:
            raise TnetstringError(start, "too deep")
        items = list(_items(data, start, stop, depth + 1))
        return items if tag == b"]" else _pair_up(data, start, items)
    if stop - start > _MAX_NUMBER:
        raise TnetstringError(start, "overlong number")
    return _parse_scalar(data[start:stop], tag, start)


def _parse_scalar(payload: bytes, tag: bytes, start: int) -> Value:
    if tag == b"~" and not payload:
        return None
    if tag == b"!" and payload in (b"true", b"false"):
        return payload == b"true"
    try:
        if tag == b"#":
            return int(payload)
        if tag == b"^":
            return float(payload)
    except ValueError:
        raise TnetstringError(start, "bad number") from None
    raise TnetstringError(start, f"unknown tag {tag!r}")


def _items(data: bytes, at: int, end: int, depth: int) -> Iterator[Value]:
    while at < end:
        value, at = parse_tnetstring(data, at, end + 1, depth)
        if at > end:
            raise TnetstringError(at, "overlong item")
        yield value


def _pair_up(data: bytes, start: int, items: list[Value]) -> dict[str, Value]:
    """Keys are text; up to mitmproxy 0.17 they were bytes."""
    if len(items) % 2:
        raise TnetstringError(start, "a key without a value")
    found: dict[str, Value] = {}
    for key, value in zip(items[::2], items[1::2], strict=True):
        name = key.of(data).decode("utf-8", "replace") if isinstance(key, Place) else key
        if not isinstance(name, str):
            raise TnetstringError(start, "a key that is no text")
        found[name] = value
    return found
