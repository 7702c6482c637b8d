"""Bytes of a log file → batches of complete rows with their places.

Two containers (spec session-log 2.3): *plain*, one JSON row a line, and *zstd*, a concatenation of complete frames
with checksums. Frame ends are found structurally, from frame and block headers, because the magic bytes also occur
inside blocks and a one-shot decoder sees only the first frame. Everything here is a stream: about one batch is in
memory at a time, and no more than a few blocks (128 KiB each) are decoded ahead of the row limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import islice
from typing import BinaryIO, Literal

import zstandard

from dsh_audit.log.input import Input
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET

MAGIC = b"\x28\xb5\x2f\xfd"
MAX_ROW_BYTES = 256 * 1024 * 1024
"""A longer row is refused even where memory is left; JavaScript itself cannot hold one twice as long."""

_BATCH_BYTES = 1 << 18
_HELD_BYTES = 32 << 20
_SPARE_ROWS = 4096
_BLOCK_BYTES = 1 << 17
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
class Batch:
    """Complete rows that follow each other.

    Args:
        text: the lines, each ended by ``\\n``.
        rows: how many.
        line: line number of the first, from 1.
        at: offset of the first in the decoded text.
        frames: first line, index and file offset of each zstd frame in it; empty in plain logs.
    """

    text: bytes
    rows: int
    line: int
    at: int
    frames: tuple[tuple[int, int, int], ...] = ()

    def row(self, index: int) -> Row:
        """One row by its index in the batch."""
        return next(islice(self, index, None))

    def __iter__(self) -> Iterator[Row]:
        at, place = self.at, -1
        for line, data in enumerate(self.text[:-1].split(b"\n"), self.line):
            while place + 1 < len(self.frames) and self.frames[place + 1][0] <= line:
                place += 1
            frame, frame_at = self.frames[place][1:] if self.frames else (None, None)
            yield Row(data, line, at, frame, frame_at)
            at += len(data) + 1


@dataclass(frozen=True, slots=True)
class ContainerIssue:
    """Something the container got wrong; rows before it are sound.

    Args:
        kind: ``torn`` (the file ends inside a row or frame), ``bad-frame`` (magic, header, block or checksum wrong),
            ``open-row`` (a complete frame ends inside a line), ``first-frame`` (frame 0 is not exactly one line),
            ``zeros`` (nothing but zero bytes follow), ``no-newline`` (the last row is whole but not ended),
            ``row-too-large``.
        message: one line.
        at: offset in the file (of the frame for zstd, of the row for plain).
        frame: frame index, None in plain logs.
        line: line number the issue is at.
        dropped_bytes: file bytes that are not used because of it; 0 when reading goes on.
    """

    kind: Literal["torn", "bad-frame", "open-row", "first-frame", "zeros", "no-newline", "row-too-large"]
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


class _Lines:
    """Cuts decoded text behind its last ``\\n`` byte, holding at most one row, and counts what it gives."""

    def __init__(self) -> None:
        self.pending = bytearray()
        self.limit = min(MAX_ROW_BYTES, BUDGET.get().document_bytes)
        self.line = 1
        self.at = 0

    def feed(self, data: bytes, frames: tuple[tuple[int, int, int], ...] = ()) -> Batch | None:
        cut = data.rfind(b"\n") + 1
        if not cut:
            self.pending += data
            return None
        text = data[:cut]
        if self.pending:
            text = bytes(self.pending) + text
            self.pending.clear()
        self.pending += data[cut:]
        batch = Batch(text, text.count(b"\n"), self.line, self.at, frames)
        self.line += batch.rows
        self.at += len(text)
        return batch

    @property
    def too_large(self) -> bool:
        return len(self.pending) > self.limit


def detect_encoding(first_bytes: bytes) -> Encoding:
    """``zstd`` when the file starts with a frame magic, else ``plain``."""
    return "zstd" if first_bytes.startswith(MAGIC) else "plain"


def iter_batches(stream: BinaryIO, size: int, stats: ContainerStats) -> Iterator[Batch]:
    """Rows of a log in order, many at a time.

    Args:
        stream: positioned at the start; read sequentially, never written.
        size: bytes of it that count; what is appended later is not seen.
        stats: filled while the batches are drawn; its ``issues`` say what was not sound.

    Source: spec session-log 2.3 and 2.4; RFC 8878 section 3.1.1 for the frame structure.
    """
    source = Input(stream, size)
    stats.size_bytes = size
    stats.encoding = detect_encoding(source.peek(4))
    batches = _plain_batches(source, stats) if stats.encoding == "plain" else _zstd_batches(source, stats)
    for batch in batches:
        stats.rows += batch.rows
        stats.decoded_bytes = batch.at + len(batch.text)
        yield batch
    source.drain()
    stats.sha256 = source.hexdigest()
    if source.failure is not None:
        line, sound = stats.rows + 1, [issue for issue in stats.issues if issue.kind != "torn"]
        stats.issues = [*sound, ContainerIssue("bad-frame", source.failure, source.at, line=line)]


def iter_rows(stream: BinaryIO, size: int, stats: ContainerStats) -> Iterator[Row]:
    """Rows of a log in order, one at a time; see ``iter_batches``."""
    for batch in iter_batches(stream, size, stats):
        yield from batch


def _plain_batches(source: Input, stats: ContainerStats) -> Iterator[Batch]:
    lines = _Lines()
    while data := source.take(_BATCH_BYTES):
        if batch := lines.feed(data):
            yield batch
        if lines.too_large:
            dropped = len(lines.pending) + source.drain()[0]
            message = f"row of more than {lines.limit} bytes: {BUDGET.get().text}"
            issue = ContainerIssue("row-too-large", message, lines.at, None, lines.line, dropped)
            stats.issues.append(issue)
            return
    if lines.pending:
        count, at, line = len(lines.pending), lines.at, lines.line
        if is_row(bytes(lines.pending)) and (batch := lines.feed(b"\n")):
            yield batch
            issue = ContainerIssue("no-newline", "the last row is whole but not ended by a newline", at, None, line)
        elif lines.pending.count(0) == count:
            issue = ContainerIssue("zeros", f"{count} zero bytes follow the last row", at, None, line, count)
        else:
            message = f"{count} bytes after the last complete row are not used"
            issue = ContainerIssue("torn", message, at, None, line, count)
        stats.issues.append(issue)


def is_row(data: bytes) -> bool:
    """Whether the bytes are a whole row: a JSON object with a type."""
    if not data.startswith(b"{") or not data.rstrip().endswith(b"}"):
        return False
    try:
        return isinstance(ecma.parse(data).get("type"), str)
    except (ecma.EcmaSyntaxError, RecursionError):
        return False


class TornFrameError(Exception):
    """The input ends inside the frame."""


def _zstd_batches(source: Input, stats: ContainerStats) -> Iterator[Batch]:
    lines = _Lines()
    decoder = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    while source.peek(1):
        if stats.frames and not lines.pending and (batch := _sound_frames(source, decoder, stats, lines)):
            yield batch
            continue
        frame, frame_at, first_line = stats.frames, source.at, lines.line
        held: list[Batch] = []
        held_bytes = 0
        try:
            for text in frame_texts(source, decoder):
                if batch := lines.feed(text, ((lines.line, frame, frame_at),)):
                    held.append(batch)
                    held_bytes += len(batch.text)
                if held_bytes > _HELD_BYTES:
                    yield from held
                    held, held_bytes = [], 0
                if lines.line > stats.size_bytes + _SPARE_ROWS:
                    raise zstandard.ZstdError("the frame decodes to more rows than the file has bytes: no log does")
                if lines.too_large:
                    raise zstandard.ZstdError(f"row of more than {lines.limit} bytes: {BUDGET.get().text}")
        except TornFrameError:
            dropped = source.at - frame_at + source.drain()[0]
            yield from held
            kept = f", {lines.line - first_line} complete rows of it kept" if lines.line > first_line else ""
            message = f"the last frame is cut off after {dropped} bytes{kept}"
            stats.issues.append(ContainerIssue("torn", message, frame_at, frame, lines.line, dropped))
            return
        except (zstandard.ZstdError, MemoryError) as error:
            read = source.at - frame_at
            dropped, are_zero = source.drain()
            kind: Literal["bad-frame", "zeros", "row-too-large"] = "row-too-large" if lines.too_large else "bad-frame"
            message = "not enough memory to decode a frame" if isinstance(error, MemoryError) else str(error)
            if not read and frame and are_zero:
                kind, message = "zeros", f"{dropped} zero bytes follow the last frame"
            stats.issues.append(ContainerIssue(kind, message, frame_at, frame, first_line, read + dropped))
            return
        yield from held
        stats.frames += 1
        if frame == 0 and (lines.line != 2 or lines.pending):
            message = f"the first frame holds {lines.line - 1} complete lines, not exactly the session header line"
            stats.issues.append(ContainerIssue("first-frame", message, frame_at, frame, 1))
        if lines.pending:
            message = f"a complete frame ends inside a row ({len(lines.pending)} bytes without a newline)"
            stats.issues.append(ContainerIssue("open-row", message, frame_at, frame, lines.line))
            if batch := lines.feed(b"\n", ((lines.line, frame, frame_at),)):
                yield batch


def _sound_frames(
    source: Input, decoder: zstandard.ZstdDecompressor, stats: ContainerStats, lines: _Lines
) -> Batch | None:
    """The next frames as far as they lie here as a whole, decode and end with a row; None where the first does not."""
    texts: list[bytes] = []
    frames: list[tuple[int, int, int]] = []
    line, size = lines.line, 0
    while size < _BATCH_BYTES and (end := _small_frame(source.buffer, source.start)):
        decode = decoder.decompressobj(write_size=_BLOCK_BYTES)
        try:
            text = decode.decompress(source.buffer[source.start : end])
        except (zstandard.ZstdError, MemoryError):
            break
        if not decode.eof or text[-1:] != b"\n":
            break
        frames.append((line, stats.frames, source.at))
        texts.append(text)
        line += text.count(b"\n")
        size += len(text)
        stats.frames += 1
        source.at += end - source.start
        source.start = end
    return lines.feed(b"".join(texts), tuple(frames)) if texts else None


def _small_frame(data: bytes, start: int) -> int:
    """Where the frame of at most eight blocks ends that lies here as a whole; 0 where the blocks must be looked at."""
    if data[start : start + 4] != MAGIC or len(data) < start + 18 or data[start + 4] & 0x08:
        return 0
    at = start + _header_size(data[start + 4])
    for _ in range(8):
        if at + 3 > len(data):
            return 0
        word = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        kind, size = (word >> 1) & 3, word >> 3
        if kind == 3 or size > _BLOCK_BYTES:
            return 0
        at += 4 if kind == 1 else 3 + size
        if word & 1:
            at += data[start + 4] & 0x04
            return at if at <= len(data) else 0
    return 0


def frame_texts(source: Input, decoder: zstandard.ZstdDecompressor) -> Iterator[bytes]:
    """Decoded text of one frame, block by block; the checksum is verified before the last piece is given."""
    decode = decoder.decompressobj(write_size=_BLOCK_BYTES)
    header = _frame_header(source)
    checked = bool(header[4] & 0x04)
    source.take(len(header))
    yield decode.decompress(header)
    last = False
    while not last:
        block_header = source.peek(3)
        if len(block_header) < 3:
            raise TornFrameError
        word = int.from_bytes(block_header, "little")
        last, kind, size = bool(word & 1), (word >> 1) & 3, word >> 3
        if kind == 3 or size > _BLOCK_BYTES:
            raise zstandard.ZstdError("damaged block header")
        need = 3 + (1 if kind == 1 else size) + (4 if last and checked else 0)
        block = source.take(need)
        yield decode.decompress(block)
        if len(block) < need:
            raise TornFrameError
    if not decode.eof:
        raise zstandard.ZstdError("frame does not end where its blocks do")


def _header_size(descriptor: int) -> int:
    """Bytes of a frame header, magic included."""
    single = bool(descriptor & 0x20)
    content_size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
    return 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3] + content_size


def _frame_header(source: Input) -> bytes:
    start = source.peek(5)
    if not MAGIC.startswith(start[:4]):
        raise zstandard.ZstdError("no zstd frame starts here (wrong magic number)")
    if len(start) < 5:
        raise TornFrameError
    if start[4] & 0x08:
        raise zstandard.ZstdError("damaged frame header")
    size = _header_size(start[4])
    header = source.peek(size)
    if len(header) < size:
        raise TornFrameError
    return header
