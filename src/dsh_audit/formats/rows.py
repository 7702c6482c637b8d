"""Batches of rows → the events that the running harness wrote, as fast as C can check them.

The usual row is decoded with its types checked in C and its payload only where someone reads it; whatever is not usual
goes row by row through the ``decode_row`` of the format, which defines the result. Nothing is usual in a text that may
hold what typed decoding reads in another way than JavaScript does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dsh_audit.events import APPEND, ChunkRun, Event, Json, SessionHeader
from dsh_audit.formats.base import Dialects, Format, FormatError, RowRejectedError
from dsh_audit.formats.envelope import MAX_SAFE_INTEGER, check_sources, decode_ranges
from dsh_audit.formats.restore import InboxReplay
from dsh_audit.formats.stream import CHUNK_ROWS
from dsh_audit.formats.usual import USUAL, is_usual
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.budget import is_admitted

_MAX_LAZY = 1 << 20
_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_SAFE_INTEGER)]
_Time = Annotated[int, msgspec.Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]


class _Row(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    type: str
    data: Raw
    seq: _Count | UnsetType = UNSET
    time: _Time | UnsetType = UNSET
    ignorable: bool | UnsetType = UNSET
    sourceEventSeqs: list[_Count | list[_Count]] | UnsetType = UNSET  # noqa: N815
    surfaceOp: Literal["append"] | dict[str, Json] | UnsetType = UNSET  # noqa: N815
    seq0: _Count | UnsetType = UNSET
    time0: _Time | UnsetType = UNSET


class _ChunkKind(msgspec.Struct, gc=False):
    type: str


class _Chunk(msgspec.Struct, gc=False):
    turn: _Count
    step: _Count
    chunk: _ChunkKind


class _Packed(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    turn: _Count
    step: _Count
    index: _Count
    dt: list[_Time]
    texts: list[str] | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET
    id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


_ROWS = msgspec.json.Decoder(_Row)
_CHUNK = msgspec.json.Decoder(_Chunk)
_PACKED = msgspec.json.Decoder(_Packed)
_HEAD = re.compile(rb'\{"type":"[^"\\]*","seq":[0-9]+,"time":-?[0-9]+,"data":')
_SETTLING = ("usage", "finish")


@dataclass(frozen=True, slots=True)
class ReloadRefusal:
    """The first event that was written and sent, but that re-loading refuses.

    Args:
        reason: the harness's, one line.
    """

    seq: int
    line: int
    reason: str


@dataclass(slots=True)
class RowDecoder:
    """Decodes one log, batch by batch; rows must continue the sequence.

    Args:
        split_at: a seq; no run of chunks stands for events on both sides of it.

    Attributes:
        line: of the row that is being decoded; after an error, of the row at fault.
        next_seq: that the next row must have.
        projected: rows carry neither seq nor time and were numbered here.
        refusal: what re-loading refuses first, None so far.
    """

    form: Format
    session_header: SessionHeader
    split_at: int = 0
    line: int = 0
    next_seq: int = 0
    projected: bool = False
    refusal: ReloadRefusal | None = None
    _old: Dialects | None = field(init=False)
    _usual: dict[str, type] = field(init=False)
    _inbox: InboxReplay = field(default_factory=InboxReplay)

    def __post_init__(self) -> None:
        self._usual = USUAL.get(self.form.version, {})
        self._old = None if self.form.new_dialects is None else self.form.new_dialects(self.session_header)

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of old dialects met so far."""
        return () if self._old is None else self._old.dialects

    def decode(self, text: bytes, line: int) -> Iterator[Event]:
        """The events of complete lines; chunks that need not be looked at one by one as a ChunkRun.

        Args:
            line: number of the first line.

        Raises:
            RowRejectedError: a row that the running harness cannot have written.
            EcmaSyntaxError: a row is not JSON.
        """
        self.line = line
        lines = text.split(b"\n")
        lines.pop()
        fits = is_admitted(text) or all(map(is_admitted, lines))
        rows = _usual_rows(text, len(lines)) if fits else None
        if rows is None:
            for data in lines:
                yield from self._decode_one(data)
                self.line += 1
            return
        at = 0
        while at < len(rows):
            self.line = line + at
            found = self._chunk_run(rows, lines, at) if self.form.packs_chunks else None
            if found is not None:
                run, at = found
                self.next_seq = run.last_seq + 1
                yield run
                continue
            event = self._usual_event(rows[at], lines[at])
            if event is None:
                yield from self._decode_one(lines[at])
            else:
                yield event
            at += 1

    def _usual_event(self, row: _Row, data: bytes) -> Event | None:
        form, op = self.form, row.surfaceOp
        if row.seq is UNSET or row.time is UNSET or not (row.ignorable is row.seq0 is row.time0 is UNSET):
            return None
        if _HEAD.match(data) is None:
            return None
        seqs = None
        try:
            if row.type in form.surface_types:
                if op != "append" or not data.endswith(b'"surfaceOp":"append"}') or data.count(b'"surfaceOp"') != 1:
                    return None
                if row.sourceEventSeqs is not UNSET:
                    seqs = self._sources(row, row.seq)
            elif op is not UNSET or row.sourceEventSeqs is not UNSET or row.type not in form.known_types:
                return None
            value = ecma.parse_even(row.data)
            is_checked = row.type in self._usual and is_usual(self._usual[row.type], value)
            if not is_checked and row.type in form.written:
                form.written[row.type](value)
        except (ValueError, RecursionError):
            return None
        surface_op = None if op is UNSET else APPEND
        event = Event(row.type, row.seq, row.time, value, False, seqs, surface_op, self.line)
        return self._take(event, is_checked=is_checked)

    def _sources(self, row: _Row, seq: int) -> tuple[int, ...]:
        is_answer = row.type == "assistant/message"
        if is_answer and self.form.version >= 2:
            raise FormatError("assistant/message embeds its stream and cannot carry sourceEventSeqs")
        try:
            seqs: tuple[int, ...] = tuple(row.sourceEventSeqs)  # type: ignore[arg-type]
            if seqs and len(set(seqs)) == len(seqs) and max(seqs) < seq:
                return seqs
        except TypeError:  # pairs cannot be hashed
            seqs = decode_ranges(row.sourceEventSeqs, seq)
        check_sources(seqs, seq, row.type, allow_empty=is_answer)
        return seqs

    def _decode_one(self, data: bytes) -> Iterator[Event]:
        for event in self._strict_or_written(self._numbered(ecma.parse(data))):
            yield self._take(event)

    def _strict_or_written(self, value: Json) -> tuple[Event, ...]:
        try:
            return self.form.decode_row(value, line=self.line)
        except RowRejectedError:
            # Re-loading has the say on what it is called.
            self.form.scan_row(value, line=self.line)
            raise

    def _numbered(self, value: Json) -> Json:
        if not is_projected(value):
            return value
        self.projected = True
        return {**value, "seq": self.next_seq, "time": 0}

    def _take(self, event: Event, *, is_checked: bool = False) -> Event:
        """The event in current vocabulary, once its seq has been found to be the next."""
        if event.seq != self.next_seq:
            relation = "gap" if event.seq > self.next_seq else "rewind or duplicate"
            raise RowRejectedError(f"seq {event.seq} where {self.next_seq} was next ({relation})")
        self.next_seq += 1
        try:
            if self._old is not None:
                event = self._old.normalise(event)
            if self.refusal is None and not is_checked:
                self.form.check_reloaded(event)
                if self.form.replays_inbox:
                    self._inbox.check(event)
        except FormatError as error:
            if self.refusal is None:
                self.refusal = ReloadRefusal(event.seq, event.line, error.reason)
        return event

    def _chunk_run(self, rows: list[_Row], lines: list[bytes], first: int) -> tuple[ChunkRun, int] | None:
        """The longest run of chunk rows from a row on, and the row behind it; None where that is no such row."""
        found = _chunks_of(rows[first])
        if found is None or found[2] != self.next_seq:
            return None
        turn, step, seq, count, time, last_time = found
        if seq < self.split_at < seq + count:
            return None
        at = first + 1
        while at < len(rows) and (more := _chunks_of(rows[at])) is not None:
            if (more[0], more[1], more[2]) != (turn, step, seq + count):
                break
            if seq < self.split_at < seq + count + more[3]:
                break
            count += more[3]
            last_time = more[5]
            at += 1
        expand = partial(_expand, self.form, b"\n".join(lines[first:at]), self.line)
        run = ChunkRun(
            "assistant/chunk", seq, time, None, line=self.line, count=count, last_time=last_time,
            turn=turn, step=step, expand=expand,
        )  # fmt: skip
        return run, at


