"""Whether a logged message or tool has the members that everything after the folds takes for granted."""

from __future__ import annotations

from collections.abc import Sequence

from dsh_audit.events import Event, Json, ShapeError
from dsh_audit.projection.rejection import Rejection
from dsh_audit.projection.request_header import header_of
from dsh_audit.projection.surface_rules import message_of, refuse


def check_usable(event: Event, surface_types: frozenset[str]) -> None:
    """Refuse an event that requests are made of and that holds nothing to make one of.

    Raises:
        ProjectionError: a surface event without a message, a request header without a route.
    """
    if event.type in surface_types:
        message_of(event)
    elif event.type == "request/header":
        header_of(event)
        header = event.data["header"]
        config = header.get("config")
        if not isinstance(config, dict) or not all(isinstance(config.get(key), str) for key in ("provider", "model")):
            refuse(event, Rejection.MALFORMED, "request/header names no provider or model")
        for name, kind in (("adapterDefaults", dict), ("system", str), ("tools", list)):
            if not isinstance(header.get(name), kind | None):
                refuse(event, Rejection.MALFORMED, f"request/header has an invalid member {name}")


_STRINGS = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool-call": ("id", "name", "arguments"),
    "tool-result": ("toolCallId",),
    "tool-addition": ("toolName",),
    "tool-removal": ("toolName",),
}


def check_message(message: dict[str, Json], seq: int) -> None:
    """Raise ShapeError when a message has a member or block that no release writes."""
    role = message.get("role")
    if not isinstance(role, str):
        raise malformed(f"the message at seq {seq} has no role")
    if role == "tool" and not isinstance(message.get("toolCallId"), str):
        raise malformed(f"the tool result at seq {seq} names no call")
    if role == "assistant" and not _is_source(message.get("source")):
        raise malformed(f"the answer at seq {seq} names no source")
    if not isinstance(message.get("content"), list):
        raise malformed(f"the message at seq {seq} has no content list")
    pending: list[Sequence[Json]] = [message["content"]]
    while pending:
        for block in pending.pop():
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str):
                raise malformed(f"the message at seq {seq} holds something that is no block")
            if not all(isinstance(block.get(key), str) for key in _STRINGS.get(kind, ())):
                raise malformed(f"a {kind} block at seq {seq} lacks a member")
            if kind == "tool-result":
                if not isinstance(block.get("content"), list):
                    raise malformed(f"a {kind} block at seq {seq} lacks a member")
                pending.append(block["content"])


def _is_source(source: Json) -> bool:
    """Whether the source of an answer names a route, if it is a model."""
    if not isinstance(source, dict):
        return source is None
    default = None if source.get("kind") == "model" else ""
    return all(isinstance(source.get(key, default), str) for key in ("provider", "model"))


def check_tools(tools: Json) -> None:
    """Raise ShapeError when something in the list is no tool definition."""
    if not isinstance(tools, list | tuple):
        raise malformed("the tools of the request header are no list")
    if not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools):
        raise malformed("the request header holds something that is no tool")


def malformed(reason: str) -> ShapeError:
    """The error of a shape that no release writes."""
    return ShapeError(f"{reason}, so no body follows from the log")
