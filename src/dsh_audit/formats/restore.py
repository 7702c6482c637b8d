"""Restore checks: what makes a released harness refuse a log although all its rows decode.

Mostly what one event shows. Relations between events (surface membership, turn order) belong to the
projections.
Source: dsh-session 0.1.1-rc.2 and 0.2.1-rc.2 (seed validation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dsh_audit.events import Event, Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_count, is_object
from dsh_audit.record import dataclass

_ADAPTER_KEYS = ("reasoningEffort", "maxTokens")


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def _has_route(value: Json) -> bool:
    return is_object(value) and _is_text(value.get("provider")) and _is_text(value.get("model"))


def check_request_header(data: Json) -> None:
    """A ``request/header`` names provider and model; effort and defaults are well-formed."""
    header = data.get("header") if is_object(data) else None
    config = header.get("config") if is_object(header) else None
    if not is_object(header) or not is_object(config) or not _has_route(config):
        raise FormatError("request/header lacks provider or model")
    if "reasoningEffort" in config and not _is_text(config["reasoningEffort"]):
        raise FormatError("request/header has an invalid reasoningEffort")
    if "adapterDefaults" not in header:
        return
    defaults = header["adapterDefaults"]
    if not is_object(defaults) or any(
        key not in _ADAPTER_KEYS or marker is not True or key not in config for key, marker in defaults.items()
    ):
        raise FormatError("request/header has invalid adapterDefaults")


def check_message(event: Event, roles: Mapping[str, str]) -> dict[str, Json]:
    """A surface event carries an identified message of the right role, with source and content.

    Args:
        roles: event type → role.

    Returns:
        The message.
    """
    kind = event.type
    message = event.data if kind == "user/message" else None
    if message is None and is_object(event.data):
        message = event.data.get("message")
    if not is_object(message) or not _is_text(message.get("id")):
        raise FormatError(f"{kind} lacks an identified message")
    if message.get("role") != roles[kind]:
        raise FormatError(f'{kind} message must have role "{roles[kind]}"')
    source = message.get("source")
    if not is_object(source) or not _is_text(source.get("kind")):
        raise FormatError(f"{kind} message has an invalid source")
    if not isinstance(message.get("content"), list):
        raise FormatError(f"{kind} message has invalid content")
    if kind == "assistant/message" and (source["kind"] != "model" or not _has_route(source)):
        raise FormatError("assistant/message message must have model source")
    if kind == "tool/result" and (source["kind"] != "tool" or not _is_text(source.get("callId"))):
        raise FormatError("tool/result message must have tool source")
    return message


def check_wrapped_result(message: dict[str, Json]) -> None:
    """Formats 0 to 3: a tool result's message holds exactly one ``tool-result`` block of its call."""
    content = message["content"]
    block = content[0] if len(content) == 1 else None
    if not is_object(block) or block.get("type") != "tool-result" or not isinstance(block.get("content"), list):
        raise FormatError("tool/result message must contain one tool-result block")
    if block.get("toolCallId") != message["source"]["callId"]:
        raise FormatError("tool/result message has mismatched tool call ids")


@dataclass(slots=True)
class InboxReplay:
    """Formats 3 and 4: re-loading replays the inboxes, whose splices must fit. Source: runs of 0.1.5 and 0.2.1."""

    _held: dict[str, int] = field(default_factory=dict)

    def check(self, event: Event) -> None:
        """Take the next event; a splice removes no more than its inbox holds from its start on."""
        data = event.data
        if event.type != "agent/inbox/spliced" or not is_object(data) or not isinstance(data.get("target"), str):
            return
        start, removed, inserted = data.get("start"), data.get("removedCount", 0), data.get("inserted")
        if not is_count(start) or not is_count(removed) or not isinstance(inserted, list):
            return
        held = self._held.get(data["target"], 0)
        if removed > max(0, held - start):
            raise FormatError(f"invalid persisted inbox splice at session seq {event.seq}")
        self._held[data["target"]] = held + len(inserted) - removed
