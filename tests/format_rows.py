"""Small rows for tests of the formats."""

from __future__ import annotations

from typing import Any

from dsh_audit.events import Event
from dsh_audit.formats import FORMATS

Row = dict[str, Any]

HEADERS: dict[int, Row] = {
    version: {
        "type": "session",
        "version": version,
        "id": "s1",
        "createdAt": 5,
        "cwd": "/w",
        **({"isSeeded": False} if version >= 2 else {}),
        "delegationDepth": 0,
    }
    for version in FORMATS
}


def row(kind: str, seq: int, data: Any, **more: Any) -> Row:
    """An event row at time 1000 + seq."""
    return {"type": kind, "seq": seq, "time": 1000 + seq, "data": data, **more}


def user(seq: int, text: str = "hi", **more: Any) -> Row:
    """A user message that is appended."""
    data = {
        "content": [{"type": "text", "text": text}],
        "source": {"kind": "user"},
        "role": "user",
        "id": f"u{seq}",
    }
    return row("user/message", seq, data, **{"surfaceOp": "append", **more})


def answer(seq: int, *calls: str, **more: Any) -> Row:
    """An assistant message with tool calls, that is appended; formats 0 and 1."""
    blocks = [{"type": "tool-call", "id": call, "name": "t", "arguments": "{}"} for call in calls]
    message = {
        "role": "assistant",
        "content": blocks or [{"type": "text", "text": "ok"}],
        "source": {"kind": "model", "provider": "p", "model": "m"},
        "id": f"a{seq}",
    }
    data = {"turn": 1, "step": 1, "message": message}
    return row("assistant/message", seq, data, **{"surfaceOp": "append", **more})


def result(seq: int, call: str, **more: Any) -> Row:
    """A tool result in a user message, that is appended; formats 0 to 3."""
    block = {"type": "tool-result", "toolCallId": call, "content": [{"type": "text", "text": "r"}]}
    message = {"role": "user", "content": [block], "source": {"kind": "tool", "callId": call}, "id": f"r{seq}"}
    return row("tool/result", seq, {"turn": 1, "step": 1, "message": message}, **{"surfaceOp": "append", **more})


def header(seq: int, reason: str = "initial", **members: Any) -> Row:
    """A request header."""
    data = {"header": {"config": {"provider": "p", "model": "m"}, **members}, "reason": reason}
    return row("request/header", seq, data)


def chunk(seq: int, chunk_type: str, **members: Any) -> Row:
    """A chunk event of turn 1, step 1."""
    return row("assistant/chunk", seq, {"turn": 1, "step": 1, "chunk": {"type": chunk_type, **members}})


def step_of(kind: str, seq: int) -> Row:
    """``step/start`` or ``step/end`` of turn 1, step 1."""
    return row(kind, seq, {"turn": 1, "step": 1})


def turn(seq: int, number: int = 1) -> Row:
    """``turn/start``."""
    return row("turn/start", seq, {"turn": number})


def turn_end(seq: int, number: int = 1, kind: str = "completed", **reason: Any) -> Row:
    """``turn/end``."""
    return row("turn/end", seq, {"turn": number, "reason": {"kind": kind, **reason}})


def read(version: int, *rows: Row, **header_members: Any) -> list[Event]:
    """Events of a log of the rows."""
    session_header = FORMATS[version].parse_session_header({**HEADERS[version], **header_members})
    reader = FORMATS[version].reader(session_header)
    return [event for at, each in enumerate(rows) for event in reader.decode(each, at + 2)]


def renumbered(*rows: Row) -> list[Row]:
    """The rows with dense seqs."""
    return [{**each, "seq": at} for at, each in enumerate(rows)]
