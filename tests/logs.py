"""Small hand-made format-0 sessions for tests: rows, and log files over them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import zstandard

from dsh_audit.log.session_log import LogSource, SessionLog, open_log
from dsh_audit.text import ecma

TOOLS = [{"name": "add", "description": "Add.", "parameters": {"type": "object", "properties": {}}}]


def text_block(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


@dataclass
class SessionV0:
    """Rows of one format-0 session; every method appends events and returns the seq of the first."""

    ident: str = "toy-1"
    rows: list[dict[str, Any]] = field(default_factory=list)
    seq: int = 0
    turn: int = 0
    step: int = 0
    messages: int = 0

    def __post_init__(self) -> None:
        self.rows.append(
            {"type": "session", "version": 0, "id": self.ident, "createdAt": 1, "cwd": "/srv/toy", "delegationDepth": 0}
        )

    def add(self, kind: str, data: Any, **envelope: Any) -> int:
        row = {"type": kind, "seq": self.seq, "time": 1000 + self.seq, "data": data, **envelope}
        self.rows.append(row)
        self.seq += 1
        return self.seq - 1

    def header(self, reason: str = "initial", system: str | None = "Be terse.", **changes: Any) -> int:
        config = {"provider": "deepseek-official", "model": "toy-1", "maxTokens": 100, "reasoningEffort": "high"}
        header: dict[str, Any] = {"config": config | changes.pop("config", {})}
        if system is not None:
            header["system"] = system
        header["tools"] = changes.pop("tools", TOOLS)
        return self.add("request/header", {"header": header | changes, "reason": reason})

    def start_turn(self) -> None:
        self.turn, self.step = self.turn + 1, 0
        self.add("turn/start", {"turn": self.turn})

    def start_step(self) -> None:
        self.step += 1
        self.add("step/start", {"turn": self.turn, "step": self.step})

    def user(self, text: str) -> int:
        return self.add("user/message", self.message("user", [text_block(text)], {"kind": "user"}), surfaceOp="append")

    def message(self, role: str, content: list[Any], source: dict[str, Any]) -> dict[str, Any]:
        self.messages += 1
        return {"role": role, "content": content, "source": source, "id": f"m{self.messages}"}

    def chunk(self, **chunk: Any) -> int:
        return self.add("assistant/chunk", {"turn": self.turn, "step": self.step, "chunk": chunk})

    def stream(self, text: str, reason: str = "stop") -> list[int]:
        block = text_block(text)
        return [
            self.chunk(type="block-start", index=0, blockType="text"),
            self.chunk(type="text-delta", index=0, text=text),
            self.chunk(type="block-end", index=0, block=block),
            self.chunk(type="finish", reason={"kind": reason}),
        ]

    def fail(self, code: str, **failure: Any) -> int:
        detail = {"message": "toy failure", "code": code, **failure}
        return self.chunk(type="finish", reason={"kind": "error", "failure": detail})

    def answer(self, text: str, calls: list[dict[str, Any]] | None = None) -> int:
        sources = self.stream(text, "tool-calls" if calls else "stop")
        content = [text_block(text), *(calls or [])]
        source = {"kind": "model", "provider": "deepseek-official", "model": "toy-1"}
        message = self.message("assistant", content, source)
        data = {"turn": self.turn, "step": self.step, "message": message}
        return self.add("assistant/message", data, sourceEventSeqs=sources, surfaceOp="append")

    def result(self, call_id: str, text: str) -> int:
        block = {"type": "tool-result", "toolCallId": call_id, "content": [text_block(text)]}
        message = self.message("user", [block], {"kind": "tool", "callId": call_id})
        data = {"turn": self.turn, "step": self.step, "message": message}
        return self.add("tool/result", data, surfaceOp="append")

    def end_step(self) -> None:
        self.add("step/end", {"turn": self.turn, "step": self.step})

    def end_turn(self, kind: str = "completed", **reason: Any) -> None:
        self.add("turn/end", {"turn": self.turn, "reason": {"kind": kind, **reason}})

    def simple_turn(self, question: str, reply: str) -> None:
        self.start_turn()
        self.start_step()
        self.user(question)
        if not any(row["type"] == "request/header" for row in self.rows):
            self.header()
        self.answer(reply)
        self.end_step()
        self.end_turn()

    def plain(self) -> bytes:
        return b"".join(ecma.stringify(row) + b"\n" for row in self.rows)

    def zstd(self, batch: int = 5) -> bytes:
        first, *rest = (ecma.stringify(row) + b"\n" for row in self.rows)
        batches = [first, *(b"".join(rest[at : at + batch]) for at in range(0, len(rest), batch))]
        return b"".join(map(frame, batches))

    def log(self) -> SessionLog:
        return log_of(self.plain())


def frame(data: bytes) -> bytes:
    """One zstd frame as the harness writes it: checksum, no content size."""
    return zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(data)


def source_of(data: bytes, name: str = "session.jsonl") -> LogSource:
    def opened() -> BinaryIO:
        return io.BytesIO(data)

    return LogSource(name, name, len(data), opened)


def log_of(data: bytes, name: str = "session.jsonl") -> SessionLog:
    return open_log(source_of(data, name))


def two_turns() -> SessionV0:
    """A session with one tool call in its first turn."""
    session = SessionV0()
    session.start_turn()
    session.start_step()
    session.user("What is 1+2?")
    session.header()
    session.answer("", [{"type": "tool-call", "id": "c1", "name": "add", "arguments": '{"a":1}'}])
    session.result("c1", "3")
    session.end_step()
    session.start_step()
    session.answer("Three.")
    session.end_step()
    session.end_turn()
    session.simple_turn("Thanks", "Welcome.")
    return session
