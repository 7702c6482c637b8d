"""What a damaged log still holds: rows behind a row that does not fit, sound frames behind a damaged one, and what a
file is that does not begin as a log does."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, BinaryIO

import orjson
import zstandard

from dsh_audit.events import Json, as_list, as_object
from dsh_audit.log.container import MAGIC, TornFrameError, frame_texts, is_row
from dsh_audit.log.input import Input
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET, is_admitted

_SEARCHED = 64 << 20
_TRIED = 2000
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
"""Byte order marks that editors put before a text."""


@dataclass(slots=True)
class Suffix:
    """The rows from one on that the harness does not take.

    Attributes:
        rows: how many, packed ones once.
        readable: of these.
        events: that the readable ones stand for.
        first_seq, last_seq: of the readable ones; None without any.
        is_dense: they follow each other without a gap.
        turns: that they start.
        is_committed: one of them ends a turn, so the harness had gone on.
        tail: a half row and a whole one shared the first line.
    """

    rows: int = 0
    readable: int = 0
    events: int = 0
    first_seq: int | None = None
    last_seq: int = -1
    is_dense: bool = True
    turns: list[int] = field(default_factory=list)
    is_committed: bool = False
    tail: bool = False

    def see(self, data: bytes) -> None:
        """The next row."""
        value = parse_loosely(data)
        if value is None and not self.rows and (start := _last_row(data)) > 0:
            self.tail, value = True, parse_loosely(data[start:])
        self.rows += 1
        if value is not None:
            self._take(value)

    def _take(self, value: dict[str, Json]) -> None:
        payload = as_object(value.get("data"))
        seq = value.get("seq", value.get("seq0"))
        if not isinstance(seq, int) or not isinstance(value.get("type"), str):
            return
        count = len(as_list(payload.get("dt"))) + 1 if "seq0" in value else 1
        self.readable += 1
        self.events += count
        if self.first_seq is None:
            self.first_seq = seq
        else:
            self.is_dense = self.is_dense and seq == self.last_seq + 1
        self.last_seq = seq + count - 1
        if value["type"] == "turn/start" and isinstance(payload.get("turn"), int):
            self.turns.append(payload["turn"])
        self.is_committed = self.is_committed or value["type"] == "turn/end"

    def describe(self, expected: int, line: int) -> str:
        """What is readable and what was lost, one sentence.

        Args:
            expected: seq that was to come next.
            line: of the first row.
        """
        if self.first_seq is None:
            return f"{_count(self.rows, 'row')} from line {line} on: none is readable"
        turns = f", hold turn {', '.join(map(str, self.turns[:5]))}" if self.turns else ""
        held = f"{_count(self.readable, 'row')} of {self.rows} from line {line} on are readable{turns}"
        if self.readable == self.rows:
            held = f"the {_count(self.rows, 'row')} from line {line} on are readable{turns}"
        if self.tail:
            held = f"a torn row and a whole one share line {line}: a write failed there; {held}"
        if self.first_seq < expected:
            lost = "nothing is missing" if self.is_dense and self.readable == self.rows else "more is damaged behind it"
            return f"{held} and start a second chain at seq {self.first_seq}: two processes wrote the session; {lost}"
        lost = _lost(expected, self.first_seq)
        more = "" if self.is_dense and self.readable == self.rows else "; more is damaged behind it"
        return f"{held}, seq {self.first_seq} to {self.last_seq}; {lost}{more}"

    def details(self, expected: int) -> dict[str, Any]:
        """The same as JSON values."""
        facts: dict[str, Any] = {"rows": self.rows, "readable_rows": self.readable, "readable_events": self.events}
        if self.first_seq is not None:
            facts |= {"first_seq": self.first_seq, "last_seq": self.last_seq, "turns": self.turns}
            facts["lost_events"] = max(0, self.first_seq - expected)
        return facts


def _lost(expected: int, found: int) -> str:
    if found <= expected:
        return "no event is missing"
    if found == expected + 1:
        return f"the event seq {expected} is lost"
    return f"the events seq {expected} to {found - 1} are lost"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _bounded(pieces: Iterator[bytes]) -> bytes:
    """A frame's text as far as the budget admits it."""
    kept, limit = bytearray(), BUDGET.get().document_bytes
    for piece in pieces:
        kept += piece
        if len(kept) > limit:
            raise MemoryError
    return bytes(kept)


