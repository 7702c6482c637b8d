"""A request body as its parts in wire order; successive bodies share what they have in common.

``PartRun`` is the shared, append-only middle; a ``Body`` is head + the first n parts of a run + tail. So a session's
bodies cost time and memory in proportion to what is new in each, and the SHA-256 of each extends that of the one
before. For differences: ``unshared`` gives what is new in either of two bodies, ``Body.find`` the part of a byte,
``Body.pointer_at`` and ``Body.seq_at`` its JSON pointer and log event.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer, path_at
from dsh_audit.wire.parts import END, Part, Path, Piece


class PartRun:
    """An append-only list of parts that many bodies share; a view of the first n never changes."""

    __slots__ = ("_ends", "_hash", "_hash_count", "_hash_head", "_parts")

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._ends: list[int] = [0]
        self._hash = hashlib.sha256()
        self._hash_head: bytes | None = None
        self._hash_count = 0

    def __len__(self) -> int:
        return len(self._parts)

    def append(self, part: Part) -> None:
        """Add a part at the end."""
        self._parts.append(part)
        self._ends.append(self._ends[-1] + len(part.data))

    def size(self, count: int) -> int:
        """Bytes in the first ``count`` parts."""
        return self._ends[count]

    def slice(self, start: int, end: int) -> list[Part]:
        """Parts ``start`` to ``end`` (exclusive); costs what it gives."""
        return self._parts[start:end]

    def index_at(self, at: int, count: int) -> int:
        """Index of the part that holds byte ``at`` of the first ``count``."""
        return bisect_right(self._ends, at, 0, count + 1) - 1

    def digest(self, head: bytes, count: int) -> hashlib._Hash:
        """A SHA-256 over head and the first ``count`` parts; extends the last such hash where it can."""
        if self._hash_head != head or self._hash_count > count:
            self._hash = hashlib.sha256(head)
            self._hash_head, self._hash_count = head, 0
        if count > self._hash_count:
            self._hash.update(_join(self._parts[self._hash_count : count]))
            self._hash_count = count
        return self._hash.copy()


_EMPTY_RUN = PartRun()


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of one request body, part by part."""

    head: tuple[Part, ...]
    run: PartRun
    count: int
    tail: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Body:
        """A body that shares nothing."""
        return cls((), _EMPTY_RUN, 0, tuple(parts))

    def parts(self) -> Iterator[Part]:
        """All parts in wire order."""
        yield from self.head
        yield from self.run.slice(0, self.count)
        yield from self.tail

    def pieces(self) -> Iterator[Piece]:
        """The bytes by the log events that they print, in wire order."""
        for part in self.parts():
            yield from part.pieces()

    def to_bytes(self) -> bytes:
        """The exact body."""
        return _join(self.parts())

    def __bytes__(self) -> bytes:
        return self.to_bytes()

    def __len__(self) -> int:
        return self.size_bytes

    @property
    def size_bytes(self) -> int:
        """Length of the body in bytes."""
        return _size(self.head) + self.run.size(self.count) + _size(self.tail)

    def sha256(self) -> str:
        """Hex SHA-256 of the body."""
        digest = self.run.digest(_join(self.head), self.count)
        digest.update(_join(self.tail))
        return digest.hexdigest()

    def extended(self, members: Iterable[Part]) -> Body:
        """The same body with further members before its closing brace."""
        assert self.tail[-1] is END
        return Body(self.head, self.run, self.count, (*self.tail[:-1], *members, END))

    def find(self, at: int) -> tuple[Part, int]:
        """The part that holds byte offset ``at`` (the last one when past the end), and its start offset."""
        _before, part, start = self._find(at)
        return part, start

    def seq_at(self, at: int) -> int | None:
        """The log event that byte ``at`` prints; None for fixed text and deployment values."""
        part, start = self.find(at)
        return part.seq_at(at - start)

    def pointer_at(self, at: int) -> str:
        """JSON pointer of the value that holds byte ``at``; in punctuation of its member or container."""
        before, part, start = self._find(at)
        inside = at - start - part.lead
        if inside >= 0 and part.lead < len(part.data):
            return join_pointer((*part.path, *path_at(part.value, inside)))
        if before is None:
            opened = _opened(part.path) if part.data == b"[" else b""
        else:
            is_open = before.kind == "mark" and before.data.endswith(b"[")
            opened = _opened(before.path) + (b"[" if is_open else b"0")
        return join_pointer(path_at(opened + part.data, len(opened) + at - start))

    def _find(self, at: int) -> tuple[Part | None, Part, int]:
        """The part of a byte with the part before it and its start offset."""
        before: Part | None = None
        start = 0
        sides: tuple[Iterable[Part], ...] = (self.head, self.tail)
        for number, side in enumerate(sides):
            if number == 1 and self.count:
                size = self.run.size(self.count)
                if at < start + size:
                    index = self.run.index_at(at - start, self.count)
                    first = max(index - 1, 0)
                    near = self.run.slice(first, index + 1)
                    return near[0] if index else before, near[-1], start + self.run.size(index)
                start += size
                before = self.run.slice(self.count - 1, self.count)[0]
            for part in side:
                if at < start + len(part.data):
                    return before, part, start
                start += len(part.data)
                before = part
        return before, before or END, start - (len(before.data) if before else 0)


def unshared(one: Body, two: Body) -> tuple[list[Part], list[Part]]:
    """The parts that only one of two bodies has, each side in wire order; costs what is not shared, mostly."""
    start = min(one.count, two.count) if one.run is two.run else 0
    sides = [[*body.head, *body.run.slice(start, body.count), *body.tail] for body in (one, two)]
    known = [set(map(id, side)) for side in sides]
    return (
        [part for part in sides[0] if id(part) not in known[1]],
        [part for part in sides[1] if id(part) not in known[0]],
    )


def _join(parts: Iterable[Part]) -> bytes:
    return b"".join([part.data for part in parts])


def _size(parts: Iterable[Part]) -> int:
    return sum([len(part.data) for part in parts])


def _opened(path: Path) -> bytes:
    """Text after which the value at a path would follow."""
    return b"".join(
        b"[" + b"0," * token if isinstance(token, int) else b"{" + ecma.stringify(token) + b":" for token in path
    )
