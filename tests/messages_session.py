"""A hand-made format 4 (or 3) session for tests of request encoding."""

from __future__ import annotations

from typing import Any

from dsh_audit.deployment import Deployment
from dsh_audit.dispatch.model import Dispatch, WireCount
from dsh_audit.events import APPEND, Event, Json, SessionHeader, SurfaceOp
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.projection.state import SessionState
from dsh_audit.request.neutral import Purpose, Request
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import Encoded, UnloggedInputs
from dsh_audit.wire.deepseek_messages import MessagesEncoder

Blocks = list[dict[str, Json]]


def text(value: str) -> dict[str, Json]:
    """A text block."""
    return {"type": "text", "text": value}


def call(ident: str, name: str = "echo", arguments: str = "{}") -> dict[str, Json]:
    """A tool-call block."""
    return {"type": "tool-call", "id": ident, "name": name, "arguments": arguments}


def tool(name: str, **more: Json) -> dict[str, Json]:
    """A tool definition as a request header has it."""
    return {"name": name, "description": f"tool {name}", "parameters": {"type": "object"}, **more}


def wire_tool(name: str, **more: Json) -> dict[str, Json]:
    """The same as a Messages body has it."""
    return {"name": name, "description": f"tool {name}", "input_schema": {"type": "object"}, **more}


def replay(model: str, *blocks: dict[str, Json]) -> dict[str, Json]:
    """A replay state as the Messages adapter stores it."""
    return {"response": {"kind": "deepseek-messages", "version": 1, "model": model}, "blocks": list(blocks)}


class ToySession:
    """Grows event by event; every method returns the seq of its event."""

    def __init__(self, version: int = 4, model: str = "m") -> None:
        self.version = version
        self.model = model
        self.state = SessionState(version)
        self.events: list[Event] = []
        self.session_header = SessionHeader(
            version, "sess-1", 5, "/srv/toy", None, None, None if version < 2 else False, None, 0, None, {}
        )

    def event(self, kind: str, data: Json, op: SurfaceOp | None = None, **more: Any) -> int:
        """Append any event."""
        event = Event(kind, len(self.events), 1000 + len(self.events), data, surface_op=op, **more)
        self.state.apply(event)
        self.events.append(event)
        return event.seq

    def message(self, kind: str, message: dict[str, Json], op: SurfaceOp = APPEND, **more: Any) -> int:
        """Append a surface event."""
        data = message if kind == "user/message" else {"turn": 1, "step": 1, "message": message}
        data = {**data, **more.pop("data", {})}
        if op is not APPEND and "source_event_seqs" not in more:
            seqs = [node.seq for node in self.state.snapshot().surface]
            first, last = seqs.index(op.start or 0), seqs.index(op.end or 0)
            more["source_event_seqs"] = tuple(seqs[first : last + 1])
        return self.event(kind, data, op, **more)

    def system(self, *texts: str, op: SurfaceOp = APPEND) -> int:
        """A system prompt."""
        content = [text(value) for value in texts]
        return self.message("system/message", {"role": "system", "content": content, "id": "s"}, op)

    def user(self, *blocks: str | dict[str, Json], op: SurfaceOp = APPEND) -> int:
        """A user message."""
        content = [text(block) if isinstance(block, str) else block for block in blocks]
        return self.message("user/message", {"role": "user", "content": content, "id": "u"}, op)

    def assistant(self, *blocks: str | dict[str, Json], replay_state: Json = None, model: str = "") -> int:
        """An answer."""
        content = [text(block) if isinstance(block, str) else block for block in blocks]
        source: dict[str, Json] = {"kind": "model", "provider": "p", "model": model or self.model}
        if replay_state is not None:
            source["replayState"] = replay_state
        return self.message("assistant/message", {"role": "assistant", "content": content, "source": source})

    def result(self, ident: str, *texts: str, **more: Json) -> int:
        """A tool result (format 4)."""
        content = [text(value) for value in texts]
        message = {"role": "tool", "toolCallId": ident, "content": content, **more, "id": "r"}
        return self.message("tool/result", message)

    def header(self, *tools: dict[str, Json], reason: str = "change", **more: Json) -> int:
        """A request header."""
        config = {"provider": "p", "model": self.model, "maxTokens": 9, **more.pop("config", {})}
        header: dict[str, Json] = {"config": config, **more.pop("header", {})}
        if tools:
            header["tools"] = list(tools)
        return self.event("request/header", {"header": header, "reason": reason, **more})

    def context(self, *, in_history: bool, model: str = "") -> int:
        """A request context."""
        update = {"systemPromptUpdate": "in-history"} if in_history else {}
        return self.event("request/context", {"provider": "p", "model": model or self.model, **update})

    def developer(self, *blocks: dict[str, Json], header_seq: int | None = None) -> int:
        """A developer message."""
        more = {} if header_seq is None else {"headerSeq": header_seq}
        message = {"role": "developer", "content": list(blocks), "id": "d"}
        return self.message("developer/message", message, data=more)

    def added(self, header_seq: int, *names: str) -> int:
        """A developer message that adds tools."""
        blocks = [{"type": "tool-addition", "toolName": name} for name in names]
        return self.developer(*blocks, header_seq=header_seq)

    def removed(self, *names: str) -> int:
        """A developer message that removes tools."""
        return self.developer(*({"type": "tool-removal", "toolName": name} for name in names))

    def request(
        self,
        purpose: Purpose = "step",
        messages: list[DerivedMessage] | None = None,
        constant: str | None = None,
        replay: Json = None,
        **more: Json,
    ) -> Request:
        """The request that would be made now."""
        snapshot = self.state.snapshot()
        header = snapshot.request_header.data["header"] if snapshot.request_header else {"config": {}}
        config = dict(header["config"])
        config.pop("provider", None)
        model = config.pop("model", self.model)
        wire = WireCount(1, 1, "test")
        opened = len(self.events)
        dispatch = Dispatch("step", 1, 1, 1, opened - 1, opened, None, wire, "completed", replay=replay)
        return Request(
            dispatch=dispatch,
            session_header=self.session_header,
            purpose=purpose,
            provider="p",
            model=more.pop("model", model),
            config=more.pop("config", config if purpose == "step" else {"maxTokens": 9}),
            system=more.pop("system", header.get("system")),
            system_seq=None,
            tools=more.pop("tools", header.get("tools")),
            tools_seq=snapshot.request_header.seq if snapshot.request_header else None,
            snapshot=snapshot,
            messages=None if messages is None else tuple(messages),
            constant=constant,
        )

    def encode(self, encoder: MessagesEncoder | None = None, raw: Json = None, **more: Any) -> Encoded:
        """The request made now, by a fresh encoder unless one is given."""
        constants = more.pop("constants", {})
        inputs = UnloggedInputs(Deployment(raw or {}, constants))
        return (encoder or MessagesEncoder()).encode(self.request(**more), inputs)

    def body(self, **more: Any) -> dict[str, Json]:
        """The parsed body of the request made now."""
        encoded = self.encode(**more)
        assert encoded.body is not None
        data = encoded.body.to_bytes()
        value: dict[str, Json] = ecma.parse(data)
        assert ecma.stringify(value) == data
        return value
