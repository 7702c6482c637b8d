"""Format 2: releases 0.1.3. Settlement events carry their output stream. Source: spec session-log 6;
dsh-session-format-v1-to-v2 0.1.3-alpha.2.
"""

from __future__ import annotations

from dsh_audit.events import SURFACE_TYPES, Event, Json, SessionHeader, SurfaceOp
from dsh_audit.formats import v0
from dsh_audit.formats.base import Format, FormatError, RowRejectedError, refused
from dsh_audit.formats.envelope import (
    check_sources,
    decode_ranges,
    encode_event,
    is_count,
    is_object,
    is_safe_integer,
    parse_surface_op,
    require_count,
    require_keys,
    require_object,
    unusual_order,
)
from dsh_audit.formats.payload_events import payload_shapes
from dsh_audit.formats.session_headers import parse_is_seeded_header
from dsh_audit.record import dataclass

OP_KEYS = ("start", "end")
FEEDBACK_TYPES = frozenset({"feedback/message-put", "feedback/message-delete"})
KNOWN_TYPES = frozenset(payload_shapes(2)) | FEEDBACK_TYPES
_REQUIRED = ("type", "seq", "time", "data")
_OPTIONAL = ("ignorable", "sourceEventSeqs", "surfaceOp")


@dataclass(frozen=True, slots=True)
class ScannedRow:
    """A row that the scanner of format 2 and later decodes; its surface operation is not yet looked at."""

    row: dict[str, Json]
    type: str
    seq: int
    time: int
    sources: tuple[int, ...] | None

    def event(self, op: SurfaceOp | None, line: int) -> Event:
        """The row as an event; an operation that has no effect is kept for printing."""
        row = self.row
        return Event(
            type=self.type,
            seq=self.seq,
            time=self.time,
            data=row["data"],
            ignorable="ignorable" in row,
            source_event_seqs=self.sources,
            surface_op=op,
            line=line,
            order=unusual_order(row),
            opaque_op=row.get("surfaceOp") if op is None else None,
        )


def scan_row(row: Json) -> ScannedRow:
    """Decode the envelope of a row of format 2 and later.

    Raises:
        RowRejectedError: ``undecodable``.
    """
    try:
        found = require_object(row, "a stored row")
        require_keys(found, _REQUIRED, _OPTIONAL, "row")
        if not isinstance(found["type"], str):
            raise FormatError("row type must be a string")
        if not is_safe_integer(found["time"]):
            raise FormatError("row time must be a safe integer")
        if found.get("ignorable", True) is not True:
            raise FormatError("row ignorable must be true when present")
        sources = None
        if "sourceEventSeqs" in found:
            seq = require_count(found["seq"], "row seq")
            sources = decode_ranges(found["sourceEventSeqs"], seq)
            check_sources(sources, seq, found["type"], allow_empty=True)
    except FormatError as error:
        raise RowRejectedError(error.reason) from None
    if not is_count(found["seq"]):
        raise RowRejectedError("row seq must be a non-negative safe integer", row_type=found["type"])
    return ScannedRow(found, found["type"], found["seq"], found["time"], sources)


def surface_op(row: ScannedRow, surface_types: frozenset[str], keys: tuple[str, str]) -> SurfaceOp | None:
    """The operation of a row of known type, with the rules that need no surface; raises FormatError."""
    if row.type not in surface_types:
        if row.sources is not None or "surfaceOp" in row.row:
            raise FormatError(f"{row.type} is no surface event and cannot carry surfaceOp or sourceEventSeqs")
        return None
    if "surfaceOp" not in row.row:
        raise FormatError(f"{row.type} requires surfaceOp")
    op = parse_surface_op(row.row["surfaceOp"], row.type, keys)
    if op.start is not None and op.end is not None and max(op.start, op.end) >= row.seq:
        raise FormatError(f"{row.type} replacement must reference earlier events")
    if row.sources is not None:
        if row.type == "assistant/message":
            raise FormatError("assistant/message embeds its stream and cannot carry sourceEventSeqs")
        check_sources(row.sources, row.seq, row.type, allow_empty=False)
    return op


def parse_session_header(row: Json) -> SessionHeader:
    """The first row; raises RowRejectedError."""
    return parse_is_seeded_header(row, 2)


def decode_row_v2(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row into its event; raises RowRejectedError."""
    scanned = scan_row(row)
    if scanned.type not in KNOWN_TYPES:
        return (scanned.event(None, line),)
    try:
        return (scanned.event(surface_op(scanned, SURFACE_TYPES, OP_KEYS), line),)
    except FormatError as error:
        raise refused(error, scanned.seq, scanned.type) from None


def check_settlement(event: Event) -> None:
    """A settlement names its turn and step and has a stream."""
    data = event.data
    if not is_object(data) or not is_count(data.get("turn")) or not is_count(data.get("step")):
        raise FormatError(f"{event.type} has no valid turn and step")
    if not isinstance(data.get("stream"), list):
        raise FormatError(f"{event.type} has no stream")


def check_answer(event: Event) -> None:
    """An assistant message is a message and a settlement; raises FormatError."""
    v0.check_any_message(event)
    check_settlement(event)


RESTORED = {**v0.RESTORED, "assistant/message": check_answer, "assistant/attempt": check_settlement}
"""What re-loading asks of the payload of an event."""


def encode_row_v2(event: Event) -> dict[str, Json]:
    """The event as the harness writes it, ``sourceEventSeqs`` with ranges."""
    return encode_event(event, OP_KEYS, ranges=True)


FORMAT = Format(
    version=2,
    parse_session_header=parse_session_header,
    decode_row=decode_row_v2,
    encode_row=encode_row_v2,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES,
    restored=RESTORED,
)
