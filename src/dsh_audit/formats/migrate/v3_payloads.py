"""Payloads of format 3 in the shapes of format 4. Source: spec session-log 8; dsh-session-format-v3-to-v4 in the
runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

from collections.abc import Callable

from dsh_audit.events import Event, Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_object, require_object

_BLOCK_TYPES = frozenset({"text", "reasoning", "image", "file", "tool-call", "tool-result"})
_RENAMED = {
    "compact": "compact-checkpoint",
    "tools-code-mode": "ptc-mode",
    "tools-ptc": "ptc-mode",
    "dsh-compaction-basic": "compact-basic",
    "@deepseek-ai/dsh-system-prompt": "runtime-context",
}
_SAME_NAME = frozenset(
    {
        *("agent-instructions", "session-reference", "team-message", "goal", "skill-invocation"),
        *("skill-catalog", "coordinator", "subagent-report", "subagent-settled", "webhook", "agent-message"),
        *("model-selection", "plan-mode", "time-context", "tmux-context", "user-approval"),
        *("repeat-tool-reminder", "tool-cordis", "cordis-host-runner", "tool-goal", "tool-jobs"),
        *("hooks-codex", "hooks-claude-code", "schedule", "dsh-session-title-llm"),
    }
)
_WRAPPER_KEYS = frozenset({"type", "toolCallId", "content", "isError"})
_MESSAGE_KEYS = frozenset({"id", "role", "source", "content"})


def current(event: Event, seq: int) -> Event:
    """A known format 3 event, already at its target place, with its payload in the shape of format 4.

    Args:
        seq: its seq in format 3, for errors.

    Raises:
        FormatError: a payload that the released step refuses.
    """
    label = f"{event.type} {seq}"
    data = _map_messages(event.type, event.data, lambda message: _with_producer(message, label))
    if event.type == "tool/result" and is_object(data):
        data = _lift_result(data, label)
    data = _map_messages(event.type, data, lambda message: _with_content(message, label))
    if is_object(data):
        data = _other_content(event.type, data, label)
    return event if data is event.data else event.changed(data=data)


def _map_messages(event_type: str, data: Json, change: Callable[[dict[str, Json]], dict[str, Json]]) -> Json:
    if not is_object(data):
        return data
    match event_type:
        case "user/message":
            return change(data)
        case "developer/message" | "system/message" | "assistant/message" | "tool/result":
            return {**data, "message": change(require_object(data.get("message"), f"{event_type} message"))}
        case "agent/inbox/spliced" | "session/title-llm-request":
            key = "inserted" if event_type == "agent/inbox/spliced" else "messages"
            if not isinstance(data.get(key), list):
                raise FormatError(f"{event_type} requires a message array")
            return {**data, key: [change(require_object(each, f"{event_type} message")) for each in data[key]]}
        case _:
            return data


def _with_producer(message: dict[str, Json], label: str) -> dict[str, Json]:
    source = message.get("source")
    if not is_object(source):
        return message
    kind = source.get("kind")
    if not isinstance(kind, str) or not kind:
        raise FormatError(f"{label} message source requires a kind")
    if kind != "plugin":
        return message
    if not isinstance(source.get("plugin"), str):
        raise FormatError(f"{label} plugin source requires a plugin name")
    producer = _producer(source["plugin"], message.get("role"))
    moved = {key: producer if key == "kind" else value for key, value in source.items() if key != "plugin"}
    return {**message, "source": moved}


def _producer(plugin: str, role: Json) -> str:
    if plugin == "@deepseek-ai/dsh-system-prompt" and role == "system":
        return "system-prompt"
    if plugin in _SAME_NAME:
        return plugin
    return _RENAMED.get(plugin, f"plugin:{plugin}")


def _lift_result(data: dict[str, Json], label: str) -> dict[str, Json]:
    message = data["message"]
    if message.get("role") != "user":
        return data
    source, content, message_id = message.get("source"), message.get("content"), message.get("id")
    wrapper = content[0] if isinstance(content, list) and len(content) == 1 else None
    call_id = source.get("callId") if is_object(source) else None
    sound = isinstance(message_id, str) and message_id and isinstance(call_id, str) and call_id
    if not sound or not is_object(source) or source.get("kind") != "tool" or not is_object(wrapper):
        raise FormatError(f"{label} requires exactly one tool-result wrapper of its tool source")
    if wrapper.get("type") != "tool-result" or wrapper.get("toolCallId") != call_id:
        raise FormatError(f"{label} requires exactly one tool-result wrapper of its tool source")
    if not isinstance(wrapper.get("isError", False), bool):
        raise FormatError(f"{label} tool-result isError must be boolean")
    lifted = {"role": "tool", "source": source, "toolCallId": call_id}
    lifted["content"] = _result_content(wrapper.get("content"), label)
    if "isError" in wrapper:
        lifted["isError"] = wrapper["isError"]
    lifted["id"] = message_id
    lifted |= {f"plugin:message:{key}": value for key, value in message.items() if key not in _MESSAGE_KEYS}
    lifted |= {f"plugin:result:{key}": value for key, value in wrapper.items() if key not in _WRAPPER_KEYS}
    return {**data, "message": lifted}


def _result_content(content: Json, label: str) -> list[Json]:
    if not isinstance(content, list):
        raise FormatError(f"{label} tool-result content must be an array")
    if any(is_object(block) and block.get("type") == "tool-result" for block in content):
        raise FormatError(f"{label} contains a nested tool-result")
    return content


def _block(value: Json, label: str) -> dict[str, Json]:
    if not is_object(value) or not isinstance(value.get("type"), str):
        raise FormatError(f"{label} requires content blocks with a type")
    if value["type"] in _BLOCK_TYPES:
        return value
    return {**value, "type": f"plugin:{value['type']}"}


def _content(value: Json, label: str) -> list[Json]:
    if not isinstance(value, list):
        raise FormatError(f"{label} content must be an array")
    return [_block(each, label) for each in value]


def _with_content(message: dict[str, Json], label: str) -> dict[str, Json]:
    return {**message, "content": _content(message.get("content"), label)}


def _other_content(event_type: str, data: dict[str, Json], label: str) -> dict[str, Json]:
    match event_type:
        case "compaction/summary":
            keys = ("summary", "rawOutput") if "rawOutput" in data else ("summary",)
            return {**data, **{key: _content(data.get(key), label) for key in keys}}
        case "tool/ptc-dispatch":
            return {**data, "content": _content(data.get("content"), label)}
        case "team/message/queued" if is_object(data.get("message")):
            return {**data, "message": _with_content(data["message"], label)}
        case "request/header":
            _check_tools(data.get("header"), label)
            return data
        case "assistant/message" | "assistant/attempt" if isinstance(data.get("stream"), list):
            return {**data, "stream": [_stream_record(each, label) for each in data["stream"]]}
        case _:
            return data


def _check_tools(header: Json, label: str) -> None:
    tools = header.get("tools") if is_object(header) else None
    for tool in tools if isinstance(tools, list) else ():
        if is_object(tool) and "deferLoading" in tool:
            raise FormatError(f"{label} tool contains deferLoading, which format 3 does not define")


def _stream_record(value: Json, label: str) -> Json:
    chunk = value.get("chunk") if is_object(value) and value.get("type") == "chunk" else None
    if not is_object(chunk):
        return value
    if chunk.get("type") == "block-end":
        return {**value, "chunk": {**chunk, "block": _block(chunk.get("block"), label)}}
    if chunk.get("type") != "block-start":
        return value
    kind = chunk.get("blockType")
    if not isinstance(kind, str):
        raise FormatError(f"{label} blockType must be a string")
    return {**value, "chunk": {**chunk, "blockType": kind if kind in _BLOCK_TYPES else f"plugin:{kind}"}}
