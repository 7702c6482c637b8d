"""Random format 0 logs that are valid, and small damages to them, for comparing readers and migrations."""

from __future__ import annotations

import copy
import random
from typing import Any

Row = dict[str, Any]

MODEL = {"provider": "p", "model": "m"}
USAGE = {"inputTokens": 3, "outputTokens": 2, "cacheReadTokens": 1}
FAILURE = {"message": "m", "code": "SERVER", "status": 500, "providerRetryAfterMs": 1.5, "requestId": "r"}
IMAGE = {"attachmentId": "a", "mediaType": "image/png", "bytes": 3, "width": 1, "height": 2}
GOAL = {"id": "g", "revision": 2, "objective": "o", "phase": "active", "maxGoalRounds": 3}
GOAL_CHANGE = {
    "kind": "goal/change",
    "version": 1,
    "operation": "edit",
    "goal": GOAL,
    "roundsStarted": 0,
    "createdAt": 1,
    "updatedAt": 2,
}
REFERENCE = {
    "sessionId": "s9",
    "label": "l",
    "capturedThroughSeq": None,
    "compacted": False,
    "originalMessages": 3,
    "retainedMessages": 2,
    "omittedMessages": 1,
    "omittedBytes": 0,
    "truncated": True,
    "inputIndex": 0,
}
SOURCES: list[Row] = [
    {"kind": "user"},
    {"kind": "user", "rpcId": "r", "clientTimeZone": "UTC"},
    {"kind": "plugin", "plugin": "x", "form": "notice", "summary": "s"},
    {"kind": "plugin", "plugin": "x", "form": "snapshot", "sections": [{"name": "n", "text": ""}]},
    {"kind": "plugin", "plugin": "compact", "compactionId": "k"},
    {"kind": "agent-instructions", "form": "instructions", "changes": [{"action": "set", "scope": "", "path": "p"}]},
    {"kind": "session-reference", "form": "recall", "version": 1, "references": [REFERENCE]},
    {"kind": "team-message", "teamId": "t", "messageId": "m", "senderId": "s", "senderName": ""},
    {"kind": "goal", "goalId": "g", "revision": 1, "round": 1},
    {"kind": "skill-invocation", "name": "n", "form": "instructions"},
    {"kind": "skill-catalog", "form": "catalog", "entries": [{"name": "n", "description": ""}], "update": True},
    {"kind": "coordinator", "form": "relay", "senderSessionId": "s"},
    {"kind": "subagent-settled", "form": "notice", "summary": "", "senderSessionId": "s"},
    {
        "kind": "webhook", "provider": "p", "source": "s", "deliveryId": "d", "ruleId": "r",
        "form": "notice", "summary": "",
    },
    {"kind": "agent-message", "form": "relay", "senderSessionId": "s"},
]
BLOCKS: list[Row] = [
    {"type": "text", "text": "x"},
    {"type": "reasoning", "text": ""},
    {"type": "image", "attachment": IMAGE},
    {"type": "image", "attachment": {**IMAGE, "name": "n", "originalDimensions": {"width": 9, "height": 9}}},
    {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"},
    {"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": "x"}], "isError": True},
]
DISPATCH = {"rootCallId": "a", "parentCallId": "a", "subCallId": "b", "name": "n", "arguments": {"x": [1, None]}}
SCHEDULE = {"id": "i", "kind": "every", "prompt": "p", "everySeconds": 300, "scheduledAt": "2026-02-28T01:02:03.004Z"}
MEMBER = {"id": "i", "name": "", "description": "", "provider": "", "context": "fork", "phase": "active"}
TASK = {
    "id": "i", "revision": 1, "subject": "", "description": "", "status": "pending",
    "blockedBy": ["x"], "writeScopes": [""], "ownerId": "o",
}
SEARCH = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
}
LOG_ONLY: dict[str, list[Row]] = {
    "agent-preset/selected": [{"agentPreset": "code"}],
    "approval/asked": [{"id": "i", "toolName": "t", "callId": "c", "reason": ""}],
    "approval/decided": [{"id": "i", "outcome": "rejected"}],
    "approval/policy": [{"policy": "ask", "source": "delegation"}],
    "command/run": [{"commandId": "c", "name": "n", "source": {"kind": "user"}, "args": ""}],
    "command/done": [{"commandId": "c", "kind": "success", "text": ""}],
    "feedback/record": [{"text": "t"}],
    "goal/change": [
        GOAL_CHANGE,
        {
            "kind": "goal/change", "version": 1, "operation": "clear",
            "cleared": {"id": "g", "revision": 1}, "clearedAt": 3,
        },
    ],
    "hook/invoked": [{"turn": 1, "point": "p", "dialect": "codex", "handlerId": "h", "matcher": ""}],
    "hook/result": [
        {
            "turn": 1, "point": "p", "handlerId": "h", "decision": "d", "durationMs": 0.5,
            "exitCode": -1, "stderrSummary": "",
        }
    ],
    "model/selection": [{**MODEL, "reasoningEffort": "high"}],
    "permission/preset": [{"preset": "p"}],
    "plan/mode": [{"active": True}],
    "request/context": [{**MODEL, "contextWindow": 5}],
    "sandbox/mode": [{"mode": "read-only", "source": "delegation"}],
    "schedule/change": [
        {"version": 1, "operation": "create", "schedule": SCHEDULE},
        {"version": 1, "operation": "dispatch", "id": "i", "acceptedAt": "2024-02-29T23:59:59.999Z"},
    ],
    "session-log-deepseek/delivery-accepted": [{"sessionId": "s1", "throughSeq": 0}],
    "subagent/descriptor": [
        {"mode": "one-shot", "version": 3, "provider": "p"},
        {
            "mode": "continuable", "version": 3, "provider": "p", "label": "l",
            "agentProvider": "p", "agentModel": "m", "toolFilter": {"allow": ["t"]},
        },
    ],
    "subagent/model-selection-policy": [{"allowedModels": [MODEL]}],
    "team/member": [{"version": 1, "teamId": "t", "member": MEMBER}],
    "team/message/delivered": [{"version": 1, "teamId": "t", "messageId": "m", "targetId": "x"}],
    "team/task": [{"version": 1, "teamId": "t", "task": TASK}],
    "todo/write": [{"todos": [{"content": "", "status": "pending"}]}],
    "tool-workflow/agent-end": [{"runId": "r", "seq": 1, "outcome": "failed"}],
    "tool-workflow/agent-start": [{"runId": "r", "seq": 1, "label": "", "childId": "c", "phase": ""}],
    "tool-workflow/run-end": [{"runId": "r", "stopReason": "error"}],
    "tool-workflow/run-start": [{"runId": "r", "name": "n"}],
    "tool/call": [{"turn": 1, "step": 1, "callId": "c", "name": "n", "arguments": ""}],
    "tool/code-dispatch-start": [DISPATCH],
    "web/deepseek-search-llm-request": [{"endpoint": "e", "apiVersion": "v", "body": SEARCH}],
}
ODD: list[Any] = [None, True, False, 0, 1, -1, -0.0, 1.5, 2**53, 1e400, "", "x", [], {}, [1], {"type": "x"}, "user"]


