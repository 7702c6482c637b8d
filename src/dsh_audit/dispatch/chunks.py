"""What opens and settles an attempt in formats 0 and 1: groups of ``assistant/chunk`` events. Spec dispatch 2."""

from __future__ import annotations

from dsh_audit.dispatch.steps import Attempt, StepTracker, as_integer
from dsh_audit.events import ChunkRun, Event, as_object
from dsh_audit.projection.state import SessionState

_BOUNDARIES = frozenset(
    {"llm/retry", "compaction/start", "step/start", "step/end", "turn/start", "turn/end", "session/end-seed"}
)


class ChunkAttempts:
    """Cuts chunk events into attempts."""

    def __init__(self, tracker: StepTracker) -> None:
        self._tracker = tracker
        self._group: Attempt | None = None
        self._finished: Attempt | None = None

    def see(self, event: Event, state: SessionState) -> None:
        """Take note of an event before it is applied to ``state``."""
        if event.type == "assistant/chunk":
            self._chunk(event, state)
        elif event.type == "assistant/message":
            self._message(event, state)
        elif event.type in _BOUNDARIES:
            self._group = self._finished = None

    def _chunk(self, event: Event, state: SessionState) -> None:
        if isinstance(event, ChunkRun):
            self._grow(event.turn, event.step, event.count, state, event)
            return
        data = as_object(event.data)
        turn, step = as_integer(data.get("turn")), as_integer(data.get("step"))
        chunk = as_object(data.get("chunk"))
        group = self._grow(turn, step, 1, state, event)
        if chunk.get("type") == "usage":
            group.usage = chunk.get("usage")
        elif chunk.get("type") == "finish":
            group.take_finish(chunk)
            group.settled_seq, group.settled_time_ms = event.seq, event.time
            self._tracker.settle(group)
            self._group, self._finished = None, group

    def _grow(self, turn: int | None, step: int | None, count: int, state: SessionState, event: Event) -> Attempt:
        group = self._group
        if group is None or (group.turn, group.step) != (turn, step):
            group = self._group = self._tracker.begin(turn, step, state, event)
            self._finished = None
        group.chunks += count
        return group

    def _message(self, event: Event, state: SessionState) -> None:
        data = as_object(event.data)
        attempt = self._group or self._finished
        if attempt is None or event.source_event_seqs == ():
            attempt = self._tracker.begin(data.get("turn"), data.get("step"), state, event)
        attempt.message = True
        attempt.interrupted = data.get("interrupted") is True
        attempt.usage = data.get("usage", attempt.usage)
        attempt.settled_seq, attempt.settled_time_ms = event.seq, event.time
        self._tracker.settle(attempt)
        self._group = self._finished = None
