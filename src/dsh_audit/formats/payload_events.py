"""Shapes of event payloads in formats 0 to 2, as the migrations admit them: exact members, nothing unknown.

Source: spec session-log 3 to 6; dsh-session-format-v0-to-v1 and -v1-to-v2 0.1.3-alpha.2.
"""

from __future__ import annotations

import functools

from dsh_audit.events import Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.payload_messages import CONTENT, legacy_goal_message, message, tool_message
from dsh_audit.formats.payload_parts import (
    CHUNK,
    COMPACTION,
    DESCRIPTOR,
    DISPATCH,
    FAILURE,
    GOAL_CHANGE,
    MEMBER,
    REQUEST_HEADER,
    ROUTE,
    SCHEDULE_CHANGE,
    SEARCH,
    SHADOWED,
    STEP,
    TASK,
    TEAM,
    TEAM_MESSAGE,
    TITLE_SOURCE,
    TRUE,
    TURN_END_REASON,
    USAGE,
    WORKFLOW,
    distinct_routes,
    goal_text,
    retry_limits,
    span,
    stream_call,
)
from dsh_audit.formats.shapes import (
    ANY,
    ARRAY,
    BOOLEAN,
    COUNT,
    LOSSLESS,
    NOT_NEGATIVE,
    POSITIVE,
    SAFE_INTEGER,
    STRING,
    TEXT,
    Shape,
    array,
    literal,
    record,
    where,
)


def _user_message(version: int) -> Shape:
    plain = message(version, "user")
    if version >= 2:
        return plain
    goal = legacy_goal_message(GOAL_CHANGE, goal_text)

    def check(value: Json, label: str) -> None:
        source = value.get("source") if isinstance(value, dict) else None
        legacy = isinstance(source, dict) and source.get("kind") == "goal" and "change" in source
        (goal if legacy else plain).check(value, label)

    return Shape(check, {"anyOf": [plain.schema, goal.schema]})


_FIXED: dict[str, Shape] = {
    "agent-preset/selected": record({"agentPreset": STRING}),
    "approval/asked": record({"id": TEXT, "toolName": TEXT}, {"callId": TEXT, "reason": STRING}),
    "approval/decided": record(
        {"id": TEXT, "outcome": literal("allowed-once", "rejected", "cancelled", "unavailable")}
    ),
    "approval/policy": record({"policy": literal("ask", "never")}, {"source": literal("delegation")}),
    "assistant/chunk": record({**STEP, "chunk": CHUNK}),
    "command/done": record(
        {"commandId": TEXT, "kind": literal("success", "error")},
        {"text": STRING, "sourceEventSeq": COUNT},
    ),
    "command/run": record(
        {"commandId": TEXT, "name": TEXT, "source": record({"kind": literal("user")})}, {"args": STRING}
    ),
    "compaction/start": record(COMPACTION, {"sourceCommandId": TEXT}),
    "compaction/end": record(COMPACTION, {"sourceCommandId": TEXT, "error": STRING}),
    "compaction/prune": where(record(SHADOWED), span),
    "compaction/summary": where(
        record(
            {"compactionId": TEXT, "summary": CONTENT, **SHADOWED, "provider": TEXT, "model": TEXT},
            {
                "sourceCommandId": TEXT,
                "maxTokens": COUNT,
                "usage": USAGE,
                "rawOutput": CONTENT,
                "llmStreamCall": TRUE,
            },
        ),
        stream_call,
    ),
    "feedback/record": record({"text": TEXT}),
    "goal/change": GOAL_CHANGE,
    "hook/invoked": record(
        {"turn": COUNT, "point": TEXT, "dialect": literal("claude-code", "codex"), "handlerId": TEXT},
        {"matcher": STRING},
    ),
    "hook/result": record(
        {"turn": COUNT, "point": TEXT, "handlerId": TEXT, "decision": TEXT, "durationMs": NOT_NEGATIVE},
        {"exitCode": SAFE_INTEGER, "stderrSummary": STRING},
    ),
    "llm/retry": where(
        record(
            {
                "retryId": TEXT,
                **STEP,
                "provider": TEXT,
                "mode": literal("normal", "always"),
                "policyKey": TEXT,
                "retry": POSITIVE,
                "delayMs": NOT_NEGATIVE,
                "failure": FAILURE,
            },
            {"maxRetries": POSITIVE},
        ),
        retry_limits,
    ),
    "llm/retry-started": record({"retryId": TEXT, **STEP, "retry": POSITIVE}),
    "model/selection": record({"provider": TEXT, "model": TEXT}, {"reasoningEffort": TEXT}),
    "permission/preset": record({"preset": TEXT}),
    "plan/mode": record({"active": BOOLEAN}),
    "request/context": record({"provider": TEXT, "model": TEXT}, {"contextWindow": POSITIVE}),
    "request/header": record(
        {"header": REQUEST_HEADER, "reason": literal("initial", "resume", "change", "series")},
        {"startsSeries": TRUE},
    ),
    "sandbox/mode": record(
        {"mode": literal("read-only", "workspace-write", "danger-full-access")},
        {"source": literal("delegation")},
    ),
    "schedule/change": SCHEDULE_CHANGE,
    "session/title": record({"title": TEXT, "messageSeqs": array(COUNT), "source": TITLE_SOURCE}),
    "step/start": record(STEP),
    "step/end": record(STEP),
    "subagent/descriptor": DESCRIPTOR,
    "subagent/model-selection-policy": record({"allowedModels": where(array(ROUTE, at_least=1), distinct_routes)}),
    "team/member": record({**TEAM, "member": MEMBER}),
    "team/message/delivered": record({**TEAM, "messageId": TEXT, "targetId": TEXT}),
    "team/message/queued": record({**TEAM, "message": TEAM_MESSAGE}),
    "team/task": record({**TEAM, "task": TASK}),
    "todo/write": record(
        {"todos": array(record({"content": STRING, "status": literal("pending", "in_progress", "completed")}))}
    ),
    "tool-workflow/agent-start": record({**WORKFLOW, "label": STRING, "childId": TEXT}, {"phase": STRING}),
    "tool-workflow/agent-end": record({**WORKFLOW, "outcome": literal("completed", "failed", "cancelled")}),
    "tool-workflow/run-start": record({"runId": TEXT, "name": TEXT}),
    "tool-workflow/run-end": record({"runId": TEXT, "stopReason": literal("completed", "cancelled", "error")}),
    "tool/call": record({**STEP, "callId": TEXT, "name": TEXT, "arguments": STRING}),
    "turn/start": record({"turn": COUNT}),
    "turn/end": record({"turn": COUNT, "reason": TURN_END_REASON}),
    "web/deepseek-search-llm-request": record({"endpoint": TEXT, "apiVersion": TEXT, "body": SEARCH}),
}
"""Payloads that are the same in formats 0 to 2."""


