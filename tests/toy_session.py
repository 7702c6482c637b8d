"""A builder of small sessions in formats 0, 3 and 4, for tests that need many kinds of request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dsh_audit.log.generations import SessionHistory, build_history
from dsh_audit.log.session_log import SessionLog
from dsh_audit.text import ecma
from tests.logs import log_of, text_block

Json = Any

START_MS = 1_796_000_000_000
PROVIDER = "deepseek-official"


def tool(name: str, description: str = "Do it.", **parameters: Json) -> dict[str, Json]:
    """A tool definition."""
    return {"name": name, "description": description, "parameters": {"type": "object", "properties": parameters}}


def usage(uncached: int, cached: int | None = None, output: int = 10, **more: int) -> dict[str, int]:
    """Token usage as logged: disjoint counts."""
    counts = {"inputTokens": uncached, "outputTokens": output, **more}
    return counts if cached is None else {**counts, "cacheReadTokens": cached}


@dataclass
class ToySession:
    """Appends events; methods that make one event return its seq.

    Args:
        version: 0, 3 or 4.
        in_history: v3 and v4: the route takes prompt updates in the history.
    """

    version: int = 0
    in_history: bool = False
    ident: str = "toy"
    model: str = "deepseek-flash"
    provider: str = PROVIDER
    effort: str = "high"
    prompt: str = "Run errands."
    tools: list[Json] = field(default_factory=lambda: [tool("echo"), tool("walk")])
    settings: dict[str, Json] = field(default_factory=dict)
    time_ms: int = START_MS
    rows: list[Json] = field(default_factory=list)
    surface: list[int] = field(default_factory=list)
    turn: int = 0
    step: int = 0

    def __post_init__(self) -> None:
        header = {"type": "session", "version": self.version, "id": self.ident, "createdAt": START_MS}
        seeded = {} if self.version < 2 else {"isSeeded": False}
        self.rows.append({**header, "cwd": "/srv/toy", **seeded, "delegationDepth": 0})
        self._shown_prompt: str | None = None
        self._system_seq: int | None = None
        self._shown_header: Json = None
        self._shown_context: Json = None
        self._result = 0

    @property
    def seq(self) -> int:
        """The next seq."""
        return len(self.rows) - 1

    def add(self, kind: str, data: Json, **envelope: Json) -> int:
        """One event."""
        self.time_ms += 10
        self.rows.append({"type": kind, "seq": self.seq, "time": self.time_ms, "data": data, **envelope})
        return self.seq - 1

    def append(self, kind: str, data: Json, **envelope: Json) -> int:
        """One surface event at the end."""
        self.surface.append(self.seq)
        return self.add(kind, data, **envelope, surfaceOp="append")

    def replace(self, kind: str, data: Json, seqs: Sequence[int], sources: Sequence[int] = ()) -> int:
        """One surface event in the place of others."""
        seqs = list(seqs)
        first, last = self.surface.index(seqs[0]), self.surface.index(seqs[-1])
        ends = ("start", "end") if self.version < 3 else ("startSeq", "endSeq")
        op = {"op": "replace", ends[0]: seqs[0], ends[1]: seqs[-1]}
        self.surface[first : last + 1] = [self.seq]
        return self.add(kind, data, sourceEventSeqs=[*sources, *seqs], surfaceOp=op)

    def source(self, kind: str, **more: Json) -> dict[str, Json]:
        """A message source of a plugin."""
        return {"kind": kind, **more} if self.version >= 4 else {"kind": "plugin", "plugin": kind}

    def message(self, role: str, text: str, source: Json) -> dict[str, Json]:
        """A message of one text block."""
        content = [text_block(text)] if text else []
        return {"role": role, "content": content, "source": source, "id": f"m{self.seq}"}

    def user(self, text: str) -> int:
        """A user message."""
        return self.append("user/message", self.message("user", text, {"kind": "user"}))

    def begin(self, text: str | None = None) -> None:
        """Start a turn and its first step, or with no text the next step; log what changed since the last one."""
        if text is not None:
            self.turn, self.step = self.turn + 1, 0
            self.add("turn/start", {"turn": self.turn})
        self.step += 1
        self.add("step/start", {"turn": self.turn, "step": self.step})
        self._log_prompt()
        if text is not None:
            self.user(text)
        self.log_header("change" if self._shown_header else "initial")

    def ask(self, text: str | None = None, reply: str = "Done.", *, end: bool = True, **counts: Json) -> int:
        """A whole step: inputs, headers where something changed, answer. Returns the seq of the answer."""
        self.begin(text)
        seq = self.answer(reply, **counts)
        self.add("step/end", {"turn": self.turn, "step": self.step})
        if end:
            self.add("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})
        return seq

    def call(self, text: str | None, name: str, result: str, **counts: Json) -> int:
        """A step that calls a tool; returns the seq of the result. The turn stays open."""
        self.begin(text)
        ident = f"c{self.seq}"
        block = {"type": "tool-call", "id": ident, "name": name, "arguments": "{}"}
        self.answer("", calls=[block], **counts)
        seq = self.append("tool/result", self.result(ident, result))
        self.add("step/end", {"turn": self.turn, "step": self.step})
        return seq

    def result(self, ident: str, text: str) -> dict[str, Json]:
        """Payload of a tool result."""
        source, place = {"kind": "tool", "callId": ident}, {"turn": self.turn, "step": self.step}
        if self.version >= 4:
            message = {"role": "tool", "source": source, "toolCallId": ident, "content": [text_block(text)]}
            return {**place, "message": {**message, "isError": False, "id": f"r-{ident}"}}
        block = {"type": "tool-result", "toolCallId": ident, "content": [text_block(text)], "isError": False}
        return {**place, "message": {"source": source, "content": [block], "role": "user", "id": f"r-{ident}"}}

    def answer(self, text: str, calls: Sequence[Json] = (), counts: Json = None) -> int:
        """Chunks (v0) and the assistant message of one attempt."""
        content = [*([text_block(text)] if text else []), *calls]
        source: dict[str, Json] = {"kind": "model", "provider": self.provider, "model": self.model}
        if self.version >= 4:
            blocks = [{"type": block["type"]} for block in content]
            response = {"kind": "deepseek-messages", "version": 1, "model": self.model}
            source["replayState"] = {"response": response, "blocks": blocks}
        message = {"role": "assistant", "content": content, "source": source, "id": f"m{self.seq}"}
        data: dict[str, Json] = {"turn": self.turn, "step": self.step, "message": message}
        if counts is not None:
            data["usage"] = counts
        finish = {"type": "finish", "reason": {"kind": "tool-calls" if calls else "stop"}}
        chunks = [{"type": "block-start", "index": 0, "blockType": "text"}, finish]
        if self.version >= 2:
            stream = [{"type": "chunk", "time": self.time_ms, "chunk": chunk} for chunk in chunks]
            return self.append("assistant/message", {**data, "stream": stream})
        place = {"turn": self.turn, "step": self.step}
        seqs = [self.add("assistant/chunk", {**place, "chunk": chunk}) for chunk in chunks]
        return self.append("assistant/message", data, sourceEventSeqs=seqs)

    def fail(self, code: str = "SERVER", status: int = 500) -> int:
        """An attempt that failed, and the retry that follows."""
        failure = {"message": "toy", "code": code, "status": status}
        finish = {"type": "finish", "reason": {"kind": "error", "failure": failure}}
        place = {"turn": self.turn, "step": self.step}
        if self.version >= 2:
            stream = [{"type": "chunk", "time": self.time_ms, "chunk": finish}]
            seq = self.add("assistant/attempt", {**place, "stream": stream})
        else:
            seq = self.add("assistant/chunk", {**place, "chunk": finish})
        retry = {"retryId": f"r{seq}", **place, "provider": self.provider, "mode": "normal", "policyKey": "p"}
        retry |= {"retry": 1, "delayMs": 1, "failure": failure, "maxRetries": 3}
        self.add("llm/retry", retry)
        self.add("llm/retry-started", {"retryId": f"r{seq}", **place, "retry": 1})
        return seq

    def log_header(self, reason: str, *, series: bool = False) -> int | None:
        """The request header and context, where they changed or the reason is not ``change``."""
        config = {"provider": self.provider, "model": self.model, "reasoningEffort": self.effort, **self.settings}
        header: dict[str, Json] = {"config": config}
        if self.version < 3 and self.prompt:
            header["system"] = self.prompt
        if self.tools:
            header["tools"] = list(self.tools)
        if header == self._shown_header and reason == "change":
            return None
        before, self._shown_header = self._shown_header, header
        extra = {"startsSeries": True} if series else {}
        seq = self.add("request/header", {"header": header, "reason": reason, **extra})
        self._log_developer(before, seq)
        context = {"provider": self.provider, "model": self.model, "contextWindow": 1000000}
        if self.in_history:
            context["systemPromptUpdate"] = "in-history"
        if context != self._shown_context:
            self._shown_context = context
            self.add("request/context", context)
        return seq

    def _log_developer(self, before: Json, seq: int) -> None:
        if self.version < 4 or before is None:
            return
        old = [item["name"] for item in before.get("tools", [])]
        new = [item["name"] for item in self.tools]
        added, removed = [n for n in new if n not in old], [n for n in old if n not in new]
        if not added and not removed:
            return
        blocks = [{"type": "tool-addition", "toolName": name} for name in added]
        blocks += [{"type": "tool-removal", "toolName": name} for name in removed]
        message = {"source": {"kind": "tool-registry"}, "content": blocks, "role": "developer", "id": f"d{seq}"}
        data = {"turn": self.turn, "step": self.step, "message": message}
        self.append("developer/message", data | ({"headerSeq": seq} if added else {}))

    def _log_prompt(self) -> None:
        """v3 and v4: the system message, in the history or in place of the head."""
        if self.version < 3 or self.prompt == self._shown_prompt:
            return
        message = self.message("system", self.prompt, self.source("system-prompt"))
        data = {"turn": self.turn, "step": self.step, "message": message}
        if self._system_seq is None or self.in_history:
            seq = self.append("system/message", data)
        else:
            seq = self.replace("system/message", data, [self._system_seq])
        if self._system_seq is None or not self.in_history:
            self._system_seq = seq
        self._shown_prompt = self.prompt

    def compact(self, seqs: Sequence[int], summary: str = "Summary.", counts: Json = None) -> int:
        """A successful manual compaction; returns the seq of the checkpoint."""
        seqs, ident = list(seqs), f"k{self.seq}"
        start = self.add("compaction/start", {"compactionId": ident, "turn": None})
        data: dict[str, Json] = {"compactionId": ident, "summary": [text_block(summary)]}
        data |= {"rawOutput": [text_block(summary)], "llmStreamCall": True}
        data |= {"shadowedRange": {"start": seqs[0], "end": seqs[-1]}, "shadowedSeqs": list(seqs)}
        data |= {"shadowedTokenCount": 9, "provider": self.provider, "model": self.model, "maxTokens": 200}
        if counts is not None:
            data["usage"] = counts
        summed = self.add("compaction/summary", data)
        source = self.source("compact-checkpoint" if self.version >= 4 else "compact", compactionId=ident)
        seq = self.replace("user/message", self.message("user", summary, source), seqs, [start, summed])
        self.add("compaction/end", {"compactionId": ident, "turn": None})
        return seq

    def prune(self, seq: int, text: str = "[pruned]") -> int:
        """Prune one tool result; returns the seq of the short one."""
        span = {"start": seq, "end": seq}
        self.add("compaction/prune", {"shadowedRange": span, "shadowedSeqs": [seq], "shadowedTokenCount": 9})
        old = self.rows[seq + 1]["data"]
        message = dict(old["message"])
        if self.version >= 4:
            message["content"] = [text_block(text)]
        else:
            message["content"] = [{**message["content"][0], "content": [text_block(text)]}]
        return self.replace("tool/result", {**old, "message": message}, [seq])

    def restart(self) -> int:
        """A new process takes the session up; the next request header says so."""
        return self.add("session/end-seed", {})

    def resume(self, text: str, **counts: Json) -> int:
        """A restart and a whole turn after it."""
        self.restart()
        self.turn, self.step = self.turn + 1, 1
        self.add("turn/start", {"turn": self.turn})
        self.add("step/start", {"turn": self.turn, "step": 1})
        self._log_prompt()
        self.user(text)
        self.log_header("resume")
        seq = self.answer("Back.", **counts)
        self.add("step/end", {"turn": self.turn, "step": 1})
        self.add("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})
        return seq

    def title(self, text: str = "Errands") -> int:
        """A title request (v0 fields)."""
        source = self.source("dsh-session-title-llm")
        messages = [self.message("user", f"Name this: {text}", source)]
        data: dict[str, Json] = {"titleProvider": "toy", "messageSeqs": [self.surface[-1]], "system": "Give a title."}
        route = {"provider": self.provider, "model": self.model}
        data |= {"route": route, "messages": messages, "maxTokens": 64}
        return self.add("session/title-llm-request", data)

    def plain(self) -> bytes:
        """The log file."""
        return b"".join(ecma.stringify(row) + b"\n" for row in self.rows)

    def log(self) -> SessionLog:
        """The log, opened."""
        name = "session.jsonl" if self.version == 0 else f"session.v{self.version}.jsonl"
        return log_of(self.plain(), name)

    def history(self) -> SessionHistory:
        """The log as a session without older generations."""
        return build_history(self.log())
