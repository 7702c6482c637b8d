"""Shapes of the parts of event payloads in formats 0 to 2, as the migrations admit them.

Source: spec session-log 3; dsh-session-format-v0-to-v1 0.1.3-alpha.2.
"""

from __future__ import annotations

import re
from datetime import date

from dsh_audit.events import Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.payload_messages import BLOCK, CONTENT
from dsh_audit.formats.shapes import (
    ANY,
    ARRAY,
    COUNT,
    FINITE,
    OBJECT,
    POSITIVE,
    SAFE_INTEGER,
    STRING,
    TEXT,
    array,
    literal,
    nullable,
    open_record,
    record,
    tagged,
    where,
)
from dsh_audit.text import ecma

_STATUS = where(SAFE_INTEGER, lambda value, label: _within(value, label, 100, 599))
FAILURE = record(
    {"message": TEXT, "code": TEXT},
    {
        "status": _STATUS,
        "providerRetryAfterMs": where(FINITE, lambda v, label: _above_zero(v, label)),
        "requestId": TEXT,
    },
)
USAGE = record(
    {"inputTokens": COUNT, "outputTokens": COUNT},
    {"totalTokens": COUNT, "cacheReadTokens": COUNT, "cacheWriteTokens": COUNT, "reasoningTokens": COUNT},
)
ROUTE = record({"provider": TEXT, "model": TEXT})
STEP = {"turn": COUNT, "step": COUNT}


def _within(value: Json, label: str, low: float, high: float) -> None:
    if not low <= value <= high:
        raise FormatError(f"{label} must be {low} through {high}")


def _above_zero(value: Json, label: str) -> None:
    if value <= 0:
        raise FormatError(f"{label} must be positive")


# Stream chunks

_KIND = record({"kind": STRING})
_FINISH_REASON = tagged(
    "kind",
    {
        "aborted": record({"kind": STRING, "failure": FAILURE}),
        "error": record({"kind": STRING, "failure": FAILURE}),
        "stop": _KIND,
        "tool-calls": _KIND,
        "max-tokens": _KIND,
    },
    open_record({"kind": TEXT}),
)
_TEXT_DELTA = record({"type": STRING, "index": COUNT, "text": STRING})
CHUNK = tagged(
    "type",
    {
        "block-start": record({"type": STRING, "index": COUNT, "blockType": TEXT}),
        "text-delta": _TEXT_DELTA,
        "reasoning-delta": _TEXT_DELTA,
        "tool-call-delta": record(
            {"type": STRING, "index": COUNT, "id": TEXT, "argumentsDelta": STRING}, {"name": STRING}
        ),
        "block-end": record({"type": STRING, "index": COUNT, "block": BLOCK}),
        "usage": record({"type": STRING, "usage": USAGE}),
        "finish": record(
            {"type": STRING, "reason": _FINISH_REASON},
            {"replayState": record({"response": ANY}, {"blocks": ARRAY})},
        ),
    },
)
"""One chunk of ``assistant/chunk`` and of stream records."""

# Request header and context

_TOOL = record({"name": TEXT, "description": STRING, "parameters": OBJECT})
TRUE = literal(True)


def _defaults_have_values(header: Json, label: str) -> None:
    for key in header.get("adapterDefaults", {}):
        if key not in header["config"]:
            raise FormatError(f"{label} adapter default {key} lacks its config value")


REQUEST_HEADER = where(
    record(
        {
            "config": record(
                {"provider": TEXT, "model": TEXT},
                {
                    "reasoningEffort": TEXT,
                    "temperature": FINITE,
                    "maxTokens": POSITIVE,
                    "stop": array(STRING),
                },
            )
        },
        {
            "adapterDefaults": record({}, {"reasoningEffort": TRUE, "maxTokens": TRUE}),
            "system": STRING,
            "tools": array(_TOOL),
        },
    ),
    _defaults_have_values,
)

# Turn ends