@functools.cache
def payload_shapes(version: int) -> dict[str, Shape]:
    """Payload shapes by event type.

    Args:
        version: 0, 1 or 2. Format 2 adds ``assistant/attempt`` and has no ``assistant/chunk``.
    """
    user = _user_message(version)
    settled = {} if version < 2 else {"stream": ARRAY}
    opaque = LOSSLESS if version < 2 else ANY
    marker = {} if version < 1 else {"sessionFormatVersion": ANY}
    shapes = {
        **_FIXED,
        "tool/code-dispatch-start": record({**DISPATCH, "arguments": opaque}),
        "tool/code-dispatch": record({**DISPATCH, "arguments": opaque, "isError": BOOLEAN, "content": CONTENT}),
        "agent/inbox/spliced": record(
            {"target": literal("next-turn", "next-step"), "start": COUNT, "inserted": array(user)},
            {"removedCount": COUNT, "outcome": literal("canceled")},
        ),
        "assistant/message": record(
            {**STEP, "message": message(version, "assistant", kind="model"), **settled},
            {"usage": USAGE, "interrupted": TRUE},
        ),
        "session-log-deepseek/delivery-accepted": record({"sessionId": ANY, "throughSeq": ANY}, marker),
        "session/end-seed": record({}, {} if version < 2 else {"inherited": ANY}),
        "session/title-llm-request": record(
            {
                "titleProvider": TEXT,
                "messageSeqs": array(COUNT, at_least=1),
                "route": ROUTE,
                "system": STRING,
                "messages": array(message(version, "system", "user", "assistant")),
                "maxTokens": POSITIVE,
            }
        ),
        "tool/result": record(
            {**STEP, "message": tool_message(version)},
            {"error": record({"name": TEXT, "code": TEXT}), "meta": opaque},
        ),
        "user/message": user,
    }
    if version >= 2:
        del shapes["assistant/chunk"]
        shapes["assistant/attempt"] = record({**STEP, "stream": ARRAY})
    return shapes


def check_payload(event_type: str, seq: int, data: Json, version: int) -> None:
    """Check the payload of a known event: its shape, and that its references name earlier events.

    Raises:
        FormatError: what the migration from this version refuses.
    """
    label = f"{event_type} {seq}"
    if event_type == "subagent/descriptor" and isinstance(data, dict) and data.get("version") != 3:
        COUNT.check(data.get("version"), f"{label} version")
        if version == 0:
            raise FormatError(f"{label} uses unsupported descriptor version {data['version']}")
        return
    payload_shapes(version)[event_type].check(data, f"{label} data")
    if event_type == "session-log-deepseek/delivery-accepted":
        claimed = data.get("sessionFormatVersion", 0)
        COUNT.check(claimed, f"{label} sessionFormatVersion")
        if claimed == version:
            TEXT.check(data["sessionId"], f"{label} sessionId")
            _check_earlier([data["throughSeq"]], seq, f"{label} throughSeq")
        return
    for seqs in _local_references(event_type, data):
        _check_earlier(seqs, seq, label)


def _local_references(event_type: str, data: Json) -> list[list[Json]]:
    match event_type:
        case "command/done":
            return [[data["sourceEventSeq"]]] if "sourceEventSeq" in data else []
        case "compaction/summary" | "compaction/prune":
            return [data["shadowedSeqs"]]
        case "session/title" | "session/title-llm-request":
            return [data["messageSeqs"]]
        case _:
            return []


def _check_earlier(seqs: list[Json], seq: int, label: str) -> None:
    for each in seqs:
        COUNT.check(each, label)
        if each >= seq:
            raise FormatError(f"{label} must reference earlier events: {each}")
    if len(set(seqs)) != len(seqs):
        raise FormatError(f"{label} repeats a referenced seq")