def parse_loosely(data: bytes) -> dict[str, Json] | None:
    """A row as an object, None for anything else."""
    if not is_admitted(data):
        return None
    try:
        value = orjson.loads(data)
    except ValueError:
        try:
            value = ecma.parse(data)
        except (ecma.EcmaSyntaxError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _last_row(data: bytes) -> int:
    """Where a whole row starts at the end of a line that is none; -1 without one."""
    at = len(data)
    for _ in range(64):
        at = data.rfind(b'{"type":', 0, at)
        if at < 0 or is_row(data[at:]):
            return at
    return -1


@dataclass(frozen=True, slots=True)
class SoundFrames:
    """The frames behind a damaged one that can be decoded.

    Args:
        at: file offset of the first.
        frames: how many.
        suffix: their rows.
    """

    at: int
    frames: int
    suffix: Suffix

    def describe(self, expected: int) -> str:
        """One sentence; ``expected`` is the seq that was to come next."""
        suffix, first = self.suffix, self.suffix.first_seq
        text = f"from byte {self.at} on {_count(self.frames, 'sound frame')} hold {_count(suffix.rows, 'row')}"
        if first is None:
            return text
        return f"{text}, {_count(suffix.events, 'event')}, seq {first} to {suffix.last_seq}; {_lost(expected, first)}"


def find_sound_frames(stream: BinaryIO, at: int) -> SoundFrames | None:
    """Search for frames behind an offset, at most 64 MiB of them.

    Args:
        stream: seekable, of a zstd log.
        at: offset of the damaged frame.
    """
    stream.seek(at + 1)
    rest = stream.read(_SEARCHED)
    decoder = zstandard.ZstdDecompressor(max_window_size=128 << 20)
    source, suffix = io.BytesIO(rest), Suffix()
    first, frames, place, pending = -1, 0, 0, b""
    for _ in range(_TRIED):
        if (place := rest.find(MAGIC, place)) < 0:
            break
        while rest.startswith(MAGIC, place):
            source.seek(place)
            frame = Input(source, len(rest) - place)
            try:
                text = _bounded(frame_texts(frame, decoder))
            except (TornFrameError, zstandard.ZstdError, MemoryError):
                break
            first = place if first < 0 else first
            frames += 1
            place += frame.at
            *rows, pending = (pending + text).split(b"\n")
            for row in rows:
                suffix.see(row)
        place += 1
    return SoundFrames(at + 1 + first, frames, suffix) if frames else None


def describe_head(stream: BinaryIO, size: int, is_zstd_name: bool, problem: str) -> str:
    """What a file is whose first row is no session header.

    Args:
        stream: at the start.
        size: of the file, above 0.
        is_zstd_name: the name says that it is compressed.
        problem: what was met, for a file that begins as a log does.
    """
    head = stream.read(4)
    if not any(head):
        source = Input(stream, size - len(head))
        if source.drain()[1]:
            return f"all {size} bytes are zero, nothing of it is left"
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return _marked(stream, mark, encoding)
    is_frame = head == MAGIC
    if not is_frame and not is_zstd_name:
        return problem
    found = find_sound_frames(stream, 0)
    shown = " ".join(f"{byte:02x}" for byte in head)
    what = (
        f"the first frame, which holds the session header, is damaged ({problem})"
        if is_frame
        else f"wrong magic number ({shown}, not 28 b5 2f fd) at byte 0"
    )
    return f"{what}; no sound frame is behind it" if found is None else f"{what}; {found.describe(0)}"


def _marked(stream: BinaryIO, mark: bytes, encoding: str) -> str:
    stream.seek(len(mark))
    rows = [row for row in stream.read(_SEARCHED).decode(encoding, "replace").split("\n") if row.strip()]
    readable = [value for row in rows if (value := parse_loosely(row.encode("utf-8", "replace"))) is not None]
    ident = readable[0].get("id") if readable else None
    what = "a UTF-8 byte order mark" if encoding == "utf-8" else f"a {encoding[:6].upper()} byte order mark"
    text = (
        f"it begins with {what}, which the harness refuses; {len(readable)} of {_count(len(rows), 'row')} are readable"
    )
    text += f", of session {ident}" if isinstance(ident, str) else ""
    return f"{text}; save it as UTF-8 without a mark"


def read_identity(head: bytes) -> tuple[str, str | None] | None:
    """Session id and cwd that a file names whose text begins as a session header, marks and encodings aside."""
    for mark, encoding in MARKS:
        if head.startswith(mark):
            head = head[len(mark) :].decode(encoding, "replace").encode()
    value = parse_loosely(head.split(b"\n", 1)[0])
    if value is None or value.get("type") != "session" or not isinstance(value.get("id"), str):
        return None
    cwd = value.get("cwd")
    return value["id"], cwd if isinstance(cwd, str) else None


def split_at_blanks(text: bytes, line: int) -> Iterable[tuple[bytes, int]]:
    """Runs of rows between blank lines, each with the number of its first line; a blank line is given as it is."""
    run: list[bytes] = []
    for number, row in enumerate(text[:-1].split(b"\n"), line):
        if row.strip():
            run.append(row)
            continue
        if run:
            yield b"\n".join(run) + b"\n", number - len(run)
            run = []
        yield b"", number
    if run:
        yield b"\n".join(run) + b"\n", line + text.count(b"\n") - len(run)
