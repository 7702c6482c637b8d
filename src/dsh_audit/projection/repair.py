"""Closers: the events that the harness appends to a log whose last turn was cut off.

Unanswered tool calls get an error result each, then an open step and the turn are ended. Seqs continue the
log; all times are that of the last event. Source: dsh-session 0.1.0-rc.8, 0.1.1-rc.2 and 0.1.5-rc.1 (v0 to
v3), 0.2.1-rc.2 (v4), interruptedTurnClosers and buildForkSeed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from types import MappingProxyType

from dsh_audit.events import APPEND, Event, Json
from dsh_audit.projection.surface_rules import message_of
from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class RepairText:
    """A text of the harness that this package knows by digest only.

    Args:
        sha256: hex digest of its UTF-8 bytes.
        size_bytes: of the same bytes.
    """

    sha256: str
    size_bytes: int

    def matches(self, text: str) -> bool:
        """Whether this is the text."""
        data = text.encode("utf-8", "surrogatepass")
        return len(data) == self.size_bytes and sha256(data).hexdigest() == self.sha256


REPAIR_TEXTS: Mapping[str, RepairText] = MappingProxyType(
    {
        "interrupted-started": RepairText(
            "5655d1cb75343f7b6f034300ccd4cea6f70c07d430825b4575fa03890344bf52", 313
        ),
        "interrupted-not-started": RepairText(
            "613f8e88c4324029a758e388a77c9082e93d36d39ad23d5f76c5529fe7b0b42f", 104
        ),
        "forked-started": RepairText(
            "33b364d225a672b5e87d8480d0237b5b80f6ec3c7abceb04d66e9ccdaf5804e1", 365
        ),
        "forked-not-started": RepairText(
            "c11f77294d1c5da06c123f963e28ac20b6db83808d6da4908ca9aee695046eea", 341
        ),
    }
)
"""Texts of closing tool results, by cause and whether a ``tool/call`` was logged; equal in all releases."""

_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_ERRORS = {
    True: {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"},
    False: {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"},
}


def interrupted_turn_closers(
    events: Iterable[Event], *, version: int, texts: Mapping[str, str] = _NO_TEXTS
) -> tuple[Event, ...]:
    """The closers a resume appends after a crash; none when the log is balanced or empty.

    Args:
        events: of one session, in order, read once.
        version: format version of the events.
        texts: by the names of REPAIR_TEXTS; a missing one shows as its name in brackets.

    Raises:
        ProjectionError: an assistant message or tool result without a message.
    """
    return _closers(events, "interrupted", version, texts)


def forked_turn_closers(
    events: Iterable[Event], *, version: int, texts: Mapping[str, str] = _NO_TEXTS
) -> tuple[Event, ...]:
    """The closers a fork appends after its inherited prefix and end-seed marker (v4).

    Args and Raises: as ``interrupted_turn_closers``.
    """
    return _closers(events, "forked", version, texts)


@dataclass(slots=True)
class _Call:
    turn: Json
    step: Json
    started_seq: int | None = None


@dataclass(slots=True)
class _OpenTail:
    """What is open after the events seen so far."""

    version: int
    turn: Json = None
    step: Json = None
    last: Event | None = None
    calls: dict[str, _Call] = field(default_factory=dict)

    def see(self, event: Event) -> None:
        self.last = event
        data = event.data if isinstance(event.data, dict) else {}
        if event.type in ("turn/start", "turn/end"):
            self.turn = data.get("turn") if event.type == "turn/start" else None
            self.step = None
            self.calls.clear()
        elif event.type == "step/start":
            self.step = data.get("step")
        elif event.type == "step/end":
            self.step = None
            self.calls.clear()
        elif event.type == "assistant/message":
            self._ask(event, data)
        elif event.type == "tool/call":
            call = self.calls.get(_text(data.get("callId")))
            if call is not None:
                call.started_seq = event.seq
        elif event.type == "tool/result":
            self._answer(event, data)

    def _ask(self, event: Event, data: dict[str, Json]) -> None:
        for block in message_of(event)["content"]:
            if isinstance(block, dict) and block.get("type") == "tool-call":
                self.calls[_text(block.get("id"))] = _Call(data.get("turn"), data.get("step"))

    def _answer(self, event: Event, data: dict[str, Json]) -> None:
        source = message_of(event).get("source")
        call_id = _text(source.get("callId")) if isinstance(source, dict) else ""
        call = self.calls.get(call_id)
        if call is None:
            return
        is_same_step = (call.turn, call.step) == (data.get("turn"), data.get("step"))
        if self.version < 4 or (event.surface_op == APPEND and is_same_step):
            del self.calls[call_id]


def _closers(
    events: Iterable[Event], cause: str, version: int, texts: Mapping[str, str]
) -> tuple[Event, ...]:
    tail = _OpenTail(version)
    for event in events:
        tail.see(event)
    last = tail.last
    if last is None or tail.turn is None:
        return ()
    closers: list[Event] = []
    for call_id, call in tail.calls.items():
        turn = call.turn if version >= 4 else tail.turn
        name = f"{cause}-{'not-started' if call.started_seq is None else 'started'}"
        text = texts.get(name, f"[{name}]")
        seq = last.seq + 1 + len(closers)
        message = _result_message(f"{cause}-tool-result-{call_id}-{seq}", call_id, text, version)
        error = dict(_ERRORS[call.started_seq is not None])
        data = {"turn": turn, "step": call.step, "message": message, "error": error}
        sources = None if call.started_seq is None else (call.started_seq,)
        closers.append(
            Event("tool/result", seq, last.time, data, source_event_seqs=sources, surface_op=APPEND)
        )
    if tail.step is not None:
        data = {"turn": tail.turn, "step": tail.step}
        closers.append(Event("step/end", last.seq + 1 + len(closers), last.time, data))
    data = {"turn": tail.turn, "reason": {"kind": cause}}
    closers.append(Event("turn/end", last.seq + 1 + len(closers), last.time, data))
    return tuple(closers)


def _result_message(message_id: str, call_id: str, text: str, version: int) -> dict[str, Json]:
    source = {"kind": "tool", "callId": call_id}
    content: list[Json] = [{"type": "text", "text": text}]
    if version >= 4:
        role = {"id": message_id, "role": "tool", "toolCallId": call_id, "isError": True}
        return {**role, "source": source, "content": content}
    block = {"type": "tool-result", "toolCallId": call_id, "isError": True, "content": content}
    return {"id": message_id, "role": "user", "source": source, "content": [block]}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
