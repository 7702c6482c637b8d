"""A request body as a rope of fragments, each with the log event it comes from.

Successive requests of a session share almost all of their bytes. ``FragmentRun`` is the shared, append-only middle;
a ``Body`` is head + the first n fragments of a run + tail. So a session's bodies cost time and memory in proportion
to what is new in each, and the SHA-256 of each body extends the hash of the one before.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fragment:
    """A run of body bytes.

    Args:
        data: UTF-8 JSON text, any cut.
        seq: the log event whose content these bytes print; None for fixed text and deployment values.
    """

    data: bytes
    seq: int | None = None


class FragmentRun:
    """An append-only list of fragments that many bodies share; a view of the first n never changes."""

    __slots__ = ("_ends", "_fragments", "_hash", "_hash_count", "_hash_head")

    def __init__(self) -> None:
        self._fragments: list[Fragment] = []
        self._ends: list[int] = [0]
        self._hash = hashlib.sha256()
        self._hash_head: bytes | None = None
        self._hash_count = 0

    def __len__(self) -> int:
        return len(self._fragments)

    def append(self, data: bytes, seq: int | None = None) -> None:
        """Add bytes at the end."""
        self._fragments.append(Fragment(data, seq))
        self._ends.append(self._ends[-1] + len(data))

    def size(self, count: int) -> int:
        """Bytes in the first ``count`` fragments."""
        return self._ends[count]

    def first(self, count: int) -> list[Fragment]:
        """The first ``count`` fragments."""
        return self._fragments[:count]

    def find(self, at: int, count: int) -> tuple[Fragment, int]:
        """The fragment that holds byte ``at`` of the first ``count``, and where it starts."""
        index = bisect_right(self._ends, at, 0, count + 1) - 1
        return self._fragments[index], self._ends[index]

    def digest(self, head: bytes, count: int) -> hashlib._Hash:
        """A SHA-256 over head and the first ``count`` fragments; extends the last such hash where it can."""
        if self._hash_head != head or self._hash_count > count:
            self._hash = hashlib.sha256(head)
            self._hash_head, self._hash_count = head, 0
        if count > self._hash_count:
            self._hash.update(b"".join(f.data for f in self._fragments[self._hash_count : count]))
            self._hash_count = count
        return self._hash.copy()


_EMPTY_RUN = FragmentRun()


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of one request body with their provenance."""

    head: tuple[Fragment, ...]
    run: FragmentRun
    count: int
    tail: tuple[Fragment, ...]

    @classmethod
    def of(cls, fragments: Iterable[Fragment]) -> Body:
        """A body that shares nothing."""
        return cls((), _EMPTY_RUN, 0, tuple(fragments))

    def fragments(self) -> Iterator[Fragment]:
        """All fragments in order."""
        yield from self.head
        yield from self.run.first(self.count)
        yield from self.tail

    def to_bytes(self) -> bytes:
        """The exact body."""
        return b"".join(fragment.data for fragment in self.fragments())

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
        digest = self.run.digest(b"".join(f.data for f in self.head), self.count)
        digest.update(b"".join(f.data for f in self.tail))
        return digest.hexdigest()

    def extended(self, fragments: Iterable[Fragment]) -> Body:
        """The same body with its closing brace replaced by further members and a brace.

        Args:
            fragments: the text after the last base member, each member starting with a comma, no brace.
        """
        *rest, last = self.tail
        closed = Fragment(last.data[:-1], last.seq)
        return Body(self.head, self.run, self.count, (*rest, closed, *fragments, Fragment(b"}")))

    def find(self, at: int) -> tuple[Fragment, int]:
        """The fragment that holds byte offset ``at`` (the last one when past the end), and its start offset."""
        middle = _size(self.head)
        if middle <= at < middle + self.run.size(self.count):
            fragment, start = self.run.find(at - middle, self.count)
            return fragment, start + middle
        start = 0 if at < middle else middle + self.run.size(self.count)
        last, last_start = Fragment(b""), start
        for fragment in self.head if at < middle else self.tail:
            last, last_start = fragment, start
            if at < start + len(fragment.data):
                break
            start += len(fragment.data)
        return last, last_start


def _size(fragments: tuple[Fragment, ...]) -> int:
    return sum(len(fragment.data) for fragment in fragments)
