"""What children and forks have of their parents."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from dsh_audit.events import Event, as_object
from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class Inherited:
    """The part of a log that its parent wrote.

    Args:
        events: how many.
        turn: the last turn of them; None when they hold no turn.
        parent_turn: the turn that the parent was in when the child was made; None between turns or without it.
    """

    events: int
    turn: int | None
    parent_turn: int | None = None

    JSON: ClassVar = "events through_turn=turn parent_turn"

    def describe(self) -> str:
        """``14 events, through turn 1, while the parent was in turn 2``."""
        parts = [f"{self.events} event{'' if self.events == 1 else 's'}"]
        parts += [] if self.turn is None else [f"through turn {self.turn}"]
        parts += [] if self.parent_turn is None else [f"while the parent was in turn {self.parent_turn}"]
        return ", ".join(parts)


@dataclass(slots=True)
class TurnSpans:
    """The turns of a log with the times they ran: turn, first seq, start, end or None."""

    spans: list[tuple[int, int, float, float | None]] = field(default_factory=list)

    def see(self, event: Event) -> None:
        """The next start or end of a turn."""
        turn = as_object(event.data).get("turn")
        if event.type == "turn/start" and isinstance(turn, int):
            self.spans.append((turn, event.seq, event.time, None))
        elif event.type == "turn/end" and self.spans:
            self.spans[-1] = (*self.spans[-1][:3], event.time)

    def before(self, seq: int) -> int | None:
        """The last turn that started before a seq."""
        return next((turn for turn, first, *_ in reversed(self.spans) if first < seq), None)

    def at(self, time_ms: float) -> int | None:
        """The turn that ran at a time."""
        running = (turn for turn, _, start, end in self.spans if start <= time_ms and (end is None or time_ms <= end))
        return next(running, None)
