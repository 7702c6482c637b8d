"""Bytes of a log file → rows with their places.

Two containers (spec session-log 2.3): *plain*, one JSON row a line, and *zstd*, a concatenation of complete frames
with checksums. Frame ends are found structurally, from frame and block headers, because the magic bytes also occur
inside blocks and a one-shot decoder sees only the first frame. Everything here is a stream: one frame is in memory
at a time, and no more than one block (128 KiB) is decoded ahead of the row limit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
MAX_ROW_BYTES = 256 * 1024 * 1024
"""A longer row is refused; JavaScript itself cannot hold one twice as long."""

_CHUNK = 1 << 20
_HELD_BYTES = 32 << 20
_ROW_COST = 256
_SPARE_ROWS = 4096
_WINDOW_BYTES = 128 << 20

Encoding = Literal["plain", "zstd"]


@dataclass(frozen=True, slots=True)
class Row:
    """One complete line without its ``\\n``.

    Args:
        data: the bytes of the line.
        line: from 1.
        at: offset of the line in the decoded text; for plain logs that is the offset in the file.
        frame: index of the zstd frame from 0; None in plain logs.
        frame_at: offset of that frame in the file; None in plain logs.
    """

    data: bytes
    line: int
    at: int
    frame: int | None = None
    frame_at: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerIssue:
    """Something the container got wrong; rows before it are sound.

    Args:
        kind: ``torn`` (the file ends inside a row or frame), ``bad-frame`` (magic, header, block or checksum wrong),
            ``open-row`` (a complete frame ends inside a line), ``first-frame`` (frame 0 is not exactly one line),
            ``row-too-large``.
        message: one line.
        at: offset in the file (of the frame for zstd, of the row for plain).
        frame: frame index, None in plain logs.
        line: line number the issue is at.
        dropped_bytes: file bytes that are not used because of it; 0 when reading goes on.
    """

    kind: Literal["torn", "bad-frame", "open-row", "first-frame", "row-too-large"]
    message: str
    at: int
    frame: int | None = None
    line: int | None = None
    dropped_bytes: int = 0


@dataclass(slots=True)
class ContainerStats:
    """What one pass over a container has seen; final when the pass has ended."""

    encoding: Encoding = "plain"
    size_bytes: int = 0
    decoded_bytes: int = 0
    rows: int = 0
    frames: int = 0
    issues: list[ContainerIssue] = field(default_factory=list)
    sha256: str = ""


class _Input:
    """Sequential reads of at most ``size`` bytes, hashed as they pass: a file that grows keeps a stable prefix."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._left = size
        self._hash = hashlib.sha256()
        self._buffer = b""
        self._start = 0
        self.at = 0

    def read_more(self, limit: int = _CHUNK) -> bytes:
        data = self._stream.read(min(limit, self._left)) if self._left else b""
        self._left = self._left - len(data) if data else 0
        self._hash.update(data)
        return data

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the input."""
        while len(self._buffer) - self._start < count:
            more = self.read_more()
            if not more:
                break
            self._buffer = self._buffer[self._start :] + more
            self._start = 0
        return self._buffer[self._start : self._start + count]

    def take(self, count: int) -> bytes:
        data = self.peek(count)
        self._start += len(data)
        self.at += len(data)
        return data

    def drain(self) -> int:
        """Read to the end without keeping anything; returns how many bytes that were."""
        count = len(self._buffer) - self._start
        self._buffer, self._start = b"", 0
        while more := self.read_more():
            count += len(more)
        self.at += count
        return count

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


class _Lines:
    """Cuts decoded text into rows at ``\\n`` bytes only, holding at most one row."""

    def __init__(self) -> None:
        self.pending = bytearray()
        self.line = 1
        self.at = 0

    def feed(self, data: bytes) -> list[tuple[bytes, int, int]]:
        rows: list[tuple[bytes, int, int]] = []
        *complete, rest = data.split(b"\n")
        for part in complete:
            row = bytes(self.pending) + part if self.pending else part
            self.pending.clear()
            rows.append((row, self.line, self.at))
            self.line += 1
            self.at += len(row) + 1
        self.pending += rest
        return rows

    @property
    def too_large(self) -> bool:
        return len(self.pending) > MAX_ROW_BYTES


def detect_encoding(first_bytes: bytes) -> Encoding:
    """``zstd`` when the file starts with a frame magic, else ``plain``."""
    return "zstd" if first_bytes.startswith(MAGIC) else "plain"


def iter_rows(stream: BinaryIO, size: int, stats: ContainerStats) -> Iterator[Row]:
    """Rows of a log in order.

    Args:
        stream: positioned at the start; read sequentially, never written.
        size: bytes of it that count; what is appended later is not seen.
        stats: filled while the rows are drawn; its ``issues`` say what was not sound.

    Source: spec session-log 2.3 and 2.4; RFC 8878 section 3.1.1 for the frame structure.
    """
    source = _Input(stream, size)
    stats.size_bytes = size
    stats.encoding = detect_encoding(source.peek(4))
    rows = _plain_rows(source, stats) if stats.encoding == "plain" else _zstd_rows(source, stats)
    for row in rows:
        stats.rows += 1
        stats.decoded_bytes = row.at + len(row.data) + 1
        yield row
    source.drain()
    stats.sha256 = source.hexdigest()


def _plain_rows(source: _Input, stats: ContainerStats) -> Iterator[Row]:
    lines = _Lines()
    while data := source.take(_CHUNK):
        for row, line, at in lines.feed(data):
            yield Row(row, line, at)
        if lines.too_large:
            dropped = len(lines.pending) + source.drain()
            message = f"row of more than {MAX_ROW_BYTES} bytes"
            issue = ContainerIssue("row-too-large", message, lines.at, None, lines.line, dropped)
            stats.issues.append(issue)
            return
    if lines.pending:
        count = len(lines.pending)
        message = f"{count} bytes after the last complete row are not used"
        stats.issues.append(ContainerIssue("torn", message, lines.at, None, lines.line, count))


class _TornFrameError(Exception):
    """The input ends inside the frame."""


def _zstd_rows(source: _Input, stats: ContainerStats) -> Iterator[Row]:
    lines = _Lines()
    decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    while source.peek(1):
        frame, frame_at, first_line = stats.frames, source.at, lines.line
        held: list[Row] = []
        held_bytes = 0
        try:
            for text in _frame_texts(source, decoder):
                for data, line, at in lines.feed(text):
                    held.append(Row(data, line, at, frame, frame_at))
                    held_bytes += len(data) + _ROW_COST
                if held_bytes > _HELD_BYTES:
                    yield from held
                    held, held_bytes = [], 0
                if lines.line > stats.size_bytes + _SPARE_ROWS:
                    raise zstandard.ZstdError("the frame decodes to more rows than the file has bytes: no log does")
                if lines.too_large:
                    raise zstandard.ZstdError(f"row of more than {MAX_ROW_BYTES} bytes")
        except _TornFrameError:
            dropped = source.at - frame_at + source.drain()
            yield from held
            kept = f", {lines.line - first_line} complete rows of it kept" if lines.line > first_line else ""
            message = f"the last frame is cut off after {dropped} bytes{kept}"
            stats.issues.append(ContainerIssue("torn", message, frame_at, frame, lines.line, dropped))
            return
        except (zstandard.ZstdError, MemoryError) as error:
            dropped = source.at - frame_at + source.drain()
            kind: Literal["bad-frame", "row-too-large"] = "row-too-large" if lines.too_large else "bad-frame"
            message = "not enough memory to decode a frame" if isinstance(error, MemoryError) else str(error)
            stats.issues.append(ContainerIssue(kind, message, frame_at, frame, first_line, dropped))
            return
        yield from held
        stats.frames += 1
        if frame == 0 and (lines.line != 2 or lines.pending):
            message = f"the first frame holds {lines.line - 1} complete lines, not exactly the session header line"
            stats.issues.append(ContainerIssue("first-frame", message, frame_at, frame, 1))
        if lines.pending:
            message = f"a complete frame ends inside a row ({len(lines.pending)} bytes without a newline)"
            stats.issues.append(ContainerIssue("open-row", message, frame_at, frame, lines.line))
            for data, line, at in lines.feed(b"\n"):
                yield Row(data, line, at, frame, frame_at)


def _frame_texts(source: _Input, decoder: zstandard.ZstdDecompressor) -> Iterator[bytes]:
    """Decoded text of one frame, block by block; the checksum is verified before the last piece is given."""
    header = _frame_header(source)
    checked = bool(header[4] & 0x04)
    decode = decoder.decompressobj(write_size=1 << 17)
    source.take(len(header))
    yield decode.decompress(header)
    last = False
    while not last:
        block_header = source.peek(3)
        if len(block_header) < 3:
            raise _TornFrameError
        word = int.from_bytes(block_header, "little")
        last, kind, size = bool(word & 1), (word >> 1) & 3, word >> 3
        if kind == 3 or size > (1 << 17):
            raise zstandard.ZstdError("damaged block header")
        need = 3 + (1 if kind == 1 else size) + (4 if last and checked else 0)
        block = source.take(need)
        yield decode.decompress(block)
        if len(block) < need:
            raise _TornFrameError
    if not decode.eof:
        raise zstandard.ZstdError("frame does not end where its blocks do")


def _frame_header(source: _Input) -> bytes:
    """The bytes of the frame header, magic included."""
    start = source.peek(5)
    if not MAGIC.startswith(start[:4]):
        raise zstandard.ZstdError("no zstd frame starts here (wrong magic number)")
    if len(start) < 5:
        raise _TornFrameError
    descriptor = start[4]
    single = bool(descriptor & 0x20)
    if descriptor & 0x08:
        raise zstandard.ZstdError("damaged frame header")
    content_size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    size = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3] + content_size
    header = source.peek(size)
    if len(header) < size:
        raise _TornFrameError
    return header
