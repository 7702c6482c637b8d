"""Whether a logged message or tool has the members that writing it needs; the log formats do not check all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsh_audit.events import Json
from dsh_audit.wire.adapter import CannotEncodeError

_STRINGS = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool-call": ("id", "name", "arguments"),
    "tool-result": ("toolCallId",),
    "tool-addition": ("toolName",),
    "tool-removal": ("toolName",),
}


def check_message(message: dict[str, Json], seq: int) -> None:
    """Raise CannotEncodeError when a message has a block that no release writes."""
    if message.get("role") == "tool" and not isinstance(message.get("toolCallId"), str):
        raise _malformed(f"the tool result at seq {seq} names no call")
    pending: list[Sequence[Json]] = [message["content"]]
    while pending:
        for block in pending.pop():
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str):
                raise _malformed(f"the message at seq {seq} holds something that is no block")
            if not all(isinstance(block.get(key), str) for key in _STRINGS.get(kind, ())):
                raise _malformed(f"a {kind} block at seq {seq} lacks a member")
            if kind == "tool-result":
                if not isinstance(block.get("content"), list):
                    raise _malformed(f"a {kind} block at seq {seq} lacks a member")
                pending.append(block["content"])


def check_tools(tools: Iterable[Json]) -> None:
    """Raise CannotEncodeError when something in the list is no tool definition."""
    if not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools):
        raise _malformed("the request header holds something that is no tool")


def _malformed(reason: str) -> CannotEncodeError:
    return CannotEncodeError(f"{reason}, so no body follows from the log", "none")
