"""Format 4: releases 0.1.7 to 0.2.1. Tool and developer messages have roles of their own. Source: spec
session-log 8; dsh-session and dsh-session-format-v3-to-v4 in the runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

from dsh_audit.events import SURFACE_TYPES_V4, Event, Json, SessionHeader
from dsh_audit.formats.base import Format, FormatError, refused
from dsh_audit.formats.envelope import encode_event, is_object
from dsh_audit.formats.restore import check_message, check_request_header
from dsh_audit.formats.session_headers import parse_is_seeded_header
from dsh_audit.formats.v2 import check_settlement, scan_row, surface_op
from dsh_audit.formats.v3 import KNOWN_TYPES as KNOWN_TYPES_V3
from dsh_audit.formats.v3 import OP_KEYS
from dsh_audit.formats.v4_admission import ADMITTED_TYPES, WRITTEN, check_admission, messages_of

KNOWN_TYPES = KNOWN_TYPES_V3 | {
    "developer/message",
    "job/registered",
    "job/settled",
    "working-directory/change",
}
ROLES = {
    "system/message": "system",
    "developer/message": "developer",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "tool",
}
_REASONS = ("initial", "resume", "change", "series")


def parse_session_header(row: Json) -> SessionHeader:
    """The first row; raises RowRejectedError."""
    return parse_is_seeded_header(row, 4)


def decode_row_v4(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row into its event; raises RowRejectedError."""
    scanned = scan_row(row)
    if scanned.type not in KNOWN_TYPES and "ignorable" in scanned.row:
        return (scanned.event(None, line),)
    try:
        op = surface_op(scanned, SURFACE_TYPES_V4, OP_KEYS)
        if scanned.type in WRITTEN:
            WRITTEN[scanned.type](scanned.row["data"])
    except FormatError as error:
        raise refused(error, scanned.seq, scanned.type) from None
    return (scanned.event(op, line),)


def _check_message(event: Event) -> None:
    message = check_message(event, ROLES)
    if event.type == "system/message" and message["source"]["kind"] != "system-prompt":
        raise FormatError("system/message message must have system-prompt source")
    if event.type == "assistant/message":
        check_settlement(event)
    _check_sources(event)


def _check_header(event: Event) -> None:
    data = event.data
    check_request_header(data)
    if data.get("reason") not in _REASONS:
        raise FormatError("request/header has an invalid reason")
    if data.get("startsSeries", True) is not True:
        raise FormatError("request/header has an invalid startsSeries marker")


def _check_sources(event: Event) -> None:
    if not is_object(event.data):
        return
    if event.type == "agent/inbox/spliced" and not isinstance(event.data.get("inserted"), list):
        raise FormatError("agent/inbox/spliced requires a message array")
    if event.type == "session/title-llm-request" and not isinstance(event.data.get("messages"), list):
        raise FormatError("session/title-llm-request requires a message array")
    for message in messages_of(event.type, event.data):
        source = message.get("source") if is_object(message) else None
        kind = source.get("kind") if is_object(source) else None
        if not isinstance(kind, str) or kind in ("", "plugin"):
            raise FormatError(f"{event.type} message requires a source kind of its producer")


RESTORED = {
    **dict.fromkeys(ROLES, _check_message),
    "request/header": _check_header,
    "assistant/attempt": check_settlement,
    "agent/inbox/spliced": _check_sources,
    "session/title-llm-request": _check_sources,
}
"""What re-loading asks of the payload of an event."""


def encode_row_v4(event: Event) -> dict[str, Json]:
    """The event as the harness writes it, ``sourceEventSeqs`` with ranges."""
    return encode_event(event, OP_KEYS, ranges=True)


FORMAT = Format(
    version=4,
    parse_session_header=parse_session_header,
    decode_row=decode_row_v4,
    encode_row=encode_row_v4,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES_V4,
    restored=RESTORED,
    written=WRITTEN,
    replays_inbox=True,
    admitted=check_admission,
    admitted_types=ADMITTED_TYPES,
)
