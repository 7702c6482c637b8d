"""Format 1 → 2: chunk events move into the settlement event of their attempt; dense new seqs. Source: spec
session-log 6; dsh-session-format-v1-to-v2 0.1.3-alpha.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_object, require_object
from dsh_audit.formats.migrate.common import (
    ChildSession,
    References,
    RestartWatch,
    Step,
    interrupted_end,
    run_migration,
)
from dsh_audit.formats.payload_events import check_payload
from dsh_audit.formats.stream import StreamPacker
from dsh_audit.formats.v1 import KNOWN_TYPES
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

_CLOSERS = frozenset({"turn/end", "step/end", "llm/retry", "llm/retry-started"})
_MARKER = "session-log-deepseek/delivery-accepted"


def migrate_header(header: SessionHeader) -> SessionHeader:
    """The header of format 2: whether seeded, no longer how far."""
    return replace(header, version=2, seed_length=None, is_seeded=header.seed_length is not None)


@dataclass(slots=True)
class _Attempt:
    """Chunks of one turn and step that no message has claimed yet.

    Attributes:
        at: ``turn`` and ``step``, whatever a chunk gives there: nothing checks them before the next step.
        seqs: of the chunk events, in order.
        behind: events after the last chunk; they follow the settlement.
        terminal: a finish chunk was seen; a further chunk belongs to the next attempt.
    """

    at: dict[str, Json]
    seqs: list[int] = field(default_factory=list)
    packer: StreamPacker = field(default_factory=StreamPacker)
    behind: list[Event] = field(default_factory=list)
    terminal: bool = False
    last_time: int | float = 0
    line: int = 0


class _Migration:
    def __init__(self, header: SessionHeader) -> None:
        self.header = header
        self.cut = header.seed_length or 0
        self.references = References()
        self.restarts = RestartWatch(turns_close_steps=True)
        self.attempt: _Attempt | None = None
        self.next_seq = 0
        self.cut_done = header.seed_length is None
        self.last_time: int | float = header.created_at

    def step(self, event: Event) -> Iterator[Event]:
        if event.type not in KNOWN_TYPES:
            raise FormatError(f"unknown event type {event.type!r}")
        if event.type != "assistant/chunk":
            check_payload(event.type, event.seq, event.data, 1)
        yield from self._restart(event)
        self._check_marker(event)
        self.last_time = event.time
        if event.type == "assistant/chunk":
            yield from self._chunk(event)
        elif event.type == "assistant/message":
            yield from self._message(event)
        elif event.type in _CLOSERS:
            yield from self._settle()
            yield from self._emit(event)
        elif _is_goal_message(event):
            yield from self._goal(event)
        elif self.attempt is not None:
            self.attempt.behind.append(event)
        else:
            yield from self._emit(event)

    def finish(self) -> Iterator[Event]:
        yield from self._settle()
        if not self.cut_done:
            yield self._end_seed(self.last_time)

    def _restart(self, event: Event) -> Iterator[Event]:
        was_open = self.restarts.turn is not None
        interrupted = self.restarts.see(event)
        if event.type != "turn/start" or not was_open:
            return
        if interrupted is None:
            raise FormatError(f"turn/start {event.seq} does not close the turn before it")
        yield from self._settle()
        yield from self._generate(event.seq, interrupted_end(interrupted, event, 0))

    def _check_marker(self, event: Event) -> None:
        if event.type != _MARKER or event.data.get("sessionFormatVersion") != 1:
            return
        inherited = self.header.parent_session is not None and event.seq < self.cut
        if not inherited and event.data.get("sessionId") != self.header.id:
            raise FormatError("the delivery marker names another session")

    def _chunk(self, event: Event) -> Iterator[Event]:
        data = require_object(event.data, "assistant/chunk data")
        chunk = require_object(data.get("chunk"), "assistant/chunk chunk")
        at = _coordinates(data)
        attempt = self.attempt
        if attempt is not None:
            if attempt.terminal or not ecma.same_json(attempt.at, at):
                yield from self._settle()
                attempt = None
            else:
                yield from self._flush(attempt)
        if attempt is None:
            attempt = self.attempt = _Attempt(at)
        self._check_cut(attempt, event.seq)
        attempt.packer.push(int(event.time), chunk)
        attempt.seqs.append(event.seq)
        attempt.last_time, attempt.line = event.time, event.line
        attempt.terminal = attempt.terminal or chunk.get("type") == "finish"

    def _check_cut(self, attempt: _Attempt, seq: int) -> None:
        first = attempt.seqs[0] if attempt.seqs else seq
        if (first < self.cut) != (seq < self.cut):
            raise FormatError(f"the inherited cut {self.cut} splits one attempt")

    def _message(self, event: Event) -> Iterator[Event]:
        data, sources, attempt = event.data, event.source_event_seqs, self.attempt
        if attempt is not None and not ecma.same_json(attempt.at, _coordinates(data)):
            yield from self._settle()
            yield from self._emit(_with_stream(event, []))
            return
        if sources is None:
            if attempt is not None:
                raise FormatError(f"assistant/message {event.seq} does not cite its attempt's chunks")
            yield from self._emit(_with_stream(event, []))
            return
        if not sources:
            yield from self._settle()
            yield from self._emit(_with_stream(event, []))
            return
        if attempt is None or tuple(attempt.seqs) != sources:
            raise FormatError(f"assistant/message {event.seq} sources are not one complete attempt in order")
        self._check_cut(attempt, event.seq)
        yield from self._flush(attempt)
        yield from self._emit(_with_stream(event, attempt.packer.records))
        self.attempt = None

    def _goal(self, event: Event) -> Iterator[Event]:
        change = Event("goal/change", event.seq, event.time, event.data["source"]["change"], line=event.line)
        yield from self._generate(event.seq, change)
        source = {"kind": "plugin", "plugin": "goal"}
        yield from self._emit(event.changed(data={**event.data, "source": source}))

    def _settle(self) -> Iterator[Event]:
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return
        data = {**attempt.at, "stream": attempt.packer.records}
        settled = Event("assistant/attempt", attempt.seqs[-1], attempt.last_time, data, line=attempt.line)
        yield from self._generate(attempt.seqs[-1], settled)
        yield from self._flush(attempt)

    def _flush(self, attempt: _Attempt) -> Iterator[Event]:
        behind, attempt.behind = attempt.behind, []
        for event in behind:
            yield from self._emit(event)

    def _emit(self, event: Event) -> Iterator[Event]:
        marks_cut = event.type == "session/end-seed" and event.seq == self.cut
        if marks_cut and self.header.seed_length is not None:
            event = event.changed(data={"inherited": True})
        yield from self._before(event.seq, event.time, marks_cut)
        self.references.place(event.seq, self.next_seq)
        yield self._take(self.references.event(event, self.next_seq))

    def _generate(self, origin: int, event: Event) -> Iterator[Event]:
        yield from self._before(origin, event.time, marks_cut=False)
        yield self._take(event.changed(seq=self.next_seq))

    def _before(self, origin: int, time: int | float, marks_cut: bool) -> Iterator[Event]:
        if self.cut_done or origin < self.cut:
            return
        if marks_cut:
            self.cut_done = True
        else:
            yield self._end_seed(time)

    def _end_seed(self, time: int | float) -> Event:
        self.cut_done = True
        return self._take(Event("session/end-seed", self.next_seq, time, {"inherited": True}))

    def _take(self, event: Event) -> Event:
        self.next_seq += 1
        return event.changed(order=None)


def _coordinates(data: dict[str, Json]) -> dict[str, Json]:
    return {key: data[key] for key in ("turn", "step") if key in data}


def _with_stream(event: Event, stream: list[dict[str, Json]]) -> Event:
    return event.changed(data={**event.data, "stream": stream}, source_event_seqs=None)


def _is_goal_message(event: Event) -> bool:
    source = event.data.get("source") if event.type == "user/message" and is_object(event.data) else None
    return is_object(source) and source.get("kind") == "goal" and "change" in source


def migrate_events(
    events: Iterable[Event], header: SessionHeader, _children: Sequence[ChildSession]
) -> Iterator[Event]:
    """Events of format 2; raises MigrationRefusedError."""
    return run_migration(_Migration(header), events, 1)


STEP = Step(1, migrate_header, migrate_events)
