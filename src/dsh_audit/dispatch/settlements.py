"""What opens and settles an attempt in formats 2 and later: one settlement event each. Spec dispatch 3."""

from __future__ import annotations

from dsh_audit.dispatch.steps import StepTracker
from dsh_audit.events import Event, Json
from dsh_audit.projection.state import SessionState


class SettlementAttempts:
    """Reads ``assistant/message`` and ``assistant/attempt`` as one attempt each."""

    def __init__(self, tracker: StepTracker) -> None:
        self._tracker = tracker

    def see(self, event: Event, state: SessionState) -> None:
        """Take note of an event before it is applied to ``state``."""
        if event.type not in ("assistant/message", "assistant/attempt"):
            return
        data = event.data
        attempt = self._tracker.begin(data.get("turn"), data.get("step"), state, event)
        attempt.message = event.type == "assistant/message"
        attempt.interrupted = data.get("interrupted") is True
        for record in data.get("stream", ()):
            if not isinstance(record, dict) or record.get("type") != "chunk":
                attempt.chunks += _members(record)
                continue
            attempt.chunks += 1
            chunk = record.get("chunk")
            if not isinstance(chunk, dict):
                continue
            if chunk.get("type") == "usage":
                attempt.usage = chunk.get("usage")
            elif chunk.get("type") == "finish":
                attempt.take_finish(chunk)
        attempt.usage = data.get("usage", attempt.usage)
        attempt.settled_seq, attempt.settled_time_ms = event.seq, event.time
        self._tracker.settle(attempt)


def _members(record: Json) -> int:
    members = record.get("texts", record.get("args")) if isinstance(record, dict) else None
    return len(members) if isinstance(members, list) else 0
