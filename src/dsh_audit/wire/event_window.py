"""A second, forward pass over a log that gives ranges of its events as ``dsh_session_log`` prints them.

Ranges are asked for in about the order of the log, so each event is read and printed once and forgotten when the
provider has confirmed it; a range further back starts the pass again. Memory follows the widest range.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Protocol

from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.record import dataclass
from dsh_audit.releases import ReleaseRules
from dsh_audit.wire.parts import Piece
from dsh_audit.wire.session_log_field import MARKER, encode_event

_KEPT_CONFIRMATIONS = 4
_ANY = 2**63
_BEFORE_A_CALL = frozenset(
    {
        "step/start",
        "system/message",
        "user/message",
        "developer/message",
        "tool/result",
        "assistant/message",
        "assistant/attempt",
        "request/header",
        "request/context",
        "compaction/start",
        "compaction/end",
        "llm/retry-started",
    }
)
"""Events that only the loop writes: none comes between the preparation of a call and its marker or settlement."""


class EventSource(Protocol):
    """What is needed of a log; :class:`~dsh_audit.log.session_log.SessionLog` is one."""

    session_header: SessionHeader

    @property
    def version(self) -> int:
        """Format version."""

    @property
    def session_id(self) -> str:
        """Id of the session."""

    def events(self) -> Iterable[Event]:
        """A fresh pass over all events."""

    def own_from(self) -> int:
        """Seq of the first event that was not inherited."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A delivery marker of this session.

    Args:
        seq: of the event.
        through: ``throughSeq``.
        counts: it names the format version of this log and an earlier event, so its numbering is the log's.
    """

    seq: int
    through: int
    counts: bool


class EventWindow:
    """Reads forward through the events of a log and keeps those not yet confirmed.

    Attributes:
        markers: delivery markers of this session among the events read, by seq.
        first_end_seed: seq of the first ``session/end-seed`` of a later process among the events read, None so far.
        last_seq: of the events read; −1 before the first.
    """

    def __init__(self, log: EventSource, rules: ReleaseRules, inherited: int | None = None) -> None:
        self._log = log
        self._rules = rules
        # A fork writes an end-seed of its own right after the inherited events, in the parent's process.
        self._forked_at = -1 if inherited is None else inherited
        self.markers: dict[int, Marker] = {}
        self.first_end_seed: int | None = None
        self._confirmed: list[tuple[int, int]] = [(-1, -1)]
        self._openings: list[int] = []
        self._rewind()

    def _rewind(self) -> None:
        self._events: Iterator[Event] = iter(self._log.events())
        self._held: list[Event | Piece] = []
        self._first_held = 0
        self._forgotten = 0
        self.last_seq = -1

    def advance(self, through: int) -> None:
        """Read up to and including a seq, or to the end of the log."""
        while self.last_seq < through:
            event = next(self._events, None)
            if event is None:
                return
            self.last_seq = event.seq
            self._held.append(event)
            self._note(event)

    def _note(self, event: Event) -> None:
        if event.type in _BEFORE_A_CALL:
            if not self._openings or event.seq > self._openings[-1]:
                self._openings.append(event.seq)
        elif event.type == MARKER:
            self._note_marker(event)
        elif event.type == "session/end-seed" and self.first_end_seed is None and event.seq > self._forked_at:
            self.first_end_seed = event.seq

    def _note_marker(self, event: Event) -> None:
        marker = read_marker(event, self._log, self._rules)
        if marker is None:
            return
        self.markers[marker.seq] = marker
        if marker.counts and marker.through > self._confirmed[-1][1] and marker.seq > self._confirmed[-1][0]:
            self._confirmed.append((marker.seq, marker.through))
        at = self._place(event.seq)
        if at >= _KEPT_CONFIRMATIONS:
            self._forget(self._confirmed[at - _KEPT_CONFIRMATIONS][1])

    def _forget(self, through: int) -> None:
        """Let go of the events up to a seq; the list is cut when half of it is gone, so in O(1) amortised."""
        self._forgotten = max(self._forgotten, min(through + 1 - self._first_held, len(self._held)))
        if self._forgotten * 2 > len(self._held):
            del self._held[: self._forgotten]
            self._first_held += self._forgotten
            self._forgotten = 0

    def _place(self, seq: int) -> int:
        """Index of the last confirmation that was in the log at a seq."""
        return bisect_right(self._confirmed, (seq, _ANY)) - 1

    def confirmed(self, prepared: int) -> int:
        """``afterSeq`` of a call prepared when ``prepared`` was the last seq: what was confirmed by then."""
        self.advance(prepared)
        return self._confirmed[self._place(prepared)][1]

    def confirmations(self, first: int, last: int) -> list[int]:
        """Every ``afterSeq`` that a call prepared at a seq from ``first`` to ``last`` may have, in order."""
        self.advance(last)
        return [through for _seq, through in self._confirmed[self._place(first) : self._place(last) + 1]]

    def opening(self, before: int) -> int:
        """The last seq up to ``before`` that a call prepared then must have seen; −1 when there is none."""
        self.advance(before)
        at = bisect_right(self._openings, before)
        return self._openings[at - 1] if at else -1

    def pieces(self, after: int, through: int) -> list[Piece] | None:
        """The events after one seq up to another, printed; None when the log does not hold them all."""
        if after + 1 < self._first_held:
            self._rewind()
        self.advance(through)
        if self.last_seq < through or after + 1 < self._first_held:
            return None
        return [self._printed(seq - self._first_held) for seq in range(after + 1, through + 1)]

    def _printed(self, place: int) -> Piece:
        held = self._held[place]
        if isinstance(held, Event):
            held = encode_event(held, self._log.version, self._rules), held.seq
            self._held[place] = held
        return held


def read_marker(event: Event, log: EventSource, rules: ReleaseRules) -> Marker | None:
    """The marker that an event is, None when it is another session's or no marker."""
    data: Json = event.data
    if event.type != MARKER or not isinstance(data, dict) or data.get("sessionId") != log.session_id:
        return None
    through = data.get("throughSeq")
    if not isinstance(through, int) or isinstance(through, bool):
        return None
    is_its_format = not rules.names_format or data.get("sessionFormatVersion", 0) == log.version
    return Marker(event.seq, through, is_its_format and through < event.seq)