_ABORT_CAUSE = tagged(
    "kind",
    {
        "hook": record({"kind": STRING, "reason": STRING}),
        "user": _KIND,
        "parent": _KIND,
        "disposed": _KIND,
        "legacy": _KIND,
    },
)
TURN_END_REASON = tagged(
    "kind",
    {
        "completed": _KIND,
        "blocked": _KIND,
        "max-tokens": _KIND,
        "interrupted": _KIND,
        "aborted": record({"kind": STRING, "reason": _ABORT_CAUSE}),
        "error": record({"kind": STRING, "error": FAILURE}),
    },
    open_record({"kind": TEXT}),
)

# Retries and compaction


def retry_limits(data: Json, label: str) -> None:
    if data["mode"] == "normal":
        POSITIVE.check(data.get("maxRetries"), f"{label} maxRetries")
        if data["retry"] > data["maxRetries"]:
            raise FormatError(f"{label} retry exceeds maxRetries")
    elif "maxRetries" in data:
        raise FormatError(f"{label} always mode must omit maxRetries")
    if data["delayMs"] > 2**31 - 1:
        raise FormatError(f"{label} delayMs exceeds the timer range")


def span(data: Json, label: str) -> None:
    seqs = data["shadowedSeqs"]
    if (seqs[0], seqs[-1]) != (data["shadowedRange"]["start"], data["shadowedRange"]["end"]):
        raise FormatError(f"{label} shadowedRange must match the ends of shadowedSeqs")


def stream_call(data: Json, label: str) -> None:
    span(data, label)
    if "llmStreamCall" in data and "rawOutput" not in data:
        raise FormatError(f"{label} llmStreamCall requires rawOutput")


SHADOWED = {
    "shadowedRange": record({"start": COUNT, "end": COUNT}),
    "shadowedSeqs": array(COUNT, at_least=1),
    "shadowedTokenCount": COUNT,
}
COMPACTION = {"compactionId": TEXT, "turn": nullable(COUNT)}

# Goals, schedules, subagents, teams, searches

_GOAL_REF = record({"id": TEXT, "revision": POSITIVE})


def _blocked(goal: Json, label: str) -> None:
    if (goal["phase"] == "blocked") != ("blockedReason" in goal):
        raise FormatError(f"{label} blockedReason belongs to the blocked phase")


_GOAL = where(
    record(
        {
            "id": TEXT,
            "revision": POSITIVE,
            "objective": TEXT,
            "phase": literal("active", "paused", "blocked", "complete"),
            "maxGoalRounds": POSITIVE,
        },
        {"blockedReason": record({"code": TEXT, "message": TEXT})},
    ),
    _blocked,
)
_GOAL_HEAD = {"kind": literal("goal/change"), "version": literal(1), "operation": STRING}
_GOAL_SET = record({**_GOAL_HEAD, "goal": _GOAL, "roundsStarted": COUNT, "createdAt": COUNT, "updatedAt": COUNT})
GOAL_CHANGE = tagged(
    "operation",
    {
        "clear": record({**_GOAL_HEAD, "cleared": _GOAL_REF, "clearedAt": COUNT}),
        **dict.fromkeys(("create", "edit", "pause", "resume", "complete", "block"), _GOAL_SET),
    },
)


def goal_text(change: Json) -> str:
    """Text of the message that announces a goal change in formats 0 and 1."""
    clear = change["operation"] == "clear"
    keys = ("cleared", "clearedAt") if clear else ("goal", "roundsStarted", "createdAt", "updatedAt")
    return f"<goal_state>{ecma.stringify_text({key: change[key] for key in keys})}</goal_state>"


