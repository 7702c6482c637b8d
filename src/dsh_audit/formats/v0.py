"""Format 0: releases 0.0.1 to 0.1.1 and, in a later dialect, 0.1.2. Source: spec session-log 4.

The reader accepts what 0.1.1-rc.2 or 0.1.2-rc.1 accepts, and the older dialects that the released migration
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

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


def decode_row_v0(row: Json, *, line: int = 0) -> tuple[Event, ...]:
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


def check_tool_result(event: Event) -> None:
    """Formats 0 to 3: one wrapped result of the call that its source names; raises FormatError."""
    check_wrapped_result(check_message(event, ROLES))


def check_any_message(event: Event) -> None:
    """An identified message of the right role; raises FormatError."""
    check_message(event, ROLES)


RESTORED: dict[str, Callable[[Event], None]] = {
    "request/header": lambda event: check_request_header(event.data),
    "user/message": check_any_message,
    "assistant/message": check_any_message,
    "tool/result": check_tool_result,
}
"""What 0.1.1 asks of the payload of an event as it restores a session."""


def encode_row_v0(event: Event) -> dict[str, Json]:
    """The event as a plain row, ``sourceEventSeqs`` as a plain list, as 0.1.1 writes it."""
    return encode_event(event, OP_KEYS, ranges=False)


def encode_row_v0_late(event: Event) -> dict[str, Json]:
    """The event as a plain row, ``sourceEventSeqs`` with ranges, as 0.1.2 writes it."""
    return encode_event(event, OP_KEYS, ranges=True)


def pack_chunk_runs_v0(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """Storage rows of one append batch, runs of three or more deltas packed; as dsh-session 0.1.1-rc.2."""
    for record in stream.pack_chunk_runs(events):
        yield encode_row_v0(record) if isinstance(record, Event) else record


FORMAT = Format(
    version=0,
    parse_session_header=parse_session_header,
    decode_row=decode_row_v0,
    encode_row=encode_row_v0,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES,
    restored=RESTORED,
    packs_chunks=True,
    new_dialects=lambda session_header: LegacyReader(session_header.id),
)
