"""Byte offset ↔ JSON pointer, in text that may be cut or malformed.

One pass over tokens, no recursion, linear time. Where the text is sound up to an offset, so is the pointer.
Pointers are RFC 6901; an unpaired surrogate in a name is written as ``\\udxxx``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import AnyStr

from dsh_audit.record import dataclass
from dsh_audit.text import ecma

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_TOKEN = re.compile(_STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_BRACKETS = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_NAME = re.compile(rb'[ \t\n\r]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
_SCALAR = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^][{}",: \t\n\r]++', re.DOTALL)
_NEXT = re.compile(rb"[ \t\n\r]*+([,}])")
_NEXT_ITEM = re.compile(rb"[ \t\n\r]*+([,\]])")
_GAP = re.compile(rb"[ \t\n\r]*+")
_SPACE = b" \t\n\r"
_FAST_DEPTH = 12


def common_start(left: AnyStr, right: AnyStr) -> int:
    """Length of the shared beginning; by halving, so in the speed of comparing memory."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_ends(before: AnyStr, after: AnyStr) -> tuple[int, int]:
    """Lengths of what two texts share at the start, and then at the end without overlap."""
    shorter = min(len(before), len(after))
    start = common_start(before, after)
    low, high = 0, shorter - start
    while low < high:
        middle = (low + high + 1) // 2
        if before[len(before) - middle :] == after[len(after) - middle :]:
            low = middle
        else:
            high = middle - 1
    return start, low


def join_pointer(tokens: Iterable[str | int]) -> str:
    """A JSON pointer from names and indices."""
    texts = (str(token).encode(errors="backslashreplace").decode() for token in tokens)
    return "".join(f"/{text.replace('~', '~0').replace('/', '~1')}" for text in texts)


class _Path:
    """The containers open at a token, and for each the name or index of its current child."""

    __slots__ = ("children", "expects_key", "objects")

    def __init__(self) -> None:
        self.objects: list[bool] = []
        self.children: list[bytes | int | None] = []
        self.expects_key = False

    def take(self, token: bytes) -> None:
        """Move past one token."""
        first = token[:1]
        if first in b"{[":
            is_object = first == b"{"
            self.objects.append(is_object)
            self.children.append(None if is_object else 0)
            self.expects_key = is_object
        elif first in b"}]":
            if self.objects:
                self.objects.pop()
                self.children.pop()
            self.expects_key = False
        elif first == b",":
            self._next_child()
        elif first == b":":
            self.expects_key = False
        elif self.expects_key and first == b'"':
            self.children[-1] = token

    def _next_child(self) -> None:
        if not self.objects:
            return
        self.expects_key = self.objects[-1]
        child = self.children[-1]
        self.children[-1] = child + 1 if isinstance(child, int) else None

    def tokens(self, depth: int) -> list[str | int]:
        """Names and indices of the outermost ``depth`` containers' current children."""
        return [_name(child) if isinstance(child, bytes) else child or 0 for child in self.children[:depth]]


def _name(token: bytes) -> str:
    try:
        value = ecma.parse(token)
    except ValueError:
        value = None
    return value if isinstance(value, str) else token.strip(b'"').decode(errors="replace")


def path_at(data: bytes, at: int) -> list[str | int]:
    """Names and indices that lead to the value whose text holds byte ``at``.

    Inside a name or at a colon: the member's value. At a comma, a closing bracket, white space or past the
    end: the container.
    """
    path = _Path()
    for match in _TOKEN.finditer(data):
        if match.start() > at:
            break
        token = match[0]
        if at < match.end():
            if path.expects_key and token[:1] == b'"':
                path.take(token)
            is_inside = token[:1] in b",}]"
            return path.tokens(len(path.objects) - is_inside)
        path.take(token)
    return path.tokens(max(len(path.objects) - 1, 0))


def pointer_at(data: bytes, at: int) -> str:
    """``path_at`` as a JSON pointer."""
    return join_pointer(path_at(data, at))


