"""What the end of a log leaves open: turn, step, answer, tool calls, a compaction. A resume closes all but the last."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.history import calls_of, results_of
from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.events import Event, Json, as_object
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.replay.inspection import format_time
from dsh_audit.rules import lint as rules

_TYPES = (
    "turn/start turn/end step/start step/end assistant/chunk assistant/message tool/call tool/result "
    "compaction/start compaction/end session/end-seed"
)


@dataclass(slots=True)
class OpenObserver:
    """The openings that nothing has closed yet."""

    facts: Facts
    types: frozenset[str] = frozenset(_TYPES.split())
    turn: Event | None = None
    step: Event | None = None
    compaction: Event | None = None
    calls: dict[str, str] = field(default_factory=dict)
    _own_from: int = field(init=False)
    _is_streaming: bool = False

    def __post_init__(self) -> None:
        self._own_from = self.facts.log.own_from()

    def event(self, event: Event) -> None:
        """Open or close something."""
        data = as_object(event.data) if event.type != "assistant/chunk" else {}
        match event.type:
            case "turn/start" | "turn/end":
                self.turn = event if event.type == "turn/start" else None
                self.step, self._is_streaming = None, False
                self.calls.clear()
            case "step/start" | "step/end":
                self.step, self._is_streaming = (event, False) if event.type == "step/start" else (None, False)
                self.calls.clear()
            case "assistant/chunk":
                self._is_streaming = True
            case "assistant/message":
                self._is_streaming = False
                for _, block in calls_of(as_object(data.get("message"))):
                    self.calls[str(block.get("id", ""))] = str(block.get("name", ""))
            case "tool/result":
                for call_id in results_of(as_object(data.get("message"))):
                    self.calls.pop(call_id, None)
            case "compaction/start" | "compaction/end":
                self.compaction = event if event.type == "compaction/start" else None
            case "session/end-seed" if event.seq == self._own_from and self._own_from:
                self.turn = self.step = self.compaction = None
                self.calls.clear()

    def request(self, sent: Sent) -> None:
        """The events say it."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """One finding for the turn with all that is open in it, one for a compaction."""
        if reader.stopped_at is not None or reader.through is not None:
            return
        last = format_time(reader.stats.last_time_ms)
        log = self.facts.log
        shared = {"basis": "log", "last_seq": reader.stats.last_seq, "last_time_ms": reader.stats.last_time_ms}
        if self.turn is not None and self.turn.seq >= self._own_from:
            turn, parts = as_object(self.turn.data).get("turn"), list[str]()
            details: dict[str, Json] = {**shared, "turn": turn, "calls": list(self.calls)}
            if self.step is not None:
                step = as_object(self.step.data).get("step")
                details["step"] = step
                parts.append(f"step {turn}.{step} open")
            parts += ["its answer was cut off"] if self._is_streaming else []
            parts += [f"call {call_id or 'without id'} has no result" for call_id in self.calls]
            message = "; ".join([f"turn {turn} never ended", *parts, f"last event at {last}"])
            yield Finding(rules.UNFINISHED, message, log.where(seq=self.turn.seq, line=self.turn.line), details)
        if self.compaction is not None:
            ident = as_object(self.compaction.data).get("compactionId")
            message = f"the compaction {ident} was started and never ended; last event at {last}"
            where = log.where(seq=self.compaction.seq, line=self.compaction.line)
            yield Finding(rules.OPEN_COMPACTION, message, where, {**shared, "compaction": ident})


CHECK = Check("unfinished", "pass", OpenObserver)
