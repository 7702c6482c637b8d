"""Shapes of messages, their blocks and sources, in formats 0 to 3 as the migrations admit them.

Source: spec session-log 3.3; dsh-session-format-v0-to-v1 0.1.3-alpha.2 (payload validation).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from dsh_audit.events import Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.shapes import (
    ANY,
    BOOLEAN,
    COUNT,
    POSITIVE,
    STRING,
    TEXT,
    Shape,
    array,
    literal,
    named,
    nullable,
    open_record,
    record,
    tagged,
    where,
)
from dsh_audit.text import ecma

_TYPE = STRING
IMAGE = record(
    {
        "attachmentId": TEXT,
        "mediaType": literal("image/png", "image/jpeg", "image/webp", "image/gif"),
        "bytes": COUNT,
        "width": POSITIVE,
        "height": POSITIVE,
    },
    {"name": STRING, "originalDimensions": record({"width": POSITIVE, "height": POSITIVE})},
)

BLOCK: Shape = tagged(
    "type",
    {
        "text": record({"type": _TYPE, "text": STRING}),
        "reasoning": record({"type": _TYPE, "text": STRING}),
        "image": record({"type": _TYPE, "attachment": IMAGE}),
        "tool-call": record({"type": _TYPE, "id": TEXT, "name": TEXT, "arguments": STRING}),
        "tool-result": record(
            {"type": _TYPE, "toolCallId": TEXT, "content": array(named("block", lambda: BLOCK))},
            {"isError": BOOLEAN},
        ),
    },
    open_record({"type": TEXT}),
)
"""One content block; a block of unknown type is opaque."""

CONTENT = array(named("block", lambda: BLOCK))


def _plugin_form(source: Json, label: str) -> None:
    form = source.get("form")
    if form == "snapshot" and "sections" not in source:
        raise FormatError(f"{label} sections are required by snapshot form")
    if form != "snapshot" and "sections" in source:
        raise FormatError(f"{label} sections require snapshot form")
    if form == "notice" and "summary" not in source:
        raise FormatError(f"{label} summary is required by notice form")
    if form != "notice" and "summary" in source:
        raise FormatError(f"{label} summary requires notice form")
    compact = source["plugin"] == "compact"
    if compact and "compactionId" not in source:
        raise FormatError(f"{label} compactionId must be a non-empty string")
    if not compact and ("compactionId" in source or "sourceCommandId" in source):
        raise FormatError(f"{label} has unexpected member of a compaction")


_PLUGIN = where(
    record(
        {"kind": _TYPE, "plugin": TEXT},
        {
            "form": literal("instructions", "catalog", "snapshot", "notice", "relay", "recall"),
            "sections": array(record({"name": TEXT, "text": STRING})),
            "summary": STRING,
            "compactionId": TEXT,
            "sourceCommandId": TEXT,
        },
    ),
    _plugin_form,
)


def _references(version: int) -> Shape:
    optional = {"capturedFormatVersion": POSITIVE} if version >= 1 else {}
    reference = record(
        {
            "sessionId": TEXT,
            "label": STRING,
            "capturedThroughSeq": nullable(COUNT),
            "compacted": BOOLEAN,
            "originalMessages": COUNT,
            "retainedMessages": COUNT,
            "omittedMessages": COUNT,
            "omittedBytes": COUNT,
            "truncated": BOOLEAN,
            "inputIndex": COUNT,
        },
        optional,
    )

    def check(references: Json, label: str) -> None:
        seen: set[str] = set()
        for index, each in enumerate(references):
            if each.get("capturedFormatVersion", 1) > version >= 1:
                raise FormatError(f"{label} capturedFormatVersion must be between 1 and {version}")
            original, retained, omitted = (each[f"{key}Messages"] for key in ("original", "retained", "omitted"))
            if retained > original or omitted != original - retained:
                raise FormatError(f"{label} message counts are inconsistent")
            if each["truncated"] != (omitted > 0 or each["omittedBytes"] > 0):
                raise FormatError(f"{label} truncated disagrees with omitted content")
            if each["inputIndex"] != index:
                raise FormatError(f"{label} inputIndex must match the position")
            if each["sessionId"] in seen:
                raise FormatError(f"{label} repeats a sessionId")
            seen.add(each["sessionId"])

    return where(array(reference, at_least=1), check)


_CHANGE = record({"action": literal("set", "replace", "remove"), "scope": STRING, "path": STRING}, {"digest": STRING})
_RELAY = record({"kind": _TYPE, "form": literal("relay"), "senderSessionId": TEXT})


def sources(version: int) -> dict[str, Shape]:
    """Shapes of the message sources by kind; other kinds are opaque."""
    return {
        "user": record({"kind": _TYPE}, {"rpcId": TEXT, "clientTimeZone": TEXT}),
        "plugin": _PLUGIN,
        "model": record({"kind": _TYPE, "provider": TEXT, "model": TEXT}, {"replayState": ANY}),
        "tool": record({"kind": _TYPE, "callId": TEXT}),
        "agent-instructions": record(
            {"kind": _TYPE, "form": literal("instructions"), "changes": array(_CHANGE)},
            {"baseline": literal(True), "baselineIdentity": TEXT},
        ),
        "session-reference": record(
            {
                "kind": _TYPE,
                "form": literal("recall"),
                "version": literal(1),
                "references": _references(version),
            }
        ),
        "team-message": record(
            {"kind": _TYPE, "teamId": TEXT, "messageId": TEXT, "senderId": TEXT, "senderName": STRING}
        ),
        "goal": record({"kind": _TYPE, "goalId": TEXT, "revision": POSITIVE, "round": POSITIVE}),
        "skill-invocation": record({"kind": _TYPE, "name": TEXT, "form": literal("instructions")}),
        "skill-catalog": record(
            {
                "kind": _TYPE,
                "form": literal("catalog"),
                "entries": array(record({"name": TEXT, "description": STRING})),
            },
            {"update": literal(True)},
        ),
        "coordinator": _RELAY,
        "subagent-report": _RELAY,
        "subagent-settled": record(
            {"kind": _TYPE, "form": literal("notice"), "summary": STRING, "senderSessionId": TEXT}
        ),
        "webhook": record(
            {
                "kind": _TYPE,
                "provider": TEXT,
                "source": TEXT,
                "deliveryId": TEXT,
                "ruleId": TEXT,
                "form": literal("notice"),
                "summary": STRING,
            }
        ),
    }


@functools.cache
def message_source(version: int) -> Shape:
    """Shape of the source of any message."""
    return tagged("kind", sources(version), open_record({"kind": TEXT}))


def message(version: int, *roles: str, kind: str | None = None) -> Shape:
    """An identified message with one of the roles, whose source is of the kind, if given."""
    known = message_source(version)
    source = named("source", lambda: known)
    members = {"id": TEXT, "role": literal(*roles), "content": CONTENT, "source": source}

    def check(value: Json, label: str) -> None:
        if kind is not None and value["source"]["kind"] != kind:
            raise FormatError(f"{label} must have {kind} source")

    return where(record(members), check)


def tool_message(version: int) -> Shape:
    """The user message of a tool result: one ``tool-result`` block of the call its source names."""

    def check(value: Json, label: str) -> None:
        content = value["content"]
        block = content[0] if len(content) == 1 else {}
        if block.get("type") != "tool-result" or block["toolCallId"] != value["source"]["callId"]:
            raise FormatError(f"{label} must contain exactly one tool-result block of its source's call")

    return where(message(version, "user", kind="tool"), check)


def legacy_goal_message(goal_change: Shape, render: Callable[[Json], str]) -> Shape:
    """Formats 0 and 1: a user message that carries a goal change in its source.

    Args:
        render: the payload of the change → text of the message's only block.
    """
    source = record(
        {
            "kind": literal("goal"),
            "goalId": TEXT,
            "revision": POSITIVE,
            "round": literal(0),
            "change": goal_change,
        }
    )

    def check(value: Json, label: str) -> None:
        change = value["source"]["change"]
        ref = change["cleared"] if change["operation"] == "clear" else change["goal"]
        if value["source"]["goalId"] != ref["id"] or value["source"]["revision"] != ref["revision"]:
            raise FormatError(f"{label} goal source does not match its change")
        if not ecma.same_json(value["content"], [{"type": "text", "text": render(change)}]):
            raise FormatError(f"{label} goal content does not match its change")

    shape = record({"id": TEXT, "role": literal("user"), "content": CONTENT, "source": source})
    return where(shape, check)
