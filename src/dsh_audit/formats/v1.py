"""Format 1: written by no release; what the released migration makes of format 0. Source: spec session-log 5;
dsh-session-format-v0-to-v1 0.1.3-alpha.2.
"""

from __future__ import annotations

from dsh_audit.events import SURFACE_TYPES, Event, Json, SessionHeader
from dsh_audit.formats import stream, v0
from dsh_audit.formats.base import Format, FormatError, RowRejectedError
from dsh_audit.formats.envelope import encode_event, is_object, require_count
from dsh_audit.formats.session_headers import parse_seed_length_header

KNOWN_TYPES = v0.KNOWN_TYPES


def parse_session_header(row: Json) -> SessionHeader:
    """The first row; raises RowRejectedError."""
    return parse_seed_length_header(row, 1, unknown_keys=False)


def decode_row_v1(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row: as format 0, but packed rows have counts as coordinates and tool calls have ids.

    Raises:
        RowRejectedError: as in format 0.
    """
    try:
        check_packed_row(row)
    except FormatError as error:
        raise RowRejectedError(error.reason) from None
    return v0.decode_row_v0(row, line=line)


def check_packed_row(row: Json) -> None:
    """What the released codec of formats 0 and 1 asks of a packed row beyond the reader of 0.1.1."""
    if not is_object(row) or not isinstance(row.get("type"), str) or row["type"] not in stream.CHUNK_ROWS:
        return
    data = row.get("data")
    if not is_object(data):
        return
    for key in ("turn", "step", "index"):
        require_count(data.get(key), f"{row['type']} {key}")
    if row["type"] == "tool-call-chunks" and data.get("id") == "":
        raise FormatError("tool-call-chunks id must not be empty")


def encode_row_v1(event: Event) -> dict[str, Json]:
    """The event as a plain row, ``sourceEventSeqs`` with ranges."""
    return encode_event(event, v0.OP_KEYS, ranges=True)


FORMAT = Format(
    version=1,
    parse_session_header=parse_session_header,
    decode_row=decode_row_v1,
    encode_row=encode_row_v1,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES,
    restored=v0.RESTORED,
    packs_chunks=True,
)