class Maker:
    """Writes one log, an event at a time."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: list[Row] = []
        self.turn = 0
        self.step = 0
        self.time = 1000
        self.surface: list[int] = []

    def add(self, kind: str, data: Any, **more: Any) -> int:
        self.time += self.rng.choice([0, 1, 1, 7])
        seq = len(self.rows)
        self.rows.append({"type": kind, "seq": seq, "time": self.time, "data": copy.deepcopy(data), **more})
        return seq

    def message(self, role: str, source: Row, *blocks: Row) -> Row:
        return {"id": f"m{len(self.rows)}", "role": role, "content": list(blocks), "source": source}

    def log_only(self) -> None:
        kind = self.rng.choice(list(LOG_ONLY))
        if self.rows:
            self.add(kind, self.rng.choice(LOG_ONLY[kind]))

    def user(self) -> int:
        source = self.rng.choice([SOURCES[0], SOURCES[0], self.rng.choice(SOURCES)])
        blocks = self.rng.choices(BLOCKS, k=self.rng.randrange(3))
        return self.surfaced("user/message", self.message("user", source, *blocks))

    def surfaced(self, kind: str, data: Row, **more: Any) -> int:
        seq = self.add(kind, data, **more, surfaceOp="append")
        self.surface.append(seq)
        return seq

    def replace_some(self) -> None:
        if len(self.surface) < 2:
            return
        first = self.rng.randrange(len(self.surface))
        last = self.rng.randrange(first, len(self.surface))
        gone = self.surface[first : last + 1]
        span = {"shadowedRange": {"start": gone[0], "end": gone[-1]}, "shadowedSeqs": gone, "shadowedTokenCount": 4}
        self.add("compaction/start", {"compactionId": "k", "turn": self.turn})
        summary = {"compactionId": "k", "summary": [BLOCKS[0]], **span, **MODEL}
        self.add("compaction/summary", {**summary, "rawOutput": [BLOCKS[1]], "llmStreamCall": True, "usage": USAGE})
        op = {"op": "replace", "start": gone[0], "end": gone[-1]}
        data = self.message("user", SOURCES[4], BLOCKS[0])
        seq = self.add("user/message", data, sourceEventSeqs=gone, surfaceOp=op)
        self.surface[first : last + 1] = [seq]
        self.add("compaction/prune", {**span, "shadowedRange": {"start": seq, "end": seq}, "shadowedSeqs": [seq]})
        self.add("compaction/end", {"compactionId": "k", "turn": self.turn, "error": "e"})

    def chunk(self, chunk: Row) -> int:
        return self.add("assistant/chunk", {"turn": self.turn, "step": self.step, "chunk": chunk})

    def attempt(self) -> list[int]:
        seqs: list[int] = []
        for index in range(self.rng.randrange(4)):
            kind = self.rng.choice(["text", "reasoning", "tool-call"])
            seqs.append(self.chunk({"type": "block-start", "index": index, "blockType": kind}))
            for _ in range(self.rng.randrange(5)):
                if self.rng.random() < 0.07:
                    self.log_only()
                seqs.append(self.chunk(self.delta(kind, index)))
            block = BLOCKS[{"text": 0, "reasoning": 1, "tool-call": 4}[kind]]
            seqs.append(self.chunk({"type": "block-end", "index": index, "block": block}))
        if self.rng.random() < 0.7:
            seqs.append(self.chunk({"type": "usage", "usage": USAGE}))
            kind = self.rng.choice(["stop", "tool-calls", "max-tokens", "error", "aborted", "later"])
            failed = kind in ("error", "aborted")
            reason: Row = {"kind": kind, "failure": FAILURE} if failed else {"kind": kind}
            seqs.append(self.chunk({"type": "finish", "reason": reason, "replayState": {"response": {"x": 1}}}))
        return seqs

    def delta(self, kind: str, index: int) -> Row:
        if kind != "tool-call":
            return {"type": f"{kind}-delta", "index": index, "text": self.rng.choice(["", "a", "\u2028"])}
        named = self.rng.choice([{}, {}, {"name": "n"}, {"name": ""}])
        return {"type": "tool-call-delta", "index": index, "id": "c", **named, "argumentsDelta": "{"}

    def one_step(self) -> None:
        rng = self.rng
        at = {"turn": self.turn, "step": self.step}
        self.add("step/start", at)
        if rng.random() < 0.6:
            self.request_header()
        for _ in range(rng.randrange(2)):
            self.user()
        seqs = self.attempt()
        if rng.random() < 0.3:
            retry = {"retryId": f"r{self.turn}", **at, "retry": 1}
            normal: Row = {"mode": "normal", "maxRetries": 2} if rng.random() < 0.5 else {"mode": "always"}
            policy = {"provider": "p", "policyKey": "k", "delayMs": 1, "failure": FAILURE}
            self.add("llm/retry", {**retry, **policy, **normal})
            self.add("llm/retry-started", retry)
            seqs = self.attempt()
        if rng.random() < 0.8:
            message = self.message("assistant", {"kind": "model", **MODEL, "replayState": 1}, *rng.choices(BLOCKS, k=1))
            more = {"usage": USAGE} if rng.random() < 0.5 else {"interrupted": True}
            sources: Row = {"sourceEventSeqs": seqs} if seqs or rng.random() < 0.5 else {}
            self.surfaced("assistant/message", {**at, "message": message, **more}, **sources)
            if rng.random() < 0.5:
                self.tool_result(at)
        if rng.random() < 0.2:
            self.log_only()
        self.add("step/end", at)

    def request_header(self) -> None:
        config: Row = {**MODEL, "maxTokens": 5, "temperature": 0.5, "stop": ["x"], "reasoningEffort": "high"}
        header: Row = {"config": config}
        if self.rng.random() < 0.7:
            header["system"] = self.rng.choice(["", "a", "b"])
        if self.rng.random() < 0.7:
            tool = {"name": "t", "description": "", "parameters": {"type": "object"}}
            header["tools"] = self.rng.choice([[], [tool]])
        if self.rng.random() < 0.5:
            header["adapterDefaults"] = self.rng.choice([{}, {"maxTokens": True}])
        reason = self.rng.choice(["initial", "resume", "change", "series"])
        self.add("request/header", {"header": header, "reason": reason})

    def tool_result(self, at: Row) -> None:
        block = {"type": "tool-result", "toolCallId": "c", "content": [BLOCKS[0]], "isError": True}
        message = self.message("user", {"kind": "tool", "callId": "c"}, block)
        more: Row = self.rng.choice([{}, {"error": {"name": "n", "code": "c"}}, {"meta": {"any": [1]}}])
        self.surfaced("tool/result", {**at, "message": message, **more})

    def one_turn(self) -> None:
        rng = self.rng
        if rng.random() < 0.3:
            inserted = [self.message("user", SOURCES[0], BLOCKS[0])] if rng.random() < 0.7 else []
            self.add("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": inserted})
        self.turn += 1
        self.add("turn/start", {"turn": self.turn})
        for self.step in range(1, 2 + rng.randrange(2)):
            self.one_step()
        if rng.random() < 0.3:
            self.replace_some()
        if rng.random() < 0.2:
            self.title()
        if rng.random() < 0.9:
            self.end()

    def title(self) -> None:
        seqs = [row["seq"] for row in self.rows if row["type"] == "user/message"][:2]
        if not seqs:
            return
        message = self.message("user", {"kind": "plugin", "plugin": "dsh-session-title-llm"}, BLOCKS[0])
        request = {"titleProvider": "p", "messageSeqs": seqs, "route": MODEL, "system": "", "maxTokens": 4}
        self.add("session/title-llm-request", {**request, "messages": [message]})
        source = self.rng.choice([{"kind": "provider", "provider": "p", "model": MODEL}, {"kind": "fallback"}])
        self.add("session/title", {"title": "t", "messageSeqs": seqs, "source": source})

    def end(self) -> None:
        reason = self.rng.choice(
            [
                *({"kind": kind} for kind in ("completed", "blocked", "max-tokens", "interrupted", "later")),
                {"kind": "aborted", "reason": {"kind": "user"}},
                {"kind": "aborted", "reason": {"kind": "hook", "reason": ""}},
                {"kind": "error", "error": FAILURE},
            ]
        )
        self.add("turn/end", {"turn": self.turn, "reason": reason})


def make_log(seed: int) -> tuple[Row, list[Row]]:
    """A session header and rows of format 0, unpacked; the same for the same seed."""
    maker = Maker(random.Random(seed))
    for _ in range(1 + maker.rng.randrange(3)):
        maker.one_turn()
    header: Row = {"type": "session", "version": 0, "id": "s1", "createdAt": 5, "cwd": "/w"}
    if maker.rng.random() < 0.3:
        cut = maker.rng.randrange(len(maker.rows) + 1)
        header |= {"parentSession": "p", "seedLength": cut}
        if maker.rng.random() < 0.5 and cut < len(maker.rows):
            maker.rows[cut] = {**maker.rows[cut], "type": "session/end-seed", "data": {}}
            for key in ("surfaceOp", "sourceEventSeqs"):
                maker.rows[cut].pop(key, None)
    return {**header, "delegationDepth": 0}, maker.rows


def damage(rng: random.Random, rows: list[Row]) -> list[Row]:
    """The rows with one small change somewhere in one of them."""
    out = list(rows)
    at = rng.randrange(len(out))
    out[at] = copy.deepcopy(out[at])
    _damage_value(rng, out[at])
    return out


def _damage_value(rng: random.Random, value: Any) -> None:
    """Walk into a container at random and change one member of it."""
    while True:
        places: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        inner = [place for place in places if isinstance(value[place], (dict, list)) and value[place]]
        if not inner or rng.random() < 0.25:
            break
        value = value[rng.choice(inner)]
    action = rng.random()
    if action < 0.2 and isinstance(value, dict):
        value[rng.choice(["extra", "name", "form", "ignorable", "inherited", "label", "plugin"])] = rng.choice(ODD)
    elif action < 0.45 or not places:
        if places:
            del value[rng.choice(places)]
    else:
        place = rng.choice(places)
        odd = rng.choice(ODD)
        value[place] = rng.choice([odd, odd, value[rng.choice(places)]])
