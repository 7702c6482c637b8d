"""What the step from format 2 to 3 admits: known types, sources and blocks only. Source: spec session-log 7;
dsh-session-format-v2-to-v3 0.1.5-alpha.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsh_audit.events import SURFACE_TYPES, Event, Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import MAX_SAFE_INTEGER, check_sources, is_object, is_safe_integer, require_object
from dsh_audit.formats.payload_events import check_payload, payload_shapes
from dsh_audit.formats.payload_messages import BLOCK
from dsh_audit.formats.shapes import COUNT, STRING, TEXT, literal, record
from dsh_audit.formats.v2 import FEEDBACK_TYPES

_SOURCE_KINDS = frozenset(
    {
        *("user", "plugin", "model", "tool", "agent-instructions", "session-reference", "team-message", "goal"),
        *("skill-invocation", "skill-catalog", "coordinator", "subagent-report", "subagent-settled", "webhook"),
        "agent-message",
    }
)
_BLOCK_KINDS = frozenset({"text", "reasoning", "image", "file", "tool-call", "tool-result"})
_FILE = record(
    {
        "type": literal("file"),
        "attachment": record({"attachmentId": TEXT, "name": STRING, "bytes": COUNT}),
    }
)
_AGENT_MESSAGE = record({"kind": STRING, "form": literal("relay"), "senderSessionId": TEXT})
_FEEDBACK = {
    "feedback/message-put": record(
        {
            "sessionId": STRING,
            "item": record(
                {
                    "messageId": STRING,
                    "rating": literal("positive", "negative"),
                    "version": STRING,
                    "createdAt": COUNT,
                    "updatedAt": COUNT,
                },
                {"note": STRING},
            ),
        }
    ),
    "feedback/message-delete": record({"sessionId": STRING, "messageId": STRING}),
}
_MESSAGE_SLOTS = {
    "assistant/message": "message",
    "tool/result": "message",
    "agent/inbox/spliced": "inserted",
    "session/title-llm-request": "messages",
}
_CANONICAL_SEQ = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def check_admission(event: Event) -> None:
    """Whether the step can transform the event without loss; raises FormatError."""
    if event.type not in payload_shapes(2) and event.type not in FEEDBACK_TYPES:
        raise FormatError(f"cannot safely transform the unclassified event {event.type}")
    _check_envelope(event)
    data = require_object(event.data, f"{event.type} data")
    if event.type in FEEDBACK_TYPES:
        _FEEDBACK[event.type].check(data, event.type)
        return
    _check_contents(event, data)
    check_payload(event.type, event.seq, data, 2)
    if event.type in ("assistant/message", "assistant/attempt") and 0 in (data["turn"], data["step"]):
        raise FormatError(f"{event.type} turn and step must be positive")
    if event.type == "session/end-seed" and data.get("inherited", True) is not True:
        raise FormatError("session/end-seed inherited must be true")
    for message in messages_of(event.type, data):
        _check_source(message)
    if event.type == "tool/result":
        _check_repair(data)


def messages_of(event_type: str, data: dict[str, Json]) -> list[Json]:
    """Messages in the payload of a format 2 event."""
    if event_type == "user/message":
        return [data]
    slot = _MESSAGE_SLOTS.get(event_type)
    found = data.get(slot) if slot is not None else []
    return found if isinstance(found, list) else [found]


def _check_envelope(event: Event) -> None:
    if not is_safe_integer(event.time):
        raise FormatError(f"{event.type} time must be a safe integer")
    if event.type not in SURFACE_TYPES:
        if (event.source_event_seqs, event.surface_op, event.opaque_op) != (None, None, None):
            raise FormatError(f"{event.type} is no surface event and cannot carry surfaceOp or sourceEventSeqs")
        return
    if event.surface_op is None:
        raise FormatError(f"{event.type} requires surfaceOp")
    if event.source_event_seqs is not None:
        if event.type == "assistant/message":
            raise FormatError("assistant/message keeps obsolete chunk references")
        check_sources(event.source_event_seqs, event.seq, event.type, allow_empty=False)


def _check_contents(event: Event, data: dict[str, Json]) -> None:
    for content in _contents(event.type, data):
        if not isinstance(content, list):
            raise FormatError(f"{event.type} content must be an array")
        for block in content:
            _check_block(block, event.type)


def _contents(event_type: str, data: dict[str, Json]) -> Iterator[Json]:
    for message in messages_of(event_type, data):
        yield require_object(message, f"{event_type} message").get("content")
    match event_type:
        case "tool/code-dispatch":
            yield data.get("content")
        case "team/message/queued":
            yield require_object(data.get("message"), f"{event_type} message").get("content")
        case "compaction/summary":
            yield data.get("summary")
            yield data.get("rawOutput", [])
    if event_type in ("assistant/message", "assistant/attempt"):
        stream = data.get("stream")
        if not isinstance(stream, list):
            raise FormatError(f"{event_type} stream must be an array")
        yield list(_stream_blocks(stream))


def _stream_blocks(stream: list[Json]) -> Iterator[Json]:
    for each in stream:
        entry = require_object(each, "stream record")
        if entry.get("type") != "chunk":
            continue
        chunk = require_object(entry.get("chunk"), "stream chunk")
        if chunk.get("type") == "block-end":
            yield chunk.get("block")
        elif chunk.get("type") == "block-start":
            _check_kind(chunk.get("blockType"))


def _check_kind(kind: Json) -> None:
    if not isinstance(kind, str) or kind not in _BLOCK_KINDS:
        raise FormatError(f"cannot safely transform the unclassified content kind {kind!r}")


def _check_block(value: Json, label: str) -> None:
    block = require_object(value, f"{label} block")
    _check_kind(block.get("type"))
    if block["type"] == "file":
        _FILE.check(block, f"{label} file block")
        return
    if block["type"] == "tool-result":
        nested = block.get("content")
        if not isinstance(nested, list):
            raise FormatError(f"{label} tool-result content must be an array")
        for each in nested:
            _check_block(each, label)
    BLOCK.check(block, f"{label} block")


def _check_source(message: dict[str, Json]) -> None:
    source = require_object(message.get("source"), "message source")
    if not isinstance(source.get("kind"), str) or source["kind"] not in _SOURCE_KINDS:
        raise FormatError("cannot safely transform unclassified message source")
    if source["kind"] == "agent-message":
        _AGENT_MESSAGE.check(source, "agent-message source")


def _check_repair(data: dict[str, Json]) -> None:
    error = data.get("error")
    if not is_object(error) or error.get("code") != "TOOL_NOT_STARTED":
        return
    message = data["message"]
    prefix = f"interrupted-tool-result-{message['source']['callId']}-"
    suffix = message["id"].removeprefix(prefix)
    canonical = message["id"].startswith(prefix) and _CANONICAL_SEQ.fullmatch(suffix) is not None
    if not canonical or len(suffix) > 16 or int(suffix) > MAX_SAFE_INTEGER:
        raise FormatError("a TOOL_NOT_STARTED repair requires its canonical message id")
