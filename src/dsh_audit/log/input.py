"""Sequential reads of a file that may grow meanwhile."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

from dsh_audit.errors import LogError

_CHUNK = 1 << 20


class Input:
    """Sequential reads of at most ``size`` bytes, hashed as they pass: a file that grows keeps a stable prefix.

    Attributes:
        buffer: what has been read; the next byte is at ``start``, which is ``at`` in the file.
        failure: why the input ends before its size, None where it does not.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._left = size
        self._hash = hashlib.sha256()
        self.failure: str | None = None
        self.buffer = b""
        self.start = 0
        self.at = 0

    def _read_more(self) -> bytes:
        try:
            data = self._stream.read(min(_CHUNK, self._left)) if self._left else b""
        except LogError as error:
            self.failure, data = error.message, b""
        except OSError as error:
            self.failure, data = f"cannot be read on: {error.strerror or type(error).__name__}", b""
        self._left = self._left - len(data) if data else 0
        self._hash.update(data)
        return data

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the input."""
        while len(self.buffer) - self.start < count:
            more = self._read_more()
            if not more:
                break
            self.buffer = self.buffer[self.start :] + more
            self.start = 0
        return self.buffer[self.start : self.start + count]

    def take(self, count: int) -> bytes:
        data = self.peek(count)
        self.start += len(data)
        self.at += len(data)
        return data

    def drain(self) -> tuple[int, bool]:
        """Read to the end without keeping anything; how many bytes that were, and whether all of them were zero."""
        more = self.buffer[self.start :]
        count, are_zero = 0, True
        self.buffer, self.start = b"", 0
        while more or (more := self._read_more()):
            count += len(more)
            are_zero = are_zero and more.count(0) == len(more)
            more = b""
        self.at += count
        return count, are_zero

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