def _usual_rows(text: bytes, count: int) -> list[_Row] | None:
    """The rows of a text, if each line holds exactly one object and nothing that typed decoding reads otherwise."""
    if text[:1] != b"{" or not text.endswith(b"}\n") or text.count(b"}\n{") != count - 1 or ecma.may_be_odd(text):
        return None
    try:
        _ = text.isascii() or text.decode()
        rows = _ROWS.decode_lines(text)
    except (ValueError, RecursionError):
        return None
    return rows if len(rows) == count else None


def _chunks_of(row: _Row) -> tuple[int, int, int, int, int, int] | None:
    """Turn, step, first seq, count, first and last time of a row of chunks, none of which settles an attempt."""
    try:
        if row.type == "assistant/chunk":
            if row.seq is UNSET or row.time is UNSET or not (row.ignorable is row.seq0 is row.time0 is UNSET):
                return None
            if row.sourceEventSeqs is not UNSET or row.surfaceOp is not UNSET:
                return None
            chunk = _CHUNK.decode(row.data)
            if chunk.chunk.type in _SETTLING:
                return None
            return chunk.turn, chunk.step, row.seq, 1, row.time, row.time
        if row.type not in CHUNK_ROWS or row.seq0 is UNSET or row.time0 is UNSET or len(bytes(row.data)) > _MAX_LAZY:
            return None
        if not (row.seq is row.time is row.ignorable is row.sourceEventSeqs is row.surfaceOp is UNSET):
            return None
        packed = _PACKED.decode(row.data)
    except (ValueError, RecursionError):
        return None
    is_call = row.type == "tool-call-chunks"
    members, others = (packed.args, packed.texts) if is_call else (packed.texts, packed.args)
    if members is UNSET or others is not UNSET or (packed.id is not UNSET) != is_call or packed.id == "":
        return None
    if packed.name is not UNSET and not is_call:
        return None
    span = sum(map(abs, packed.dt)) + len(members)
    if len(packed.dt) != len(members) - 1 or max(row.seq0, abs(row.time0)) + span > MAX_SAFE_INTEGER:
        return None
    return packed.turn, packed.step, row.seq0, len(members), row.time0, row.time0 + sum(packed.dt)


def _expand(form: Format, text: bytes, line: int) -> Iterator[Event]:
    for number, data in enumerate(text.split(b"\n"), line):
        yield from form.decode_row(ecma.parse(data), line=number)


def is_projected(value: Json) -> bool:
    """Whether a row is an event body without seq and time, as in the upstream's test fixtures."""
    return isinstance(value, dict) and "seq" not in value and "seq0" not in value and "time" not in value
