"""What opens and settles an attempt in formats 2 and later: one settlement event each. Spec dispatch 3."""

from __future__ import annotations

from dsh_audit.dispatch.steps import StepTracker
from dsh_audit.events import Event, as_list, as_object
from dsh_audit.projection.state import SessionState


class SettlementAttempts:
    """Reads ``assistant/message`` and ``assistant/attempt`` as one attempt each."""

    def __init__(self, tracker: StepTracker) -> None:
        self._tracker = tracker

    def see(self, event: Event, state: SessionState) -> None:
        """Take note of an event before it is applied to ``state``."""
        if event.type not in ("assistant/message", "assistant/attempt"):
            return
        data = as_object(event.data)
        attempt = self._tracker.begin(data.get("turn"), data.get("step"), state, event)
        attempt.message = event.type == "assistant/message"
        attempt.interrupted = data.get("interrupted") is True
        for record in as_list(data.get("stream")):
            record = as_object(record)
            if record.get("type") != "chunk":
                attempt.chunks += len(as_list(record.get("texts", record.get("args"))))
                continue
            attempt.chunks += 1
            chunk = as_object(record.get("chunk"))
            if chunk.get("type") == "usage":
                attempt.usage = chunk.get("usage")
            elif chunk.get("type") == "finish":
                attempt.take_finish(chunk)
        attempt.usage = data.get("usage", attempt.usage)
        attempt.settled_seq, attempt.settled_time_ms = event.seq, event.time
        self._tracker.settle(attempt)
