"""Format 0: releases 0.0.1 to 0.1.1 and, in a later dialect, 0.1.2. Source: spec session-log 4.

The reader accepts what 0.1.1-rc.2 or 0.1.2-rc.1 accepts, and the older dialects that the released migration
reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsh_audit.events import SURFACE_TYPES, Event, Json, SessionHeader
from dsh_audit.formats import stream
from dsh_audit.formats.base import Format, FormatError, RowRejectedError, refused
from dsh_audit.formats.envelope import (
    check_sources,
    decode_ranges,
    encode_event,
    is_count,
    is_object,
    is_safe_integer,
    parse_surface_op,
    unusual_order,
)
from dsh_audit.formats.payload_events import payload_shapes
from dsh_audit.formats.restore import check_message, check_request_header, check_wrapped_result
from dsh_audit.formats.session_headers import parse_seed_length_header
from dsh_audit.formats.v0_legacy import LegacyReader

OP_KEYS = ("start", "end")
ENVELOPE = frozenset({"type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"})
KNOWN_TYPES = frozenset(payload_shapes(0))
ROLES = {"user/message": "user", "assistant/message": "assistant", "tool/result": "user"}
_ELIGIBLE = SURFACE_TYPES | {"steering/message"}


def parse_session_header(row: Json) -> SessionHeader:
    """The first row; unknown members are ignored, as 0.1.1 does."""
    return parse_seed_length_header(row, 0, unknown_keys=True)


def decode_storage_record(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row: a packed chunk row, or an event of any type.

    Raises:
        RowRejectedError: ``undecodable`` for a malformed chunk row, malformed sources, or a seq that cannot
            be the next; ``refused`` for other faults of the envelope.
    """
    if not is_object(row):
        raise RowRejectedError("a stored row must be an object")
    row_type = row.get("type")
    try:
        if isinstance(row_type, str) and row_type in stream.CHUNK_ROWS:
            return stream.expand_chunk_row(row, line=line)
        seq = 0 if row.get("seq") == 0.0 and not isinstance(row.get("seq"), bool) else row.get("seq")
        if not is_count(seq):
            raise RowRejectedError(
                "seq must be a non-negative safe integer",
                row_type=row_type if isinstance(row_type, str) else None,
            )
        sources = decode_ranges(row["sourceEventSeqs"], seq) if "sourceEventSeqs" in row else None
    except FormatError as error:
        if isinstance(error, RowRejectedError):
            raise
        raise RowRejectedError(error.reason) from None
    try:
        return (_event(row, seq, sources, line),)
    except FormatError as error:
        raise refused(error, seq, row_type if isinstance(row_type, str) else None) from None


def _event(row: dict[str, Json], seq: int, sources: tuple[int, ...] | None, line: int) -> Event:
    row_type, time = row.get("type"), row.get("time")
    if not row.keys() <= ENVELOPE:
        raise FormatError("the envelope has an unexpected member")
    # The reader of 0.1.1 takes −0 for a safe integer; the migrations do not, so it is kept.
    sound_time = is_safe_integer(time) or (type(time) is float and time == 0.0)
    if not isinstance(row_type, str) or time is None or not sound_time or "data" not in row:
        raise FormatError("the envelope needs a type, a safe integer time and data")
    if row.get("ignorable", True) is not True:
        raise FormatError("ignorable must be true when present")
    op = None
    if row_type in _ELIGIBLE:
        if "surfaceOp" not in row:
            raise FormatError(f"{row_type} requires surfaceOp")
        op = parse_surface_op(row["surfaceOp"], row_type, OP_KEYS)
        check_sources(sources or (), seq, row_type, allow_empty=sources is None or row_type == "assistant/message")
    elif "surfaceOp" in row or sources is not None:
        raise FormatError(f"{row_type} is no surface event and cannot carry surfaceOp or sourceEventSeqs")
    return Event(
        type=row_type,
        seq=seq,
        time=time,
        data=row["data"],
        ignorable="ignorable" in row,
        source_event_seqs=sources,
        surface_op=op,
        line=line,
        order=unusual_order(row),
    )


@dataclass(slots=True)
class V0Restorer:
    """Reads old dialects, then checks the event as 0.1.1 does."""

    legacy: LegacyReader

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the old dialects met so far."""
        return self.legacy.dialects

    def read(self, event: Event) -> Event:
        """The event in the vocabulary of 0.1.1; raises RowRejectedError (``refused``)."""
        if event.type == "assistant/chunk":
            return event
        try:
            event = self.legacy.normalise(event)
            check_event(event)
        except FormatError as error:
            raise refused(error, event.seq, event.type) from None
        return event


def check_event(event: Event) -> None:
    """What 0.1.1 checks in the payload of an event: messages and the request header; raises FormatError."""
    if event.type == "request/header":
        check_request_header(event.data)
    elif event.type in ROLES:
        message = check_message(event, ROLES)
        if event.type == "tool/result":
            check_wrapped_result(message)


def encode_row(event: Event) -> dict[str, Json]:
    """The event as a plain row, ``sourceEventSeqs`` as a plain list, as 0.1.1 writes it."""
    return encode_event(event, OP_KEYS, ranges=False)


def encode_row_late(event: Event) -> dict[str, Json]:
    """The event as a plain row, ``sourceEventSeqs`` with ranges, as 0.1.2 writes it."""
    return encode_event(event, OP_KEYS, ranges=True)


def pack_chunk_runs(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """Storage rows of one append batch, runs of three or more deltas packed; as dsh-session 0.1.1-rc.2."""
    for record in stream.pack_chunk_runs(events):
        yield encode_row(record) if isinstance(record, Event) else record


FORMAT = Format(
    version=0,
    parse_session_header=parse_session_header,
    decode_storage_record=decode_storage_record,
    new_restorer=lambda session_header: V0Restorer(LegacyReader(session_header.id)),
    encode_row=encode_row,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES,
)
