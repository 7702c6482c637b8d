"""Format 3: releases 0.1.5 and 0.1.6. The system prompt is a message. Source: spec session-log 7;
dsh-session-format-v2-to-v3 0.1.5-alpha.1.
"""

from __future__ import annotations

from dsh_audit.events import SURFACE_TYPES_V3, Event, Json, SessionHeader
from dsh_audit.formats.base import Format, FormatError, RowRejectedError, refused
from dsh_audit.formats.envelope import encode_event, is_object, require_object
from dsh_audit.formats.payload_messages import message
from dsh_audit.formats.restore import check_message
from dsh_audit.formats.session_headers import parse_is_seeded_header
from dsh_audit.formats.shapes import POSITIVE, record
from dsh_audit.formats.v2 import KNOWN_TYPES as KNOWN_TYPES_V2
from dsh_audit.formats.v2 import RESTORED as RESTORED_V2
from dsh_audit.formats.v2 import scan_row, surface_op

OP_KEYS = ("startSeq", "endSeq")
RETIRED_DISPATCHES = frozenset({"tool/code-dispatch", "tool/code-dispatch-start"})
ROLES = {"system/message": "system"}
_LATER_TYPES = frozenset({"deliverables/presented", "image/offload", "subagent/catalog", "workspace/changes"})
_CODEC_TYPES = (KNOWN_TYPES_V2 - RETIRED_DISPATCHES) | {
    "system/message",
    "tool/ptc-dispatch",
    "tool/ptc-dispatch-start",
}
KNOWN_TYPES = _CODEC_TYPES | _LATER_TYPES

SYSTEM_MESSAGE = record({"turn": POSITIVE, "step": POSITIVE, "message": message(3, "system", kind="plugin")})
"""Payload of ``system/message``."""


def parse_session_header(row: Json) -> SessionHeader:
    """The first row; raises RowRejectedError."""
    return parse_is_seeded_header(row, 3)


def check_admission(row: dict[str, Json]) -> None:
    """Rules that hold for a row even where everything after a fault is dropped; raises FormatError."""
    row_type = row["type"]
    if row_type == "request/header":
        data = require_object(row.get("data"), "request/header data")
        if "system" in require_object(data.get("header"), "request/header header"):
            raise FormatError("request/header carries the retired header.system")
    elif row_type == "system/message":
        SYSTEM_MESSAGE.check(row.get("data"), "system/message data")
    elif row.get("ignorable") is not True:
        raise FormatError(f"unknown event type {row_type!r}")


def decode_row_v3(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row into its event; raises RowRejectedError."""
    scanned = scan_row(row)
    if scanned.type not in KNOWN_TYPES:
        return (scanned.event(None, line),)
    try:
        op = surface_op(scanned, SURFACE_TYPES_V3, OP_KEYS)
        if scanned.type in WRITTEN:
            WRITTEN[scanned.type](scanned.row["data"])
    except FormatError as error:
        if scanned.type not in _CODEC_TYPES:
            raise refused(error, scanned.seq, scanned.type) from None
        raise RowRejectedError(error.reason, seq=scanned.seq, row_type=scanned.type) from None
    return (scanned.event(op, line),)


def check_header(data: Json) -> None:
    """A request header has no prompt, and empty members are omitted; raises FormatError."""
    found = require_object(data, "request/header data")
    header = require_object(found.get("header"), "request/header header")
    if "system" in header:
        raise FormatError("request/header carries the retired header.system")
    if header.get("tools") == [] or header.get("adapterDefaults") == {}:
        raise FormatError("request/header must omit empty tools and adapterDefaults")


def check_error_result(data: Json) -> None:
    """An error marks an error result; raises FormatError."""
    found = require_object(data, "tool/result data")
    if "error" not in found:
        return
    content = require_object(found.get("message"), "tool/result message").get("content")
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    if not is_object(block) or block.get("type") != "tool-result" or block.get("isError") is not True:
        raise FormatError("tool/result carries an error for a result that is none")


WRITTEN = {"request/header": check_header, "tool/result": check_error_result}
"""What the running harness asks of the payload of an event."""


def check_prompt(event: Event) -> None:
    """A system message is a message; raises FormatError."""
    check_message(event, ROLES)


RESTORED = {**RESTORED_V2, "system/message": check_prompt}
"""What re-loading asks of the payload of an event."""


def encode_row_v3(event: Event) -> dict[str, Json]:
    """The event as the harness writes it, ``sourceEventSeqs`` with ranges."""
    return encode_event(event, OP_KEYS, ranges=True)


FORMAT = Format(
    version=3,
    parse_session_header=parse_session_header,
    decode_row=decode_row_v3,
    encode_row=encode_row_v3,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES_V3,
    restored=RESTORED,
    written=WRITTEN,
    replays_inbox=True,
    admitted=check_admission,
    admitted_types=RETIRED_DISPATCHES | {"request/header", "system/message"},
)
