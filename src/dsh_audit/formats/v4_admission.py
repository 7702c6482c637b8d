"""Format 4: rules of single rows, those of the running harness and those of re-loading, which hold even inside a
dropped suffix. Source: spec session-log 8; dsh-session and dsh-session-format-v3-to-v4 in the runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsh_audit.events import Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import MAX_SAFE_INTEGER, is_object, require_count, require_object
from dsh_audit.formats.shapes import COUNT, POSITIVE, STRING, TEXT, literal, open_record

_TOOL_CHANGES = ("tool-addition", "tool-removal")
_MESSAGE_LISTS = {"agent/inbox/spliced": "inserted", "session/title-llm-request": "messages"}
_MEDIA = literal("image/png", "image/jpeg", "image/webp", "image/gif")
_NUMBER = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def messages_of(row_type: Json, data: dict[str, Json]) -> list[Json]:
    """The values in the message slots of an event, whatever they are."""
    if row_type == "user/message":
        return [data]
    if row_type in ("developer/message", "system/message", "assistant/message", "tool/result"):
        return [data.get("message")]
    key = _MESSAGE_LISTS.get(row_type) if isinstance(row_type, str) else None
    found = data.get(key) if key is not None else None
    return found if isinstance(found, list) else []


def check_admission(row: dict[str, Json]) -> None:
    """What re-loading asks of one parsed row of a type in ADMITTED_TYPES; raises FormatError."""
    row_type, data = row["type"], row.get("data")
    _check_retired_type(row, row_type, data)
    if row_type in ("developer/message", "tool/result", "system/message"):
        require_object(data, f"{row_type} data")
    if not is_object(data):
        return
    _check_roles(row_type, data)
    _check_sources(row_type, data)
    for content in _contents(row_type, data):
        _check_content(row_type, content)
    if row_type == "request/header":
        _check_header(data)
    elif row_type == "developer/message":
        _check_developer(data)
    elif row_type == "system/message":
        _check_system(data)
    elif row_type == "tool/result":
        check_tool_message(data)
        _check_fork_result(row, data)


def _check_retired_type(row: dict[str, Json], row_type: Json, data: Json) -> None:
    if row_type in ("tool/code-dispatch", "tool/code-dispatch-start") and row.get("ignorable") is not True:
        raise FormatError(f"retired event type {row_type}")
    if row_type == "request/header" and "system" in _header_of(data):
        raise FormatError("request/header carries the retired header.system")


def _header_of(data: Json) -> dict[str, Json]:
    return require_object(require_object(data, "request/header data").get("header"), "request/header header")


def _check_roles(row_type: Json, data: dict[str, Json]) -> None:
    if row_type == "developer/message":
        return
    for message in messages_of(row_type, data):
        if is_object(message) and message.get("role") == "developer":
            raise FormatError("developer role outside developer/message")


def _check_sources(row_type: Json, data: dict[str, Json]) -> None:
    for message in messages_of(row_type, data):
        source = message.get("source") if is_object(message) else None
        if is_object(source) and source.get("kind") == "plugin":
            raise FormatError("a message source of kind plugin is retired")


def _contents(row_type: Json, data: dict[str, Json]) -> Iterator[Json]:
    for message in messages_of(row_type, data):
        if is_object(message) and row_type != "system/message":
            yield message.get("content")
    match row_type:
        case "team/message/queued" if is_object(data.get("message")):
            yield data["message"].get("content")
        case "compaction/summary":
            yield data.get("summary")
            yield data.get("rawOutput")
        case "tool/ptc-dispatch":
            yield data.get("content")
        case "assistant/message" | "assistant/attempt":
            yield list(_streamed_blocks(data.get("stream")))


def _streamed_blocks(stream: Json) -> Iterator[Json]:
    for entry in stream if isinstance(stream, list) else ():
        chunk = entry.get("chunk") if is_object(entry) and entry.get("type") == "chunk" else None
        if not is_object(chunk):
            continue
        if chunk.get("type") == "block-end":
            yield chunk.get("block")
        elif chunk.get("type") == "block-start":
            yield {"type": chunk.get("blockType")}


def _check_content(row_type: Json, content: Json) -> None:
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if is_object(block) else None
        if kind == "tool-result":
            raise FormatError("content holds a retired tool-result wrapper")
        if kind in _TOOL_CHANGES and row_type not in ("developer/message", "tool/ptc-dispatch"):
            raise FormatError(f"{kind} requires developer role")


def _check_header(data: dict[str, Json]) -> None:
    tools = data["header"].get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if is_object(tool) and tool.get("deferLoading", True) is not True:
            raise FormatError("a tool's deferLoading must be true when present")


_DEVELOPER = open_record(
    {
        "turn": POSITIVE,
        "step": POSITIVE,
        "message": open_record({"id": TEXT, "role": literal("developer"), "source": open_record({"kind": TEXT})}),
    }
)


def _check_developer(data: dict[str, Json]) -> None:
    _DEVELOPER.check(data, "developer/message")
    content = data["message"].get("content")
    if not isinstance(content, list):
        raise FormatError("developer/message requires content")
    additions = False
    for block in content:
        if not is_object(block) or block.get("type") not in _TOOL_CHANGES:
            continue
        TEXT.check(block.get("toolName"), f"{block['type']} toolName")
        if block["type"] == "tool-addition":
            additions = True
            if "tool" in block:
                raise FormatError("tool-addition must omit inline tool definitions")
    if additions:
        require_count(data.get("headerSeq"), "developer/message headerSeq")
    elif "headerSeq" in data:
        raise FormatError("developer/message must omit headerSeq without tool additions")


_SYSTEM = open_record(
    {"turn": POSITIVE, "step": POSITIVE, "message": open_record({"id": TEXT, "role": literal("system")})}
)
_IMAGE = open_record({"attachmentId": TEXT, "mediaType": _MEDIA, "bytes": COUNT, "width": POSITIVE, "height": POSITIVE})
_SIZE = open_record({"width": POSITIVE, "height": POSITIVE})
_SYSTEM_BLOCKS = {
    "text": open_record({"text": STRING}),
    "reasoning": open_record({"text": STRING}),
    "tool-call": open_record({"id": TEXT, "name": TEXT, "arguments": STRING}),
    "image": open_record({"attachment": _IMAGE}),
}


def _check_system(data: dict[str, Json]) -> None:
    _SYSTEM.check(data, "system/message")
    content = data["message"].get("content")
    if not isinstance(content, list):
        raise FormatError("system/message requires content")
    for block in content:
        found = require_object(block, "system content block")
        TEXT.check(found.get("type"), "system content type")
        if found["type"] == "tool-result":
            raise FormatError("content holds a retired tool-result wrapper")
        if found["type"] in _TOOL_CHANGES:
            raise FormatError(f"{found['type']} requires developer role")
        shape = _SYSTEM_BLOCKS.get(found["type"])
        if shape is not None:
            shape.check(found, "system content block")
        if found["type"] == "image":
            _check_image_extras(found["attachment"])


def _check_image_extras(attachment: dict[str, Json]) -> None:
    if "name" in attachment:
        STRING.check(attachment["name"], "system image name")
    if "originalDimensions" in attachment:
        _SIZE.check(attachment["originalDimensions"], "system image originalDimensions")


def check_tool_message(data: dict[str, Json]) -> None:
    """A tool result is a message of role tool, of the call that its source names; raises FormatError."""
    message = require_object(data.get("message"), "tool/result message")
    TEXT.check(message.get("id"), "tool/result message id")
    if message.get("role") != "tool":
        raise FormatError("tool/result requires a tool-role message")
    source = require_object(message.get("source"), "tool/result source")
    TEXT.check(message.get("toolCallId"), "tool/result toolCallId")
    if source.get("callId") != message["toolCallId"] or source.get("kind") != "tool":
        raise FormatError("tool/result toolCallId must match its tool source")
    if not isinstance(message.get("content"), list):
        raise FormatError("tool/result requires array content")
    if not isinstance(message.get("isError", False), bool):
        raise FormatError("tool/result isError must be boolean when present")
    if "error" in data and message.get("isError") is not True:
        raise FormatError("tool/result carries an error for a result that is none")


def _check_fork_result(row: dict[str, Json], data: dict[str, Json]) -> None:
    error, message = data.get("error"), data["message"]
    if not is_object(error) or error.get("code") != "TOOL_NOT_STARTED":
        return
    if not message["id"].startswith("forked-tool-result-"):
        return
    call_id = message["source"]["callId"]
    prefix = f"forked-tool-result-{call_id}-"
    suffix = message["id"][len(prefix) :]
    number = int(suffix) if _NUMBER.fullmatch(suffix) and len(suffix) < 20 else -1
    content = message["content"]
    block = content[0] if len(content) == 1 else None
    sound = (
        message["id"].startswith(prefix)
        and 0 <= number <= MAX_SAFE_INTEGER
        and _fork_place(row, number)
        and error.get("name") == "ToolNotStartedError"
        and message.get("isError") is True
        and is_object(block)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    )
    if not sound:
        raise FormatError("invalid not-started result of a fork")


def _fork_place(row: dict[str, Json], number: int) -> bool:
    """An append carries its own seq and no sources; a replacement names the one earlier result."""
    op, seq = row.get("surfaceOp"), row.get("seq")
    if is_object(op) and op.get("op") == "replace":
        earlier = isinstance(seq, int) and number < seq
        return earlier and row.get("sourceEventSeqs") == [number]
    return seq == number and op == "append" and "sourceEventSeqs" not in row


ADMITTED_TYPES = frozenset(
    {
        *_MESSAGE_LISTS,
        "assistant/attempt",
        "assistant/message",
        "compaction/summary",
        "developer/message",
        "request/header",
        "system/message",
        "team/message/queued",
        "tool/code-dispatch",
        "tool/code-dispatch-start",
        "tool/ptc-dispatch",
        "tool/result",
        "user/message",
    }
)
"""The types that ``check_admission`` has a rule for."""


def _written_header(data: Json) -> None:
    header = _header_of(data)
    if "system" in header:
        raise FormatError("request/header carries the retired header.system")
    if header.get("tools") == [] or header.get("adapterDefaults") == {}:
        raise FormatError("request/header must omit empty tools and adapterDefaults")


def _written_message(data: Json) -> None:
    message = data.get("message", data) if is_object(data) else None
    if not is_object(message):
        return
    if message.get("role") == "developer":
        raise FormatError("developer role outside developer/message")
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if is_object(block) and block.get("type") in _TOOL_CHANGES:
            raise FormatError(f"{block['type']} requires developer role")


def _written_result(data: Json) -> None:
    found = require_object(data, "tool/result data")
    message = found.get("message")
    if "error" in found and not (is_object(message) and message.get("isError") is True):
        raise FormatError("tool/result carries an error for a result that is none")
    _written_message(data)


WRITTEN = {
    "request/header": _written_header,
    **dict.fromkeys(("user/message", "assistant/message", "system/message"), _written_message),
    "tool/result": _written_result,
}
"""What the running harness asks of the payload of an event; developer messages are checked as they join the surface."""
