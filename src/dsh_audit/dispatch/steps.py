"""Step dispatches, shared by all formats: what happens between ``step/start`` and the end of the turn.

A step is held until it is decided (its end, and for a step without output the end of its turn), then given out in
order. Formats differ only in what opens and settles an attempt (chunks.py, settlements.py). Source: spec dispatch 2-4.
"""

from __future__ import annotations

from dataclasses import field, replace

from dsh_audit.dispatch import wire_count
from dsh_audit.dispatch.model import Dispatch, Outcome, Prepared, WireCount
from dsh_audit.events import Event, Json
from dsh_audit.projection.state import SessionState, Snapshot
from dsh_audit.record import dataclass

_CLOSER_IDS = ("interrupted-tool-result-", "forked-tool-result-")


def is_closer(event: Event) -> bool:
    """Whether recovery appended the event: a synthetic tool result or an interrupted or forked turn end."""
    if event.type == "tool/result":
        message = event.data.get("message") if isinstance(event.data, dict) else None
        ident = message.get("id") if isinstance(message, dict) else None
        return isinstance(ident, str) and ident.startswith(_CLOSER_IDS)
    return event.type == "turn/end" and turn_end_kind(event) in ("interrupted", "forked")


def turn_end_kind(event: Event) -> str:
    """The ``reason.kind`` of a ``turn/end``, empty when it has none."""
    reason = event.data.get("reason") if isinstance(event.data, dict) else None
    kind = reason.get("kind") if isinstance(reason, dict) else None
    return kind if isinstance(kind, str) else ""


@dataclass(slots=True)
class Attempt:
    """One attempt that is being read: a group of chunks (v0, v1) or a settlement (v2 and later)."""

    turn: int | None
    step: int | None
    snapshot: Snapshot
    time_ms: int | float
    retry_of: str | None
    chunks: int = 0
    finish: Json = None
    usage: Json = None
    settled_seq: int | None = None
    settled_time_ms: int | float | None = None
    message: bool = False
    interrupted: bool = False
    markers: list[int] = field(default_factory=list)
    replay: Json = None

    def lone_failure(self) -> bool:
        """Whether a failed finish is all there is."""
        return self.chunks == 1 and self.kind == "error" and not self.message

    def take_finish(self, chunk: Json) -> None:
        """Note the reason and the replay state of a finish chunk."""
        self.finish = chunk.get("reason")
        if self.kind != "error":
            state = chunk.get("replayState")
            response = state.get("response") if isinstance(state, dict) else None
            self.replay = response if isinstance(response, dict) else {}

    @property
    def kind(self) -> str:
        """Kind of the finish reason, empty when the stream never finished."""
        kind = self.finish.get("kind") if isinstance(self.finish, dict) else None
        return kind if isinstance(kind, str) else ""

    @property
    def failure(self) -> Json:
        """The failure object of an error finish."""
        return self.finish.get("failure") if self.kind == "error" and isinstance(self.finish, dict) else None


@dataclass(slots=True)
class _Step:
    turn: int | None
    step: int | None
    start_seq: int
    attempts: list[Attempt] = field(default_factory=list)
    ended: Event | None = None
    last: tuple[Snapshot, int | float] | None = None
    markers: list[int] = field(default_factory=list)


