"""Format 4: releases 0.1.7 to 0.2.1. Tool and developer messages have roles of their own. Source: spec
session-log 8; dsh-session and dsh-session-format-v3-to-v4 in the runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

from dsh_audit.events import SURFACE_TYPES_V4, Event, Json, SessionHeader
from dsh_audit.formats.base import CheckingRestorer, Format, FormatError, RowRejectedError, refused
from dsh_audit.formats.envelope import encode_event, is_object
from dsh_audit.formats.restore import check_message, check_request_header
from dsh_audit.formats.session_headers import parse_is_seeded_header
from dsh_audit.formats.v2 import check_settlement, scan_row, surface_op
from dsh_audit.formats.v3 import KNOWN_TYPES as KNOWN_TYPES_V3
from dsh_audit.formats.v3 import OP_KEYS
from dsh_audit.formats.v4_admission import check_admission, messages_of

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


def decode_storage_record(row: Json, *, line: int = 0) -> tuple[Event, ...]:
    """Decode one row into its event; raises RowRejectedError."""
    try:
        check_admission(row)
    except FormatError as error:
        raise RowRejectedError(error.reason, kind="inadmissible") from None
    scanned = scan_row(row)
    if scanned.type not in KNOWN_TYPES and "ignorable" in scanned.row:
        return (scanned.event(None, line),)
    try:
        return (scanned.event(surface_op(scanned, SURFACE_TYPES_V4, OP_KEYS), line),)
    except FormatError as error:
        raise refused(error, scanned.seq, scanned.type) from None


def check_event(event: Event) -> None:
    """Messages, request header and settlements as 0.2.1-rc.2 checks them; raises FormatError."""
    if event.type not in KNOWN_TYPES:
        return
    if event.type == "request/header":
        _check_header(event.data)
    elif event.type in ROLES:
        message = check_message(event, ROLES)
        if event.type == "system/message" and message["source"]["kind"] != "system-prompt":
            raise FormatError("system/message message must have system-prompt source")
    if event.type in ("assistant/message", "assistant/attempt"):
        check_settlement(event)
    _check_sources(event)


def _check_header(data: Json) -> None:
    check_request_header(data)
    header = data["header"]
    if header.get("tools") == [] or header.get("adapterDefaults") == {}:
        raise FormatError("request/header must omit empty tools and adapterDefaults")
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


def encode_row(event: Event) -> dict[str, Json]:
    """The event as the harness writes it, ``sourceEventSeqs`` with ranges."""
    return encode_event(event, OP_KEYS, ranges=True)


FORMAT = Format(
    version=4,
    parse_session_header=parse_session_header,
    decode_storage_record=decode_storage_record,
    new_restorer=lambda _header: CheckingRestorer(check_event),
    encode_row=encode_row,
    known_types=KNOWN_TYPES,
    surface_types=SURFACE_TYPES_V4,
)
