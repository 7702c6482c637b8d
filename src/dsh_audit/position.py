"""Byte offset ↔ JSON pointer, in text that may be cut or malformed.

One pass over tokens, no recursion, linear time. Where the text is sound up to an offset, so is the pointer.
Pointers are RFC 6901; an unpaired surrogate in a name is written as ``\\udxxx``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsh_audit import ecma

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_TOKEN = re.compile(_STRING + rb'|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_STRUCTURE = re.compile(_STRING + rb"|[{}\[\],:]", re.DOTALL)
_SPACE = b" \t\n\r"


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

    Brackets and names are checked, the text between them is not.

    Raises:
        MalformedError: while iterating.
    """
    open_brackets = bytearray()
    name: re.Match[bytes] | None = None
    value_start: int | None = None
    for match in _STRUCTURE.finditer(data, at):
        token = match[0]
        if token in (b"{", b"["):
            open_brackets += token
        elif open_brackets:
            if token in (b"}", b"]") and open_brackets.pop() != token[0] - 2:
                raise MalformedError(match.start())
        elif token == b":" and name is not None and value_start is None:
            value_start = match.end()
        elif token[:1] == b'"':
            if value_start is None and name is not None:
                raise MalformedError(match.start())
            name = name or match
        elif token in (b",", b"}"):
            if name is not None or token == b"}" or match.start() != at:
                yield _member(data, name, value_start, match.start())
            if token == b"}":
                _expect_end(data, match.end())
                return
            name, value_start = None, None
        else:
            raise MalformedError(match.start())
    raise MalformedError(len(data))


def _member(data: bytes, name: re.Match[bytes] | None, value_start: int | None, end: int) -> Member:
    if name is None or value_start is None:
        raise MalformedError(end)
    value = data[value_start:end]
    start = value_start + len(value) - len(value.lstrip(_SPACE))
    return Member(_name(name[0]), name.start(), start, end - (len(value) - len(value.rstrip(_SPACE))))


def _expect_end(data: bytes, at: int) -> None:
    if data[at:].strip(_SPACE):
        raise MalformedError(at)