_INSTANT = re.compile(r"(?!0000)\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII)


def _is_instant(value: Json, label: str) -> None:
    try:
        if _INSTANT.fullmatch(value) is None:
            raise ValueError
        date.fromisoformat(value[:10])
    except ValueError:
        raise FormatError(f"{label} must be a canonical UTC instant") from None


def _is_trimmed(value: Json, label: str) -> None:
    if value[0] in ecma.SPACE or value[-1] in ecma.SPACE:
        raise FormatError(f"{label} must not have surrounding whitespace")


_SCHEDULE_ID = where(TEXT, _is_trimmed)
_AT = where(STRING, _is_instant)
_SCHEDULE_HEAD = {"id": _SCHEDULE_ID, "kind": STRING, "prompt": TEXT, "scheduledAt": _AT}
_SCHEDULE = tagged(
    "kind",
    {
        "after": record({**_SCHEDULE_HEAD, "afterSeconds": POSITIVE}),
        "at": record(_SCHEDULE_HEAD),
        "every": record(
            {
                **_SCHEDULE_HEAD,
                "everySeconds": where(POSITIVE, lambda v, label: _within(v, label, 300, float("inf"))),
            }
        ),
    },
)
SCHEDULE_CHANGE = tagged(
    "operation",
    {
        "create": record({"version": literal(1), "operation": STRING, "schedule": _SCHEDULE}),
        "delete": record({"version": literal(1), "operation": STRING, "id": _SCHEDULE_ID}),
        "dispatch": record({"version": literal(1), "operation": STRING, "id": _SCHEDULE_ID}, {"acceptedAt": _AT}),
    },
)


def _agent_pair(data: Json, label: str) -> None:
    if ("agentProvider" in data) != ("agentModel" in data):
        raise FormatError(f"{label} agentProvider and agentModel must be paired")
    if data.get("toolFilter") == {}:
        raise FormatError(f"{label} toolFilter requires allow or deny")


_DESCRIPTOR_HEAD = {"mode": STRING, "version": literal(3), "provider": TEXT}
DESCRIPTOR = tagged(
    "mode",
    {
        "one-shot": record(_DESCRIPTOR_HEAD, {"label": STRING}),
        "continuable": where(
            record(
                {**_DESCRIPTOR_HEAD, "label": TEXT},
                {
                    **dict.fromkeys(("agentProvider", "agentModel", "agentReasoningEffort", "persona"), TEXT),
                    "toolFilter": record({}, {"allow": array(TEXT), "deny": array(TEXT)}),
                },
            ),
            _agent_pair,
        ),
    },
)


def distinct_routes(routes: Json, label: str) -> None:
    if len({(route["provider"], route["model"]) for route in routes}) != len(routes):
        raise FormatError(f"{label} repeats a route")


TEAM = {"version": literal(1), "teamId": TEXT}
MEMBER = record(
    {
        "id": TEXT,
        "name": STRING,
        "description": STRING,
        "provider": STRING,
        "context": literal("fresh", "fork"),
        "phase": literal("provisioning", "active", "failed"),
    },
    {"error": STRING},
)
TASK = record(
    {
        "id": TEXT,
        "revision": POSITIVE,
        "subject": STRING,
        "description": STRING,
        "status": literal("pending", "in_progress", "completed", "deleted"),
        "blockedBy": array(TEXT),
        "writeScopes": array(STRING),
    },
    {"ownerId": TEXT},
)
TEAM_MESSAGE = record(
    {
        "id": TEXT,
        "senderId": TEXT,
        "senderName": STRING,
        "targetId": TEXT,
        "delivery": literal("quiet", "wakeup"),
        "content": CONTENT,
    }
)
_SEARCH_MESSAGE = record(
    {
        "role": literal("user"),
        "content": array(record({"type": literal("text"), "text": STRING}), at_least=1, at_most=1),
    }
)
_SEARCH_TOOL = record({"type": literal("web_search_20250305"), "name": literal("web_search"), "max_uses": POSITIVE})
SEARCH = record(
    {
        "model": TEXT,
        "max_tokens": POSITIVE,
        "messages": array(_SEARCH_MESSAGE, at_least=1, at_most=1),
        "tools": array(_SEARCH_TOOL, at_least=1, at_most=1),
    }
)
TITLE_SOURCE = tagged(
    "kind",
    {
        "provider": record({"kind": STRING, "provider": TEXT}, {"model": ROUTE}),
        "fallback": _KIND,
        "user": _KIND,
    },
)
WORKFLOW = {"runId": TEXT, "seq": POSITIVE}
DISPATCH = {"rootCallId": TEXT, "parentCallId": TEXT, "subCallId": TEXT, "name": TEXT}
