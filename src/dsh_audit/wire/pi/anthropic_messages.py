"""The messages of an Anthropic Messages body.

Source: wire-pi-ai 6.3; pi-ai 0.82.1 api/anthropic-messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dsh_audit import ecma
from dsh_audit.events import Json
from dsh_audit.wire.pi.assemble import WireItem
from dsh_audit.wire.pi.completions_messages import SEE_IMAGE
from dsh_audit.wire.pi.history import transform
from dsh_audit.wire.pi.neutral import (
    Assistant,
    Call,
    Context,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolResult,
    User,
)
from dsh_audit.wire.pi.strings import clean, is_blank, safe_id
from dsh_audit.wire.pi.versions import PiRules

_ID_UNITS = 64
_CLAUDE_TOOLS = {
    name.lower(): name
    for name in (
        *(
            "Read",
            "Write",
            "Edit",
            "Bash",
            "Grep",
            "Glob",
            "AskUserQuestion",
            "EnterPlanMode",
            "ExitPlanMode",
        ),
        *("KillShell", "NotebookEdit", "Skill", "Task", "TaskOutput", "TodoWrite", "WebFetch", "WebSearch"),
    )
}


def claude_messages(
    context: Context, model: dict[str, Json], rules: PiRules, is_oauth: bool, allow_unsigned: bool
) -> list[WireItem]:
    """The message list without markers.

    Args:
        is_oauth: tool names in the history take the spelling of Claude Code.
        allow_unsigned: reasoning without a signature stays reasoning, with an empty one.
    """
    items: list[WireItem] = []
    history = transform(context.messages, model, _rewrite_id, rules)
    for is_result, run in groupby(history, lambda message: isinstance(message, ToolResult)):
        if is_result:
            items.append(_results([message for message in run if isinstance(message, ToolResult)]))
        else:
            for message in run:
                items += _message(message, is_oauth, allow_unsigned)
    return items


def claude_tool_name(name: str) -> str:
    """The spelling that Claude Code uses for a tool of that name."""
    return _CLAUDE_TOOLS.get(name.lower(), name)


def mark_history(items: list[WireItem], marker: dict[str, Json] | None) -> None:
    """Put the marker on the last block of a final user message."""
    if marker is None or not items or items[-1].value["role"] != "user":
        return
    message = items[-1].value
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"], "cache_control": marker}]
    else:
        message["content"][-1]["cache_control"] = marker


def _rewrite_id(call_id: str, _message: Assistant) -> str:
    return safe_id(call_id)[:_ID_UNITS]


def _results(run: list[ToolResult]) -> WireItem:
    """A run of results is one user message."""
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": _result_content(result.content),
            "is_error": result.is_error,
        }
        for result in run
    ]
    return WireItem({"role": "user", "content": blocks}, tuple(result.seq for result in run))


def _result_content(content: tuple[Part, ...]) -> str | list[Json]:
    if not any(isinstance(part, Image) for part in content):
        return clean(ecma.join(["\n".join(part.text for part in content if isinstance(part, Text))]))
    blocks = [_part(part) for part in content]
    if any(isinstance(part, Text) for part in content):
        return blocks
    return [{"type": "text", "text": SEE_IMAGE}, *blocks]


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Text):
        return {"type": "text", "text": clean(part.text)}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


def _message(message: Message, is_oauth: bool, allow_unsigned: bool) -> Iterator[WireItem]:
    """The wire message, or nothing."""
    if isinstance(message, User):
        content = _user_content(message)
        role = "user"
    elif isinstance(message, Assistant):
        content = [value for block in message.blocks for value in _block(block, is_oauth, allow_unsigned)]
        role = "assistant"
    else:
        return
    if content or content == "":
        yield WireItem({"role": role, "content": content}, (message.seq,))


def _user_content(message: User) -> str | list[Json] | None:
    if isinstance(message.content, str):
        # Blankness comes first: a text of unpaired surrogates alone is sent as an empty one.
        return None if is_blank(message.content) else clean(message.content)
    parts = [_part(part) for part in message.content]
    return [part for part in parts if part["type"] != "text" or not is_blank(part["text"])]


def _block(block: Text | Thinking | Call, is_oauth: bool, allow_unsigned: bool) -> Iterator[Json]:
    if isinstance(block, Call):
        name = claude_tool_name(block.name) if is_oauth else block.name
        yield {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}
    elif isinstance(block, Thinking):
        yield from _thinking(block, allow_unsigned)
    elif not is_blank(block.text):
        yield {"type": "text", "text": clean(block.text)}


def _thinking(block: Thinking, allow_unsigned: bool) -> Iterator[Json]:
    if block.redacted:
        data = {} if block.signature is None else {"data": block.signature}
        yield {"type": "redacted_thinking", **data}
    elif block.signature and not is_blank(block.signature):
        yield {"type": "thinking", "thinking": clean(block.text), "signature": block.signature}
    elif is_blank(block.text):
        return
    elif allow_unsigned:
        yield {"type": "thinking", "thinking": clean(block.text), "signature": ""}
    else:
        yield {"type": "text", "text": clean(block.text)}