class StepTracker:
    """Collects the attempts of each step and gives out its dispatches once the step is decided."""

    def __init__(self) -> None:
        self._step: _Step | None = None
        self.last_failure_code = ""
        self._due: str | None = None

    @property
    def low_water(self) -> int | None:
        """The dispatches to come from the undecided step have ``opened_seq`` above this; None without a step."""
        return None if self._step is None else self._step.start_seq

    @property
    def pending_markers(self) -> tuple[int, ...]:
        """Markers since the last settlement of the step."""
        return () if self._step is None else tuple(self._step.markers)

    @property
    def awaits_marker(self) -> bool:
        """Whether a request of the step may be under way whose delivery marker has not come."""
        current = self._step
        return current is not None and not current.markers and (not current.attempts or self._due is not None)

    def drop_marker(self, seq: int) -> None:
        """Forget a pending marker that turned out to be another call's."""
        if self._step is not None:
            self._step.markers.remove(seq)

    def begin(self, turn: Json, step: Json, state: SessionState, event: Event) -> Attempt:
        """Open an attempt; its prefix is everything applied to ``state`` so far."""
        if self._step is None:
            self._step = _Step(as_integer(turn), as_integer(step), event.seq)
        current = self._step
        retry_of = self._due or ("plugin" if current.attempts else None)
        attempt = Attempt(as_integer(turn), as_integer(step), state.snapshot(), event.time, retry_of)
        attempt.markers, current.markers = current.markers, []
        current.attempts.append(attempt)
        self._due, current.last = None, None
        return attempt

    def settle(self, attempt: Attempt) -> None:
        """Note how an attempt ended, for what follows it."""
        failure = attempt.failure
        code = failure.get("code") if isinstance(failure, dict) else None
        self.last_failure_code = code if isinstance(code, str) else ""

    def see(self, event: Event, state: SessionState) -> list[Prepared]:
        """Take note of an event that opens no attempt, before it is applied to ``state``.

        Returns:
            dispatches that are decided by it.
        """
        kind = event.type
        done: list[Prepared] = []
        current = self._step
        if kind in ("step/start", "turn/start", "session/end-seed"):
            done = self.finish(state, None)
            if kind == "step/start":
                data = event.data if isinstance(event.data, dict) else {}
                self._step = _Step(as_integer(data.get("turn")), as_integer(data.get("step")), event.seq)
            self.last_failure_code = ""
            return done
        if current is None:
            return done
        if kind == "llm/retry-started":
            self._due = "retry"
        elif kind == "compaction/prune" and self.last_failure_code == "CONTEXT_WINDOW_EXCEEDED":
            self._due = self._due or "overflow"
        elif kind == "compaction/end" and self.last_failure_code == "CONTEXT_WINDOW_EXCEEDED":
            if isinstance(event.data, dict) and "error" not in event.data:
                self._due = "overflow"
        elif kind == "image/offload" and self.last_failure_code == "IMAGE_OFFLOAD_REQUIRED":
            self._due = "image-offload"
        elif kind == "step/end" or is_closer(event):
            if current.ended is None:
                current.last = (state.snapshot(), event.time)
                current.ended = event
            if kind == "turn/end":
                done = self.finish(state, event)
        elif kind == "turn/end":
            done = self.finish(state, event)
        return done

    def add_marker(self, event: Event) -> None:
        """A delivery marker that belongs to no one-shot call."""
        if self._step is not None:
            self._step.markers.append(event.seq)

    def finish(self, state: SessionState, end: Event | None) -> list[Prepared]:
        """Give out the dispatches of the step that is being read.

        Args:
            state: folds so far, for a step that nothing closed.
            end: the ``turn/end`` that decides it, None at the end of the log or of a process.
        """
        current, self._step = self._step, None
        due, self._due = self._due, None
        if current is None:
            return []
        done = [_prepared(attempt, number) for number, attempt in enumerate(current.attempts, 1)]
        silent = not current.attempts
        if silent or due in ("retry", "overflow", "image-offload"):
            snapshot, time_ms = current.last or (state.snapshot(), None)
            wire = _silent_wire(current, end) if silent else wire_count.MAYBE_ONE_MORE
            failure = end.data["reason"].get("error") if end is not None and turn_end_kind(end) == "error" else None
            done.append(
                Prepared(
                    Dispatch(
                        kind="step",
                        turn=current.turn,
                        step=current.step,
                        attempt=len(current.attempts) + 1,
                        prefix_seq=snapshot.prefix_seq,
                        opened_seq=snapshot.prefix_seq + 1,
                        settled_seq=None,
                        wire=wire,
                        outcome="none",
                        failure=failure if silent else None,
                        time_ms=time_ms,
                        retry_of=None if silent else due,
                        marker_seqs=tuple(current.markers),
                    ),
                    snapshot,
                )
            )
        elif current.markers and done:
            done[-1] = _with_markers(done[-1], current.markers)
        return done


def _with_markers(prepared: Prepared, markers: list[int]) -> Prepared:
    dispatch = replace(prepared.dispatch, marker_seqs=(*prepared.dispatch.marker_seqs, *markers))
    return replace(prepared, dispatch=dispatch)


def _silent_wire(step: _Step, end: Event | None) -> WireCount:
    if step.markers:
        return wire_count.MARKED
    kind = "" if end is None else turn_end_kind(end)
    if kind == "error":
        return wire_count.BEFORE_ADAPTER
    return wire_count.ABORTED if kind == "aborted" else wire_count.CRASHED


def _prepared(attempt: Attempt, number: int) -> Prepared:
    dispatch = Dispatch(
        kind="step",
        turn=attempt.turn,
        step=attempt.step,
        attempt=number,
        prefix_seq=attempt.snapshot.prefix_seq,
        opened_seq=attempt.snapshot.prefix_seq + 1,
        settled_seq=attempt.settled_seq,
        wire=_attempt_wire(attempt),
        outcome=_outcome(attempt),
        failure=attempt.failure,
        usage=attempt.usage,
        time_ms=attempt.time_ms,
        settled_time_ms=attempt.settled_time_ms,
        retry_of=attempt.retry_of,
        marker_seqs=tuple(attempt.markers),
        replay=attempt.replay,
    )
    return Prepared(dispatch, attempt.snapshot)


def _attempt_wire(attempt: Attempt) -> WireCount:
    if attempt.lone_failure():
        return wire_count.count_failure(attempt.failure, marked=bool(attempt.markers))
    if attempt.chunks:
        return wire_count.OUTPUT
    if attempt.markers:
        return wire_count.MARKED
    return wire_count.ANSWERED if attempt.message and not attempt.interrupted else wire_count.CANCELLED


def _outcome(attempt: Attempt) -> Outcome:
    if attempt.kind == "error":
        return "failed"
    if attempt.interrupted or attempt.kind == "aborted":
        return "interrupted" if attempt.chunks else "cancelled"
    if attempt.message or attempt.kind:
        return "completed"
    return "open" if attempt.chunks else "cancelled"


def as_integer(value: Json) -> int | None:
    """The value, if it is an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