def locate(data: bytes, path: Sequence[str | int]) -> int | None:
    """The offset of the value at a path; None when there is none."""
    walk = _Path()
    for match in _TOKEN.finditer(data):
        token = match[0]
        is_value = token[:1] not in b",:}]" and not walk.expects_key
        if is_value and len(walk.children) == len(path) and _leads_to(walk, path):
            return match.start()
        walk.take(token)
    return None


def _leads_to(walk: _Path, path: Sequence[str | int]) -> bool:
    if not path:
        return True
    last = walk.children[-1]
    if isinstance(last, int):
        return last == path[-1] and walk.tokens(len(path)) == list(path)
    return last is not None and _name(last) == path[-1] and walk.tokens(len(path)) == list(path)


class MalformedError(ValueError):
    """The text is not what it should be.

    Args:
        at: byte offset where that shows.
    """

    def __init__(self, at: int) -> None:
        super().__init__(f"malformed at byte {at}")
        self.at = at


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: from the quote of its name to the end of its value.

    Args:
        start: offset of the first byte of the name.
        value_start: offset of the first byte of the value.
        end: offset after the last byte of the value.
    """

    name: str
    start: int
    value_start: int
    end: int


def scan_members(data: bytes, at: int) -> Iterator[Member]:
    """The members of an object that is open at ``at`` (after its brace or at a comma), to the end of data.

    Names and the balance of brackets are checked, the values as such are not.

    Raises:
        MalformedError: while iterating.
    """
    if data[at : at + 1] == b",":
        at += 1
    elif (end := _NEXT.match(data, at)) is not None and end[1] == b"}":
        return _expect_end(data, end.end())
    while True:
        name = _NAME.match(data, at)
        if name is None:
            raise MalformedError(at)
        end_at = _skip_value(data, name.end())
        yield Member(_name(name[1]), name.start(1), name.end(), end_at)
        following = _NEXT.match(data, end_at)
        if following is None:
            raise MalformedError(end_at)
        at = following.end()
        if following[1] == b"}":
            return _expect_end(data, at)


def scan_elements(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each item of a list that is open at ``at``, after its bracket, up to the closing one.

    Raises:
        MalformedError: while iterating.
    """
    following = _NEXT_ITEM.match(data, at)
    if following is not None and following[1] == b"]":
        return
    while True:
        start = _GAP.match(data, at).end()  # type: ignore[union-attr]
        end = _skip_value(data, start)
        yield start, end
        following = _NEXT_ITEM.match(data, end)
        if following is None:
            raise MalformedError(end)
        if following[1] == b"]":
            return
        at = following.end()


def _skip_value(data: bytes, at: int) -> int:
    """Where the value that starts at ``at`` ends."""
    if data[at : at + 1] not in (b"{", b"["):
        scalar = _SCALAR.match(data, at)
        if scalar is None:
            raise MalformedError(at)
        return scalar.end()
    shallow = _balanced().match(data, at)
    return shallow.end() if shallow is not None else _skip_deep(data, at)


@cache
def _balanced() -> re.Pattern[bytes]:
    """A container with up to ``_FAST_DEPTH`` levels in it, matched without a step per token."""
    other = rb'[^][{}"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    inner = rb"(?:" + other + rb")*+"
    for _ in range(_FAST_DEPTH):
        inner = rb"(?:" + other + rb"|[{\[]" + inner + rb"[}\]])*+"
    return re.compile(rb"[{\[]" + inner + rb"[}\]]", re.DOTALL)


def _skip_deep(data: bytes, at: int) -> int:
    depth = 0
    for match in _BRACKETS.finditer(data, at):
        if match[0] in (b"{", b"["):
            depth += 1
        elif match[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return match.end()
    raise MalformedError(len(data))


def _expect_end(data: bytes, at: int) -> None:
    if data[at:].strip(_SPACE):
        raise MalformedError(at)
