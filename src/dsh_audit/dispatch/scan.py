"""Events → dispatches, in one pass and in order. Source: spec dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dsh_audit.dispatch.chunks import ChunkAttempts
from dsh_audit.dispatch.compaction_range import Retention
from dsh_audit.dispatch.model import Prepared
from dsh_audit.dispatch.oneshots import OneShots
from dsh_audit.dispatch.settlements import SettlementAttempts
from dsh_audit.dispatch.steps import StepTracker
from dsh_audit.events import Event
from dsh_audit.projection.state import SessionState

_MARKER = "session-log-deepseek/delivery-accepted"


class DispatchScanner:
    """Finds the dispatches of a log, fed with each event just before it is applied to the folds.

    Args:
        format_version: of the log the events come from.
        own_from: seq of the first event that was not inherited from a parent session.
        retention: for compaction ranges that are not logged.
        summaries: gives every ``compaction/summary`` of the log, later ones too.
    """

    def __init__(
        self,
        format_version: int,
        own_from: int = 0,
        retention: Retention | None = None,
        summaries: Callable[[], Sequence[Event]] = tuple,
    ) -> None:
        self._own_from = own_from
        self._steps = StepTracker()
        self._oneshots = OneShots(retention or Retention(), summaries)
        attempts = ChunkAttempts if format_version < 2 else SettlementAttempts
        self._attempts: ChunkAttempts | SettlementAttempts = attempts(self._steps)
        self._held: list[Prepared] = []

    def see(self, event: Event, state: SessionState) -> list[Prepared]:
        """Take note of an event; ``state`` must hold exactly the events before it.

        Returns:
            the dispatches that are decided and that no later one can precede, in order.
        """
        if event.seq < self._own_from:
            return []
        if event.type == _MARKER:
            if not self._oneshots.claims_marker(event, self._steps):
                self._steps.add_marker(event)
            return []
        self._attempts.see(event, state)
        self._held += self._steps.see(event, state)
        self._held += self._oneshots.see(event, state, self._steps)
        return self._release() if self._held else []

    def finish(self, state: SessionState) -> list[Prepared]:
        """The dispatches that were open at the end of the log."""
        self._held += self._steps.finish(state, None)
        self._held += self._oneshots.finish()
        return self._release()

    def _release(self) -> list[Prepared]:
        marks = [mark for mark in (self._steps.low_water, self._oneshots.low_water) if mark is not None]
        low = min(marks, default=None)
        ready = [held for held in self._held if low is None or held.dispatch.opened_seq < low]
        if ready:
            self._held = [held for held in self._held if low is not None and held.dispatch.opened_seq >= low]
            ready.sort(key=lambda held: held.dispatch.opened_seq)
        return ready


def scan_dispatches(events: Iterable[Event], format_version: int, own_from: int = 0) -> Iterator[Prepared]:
    """All dispatches of a log in order.

    Args:
        events: from seq 0 on, inherited ones included (the folds need them).
        format_version: of the log.
        own_from: see :class:`DispatchScanner`.
    """
    state = SessionState(format_version)
    scanner = DispatchScanner(format_version, own_from)
    for event in events:
        yield from scanner.see(event, state)
        state.apply(event)
    yield from scanner.finish(state)
