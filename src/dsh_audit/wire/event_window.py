"""Ranges of the events of a log as ``dsh_session_log`` prints them, kept while a pass over the log goes on.

Ranges are asked for in about the order of the log, so each event is printed once and forgotten when the provider has
confirmed it. Memory follows the widest range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Protocol

from dsh_audit.events import ChunkRun, Event, Json, SessionHeader
from dsh_audit.record import dataclass
from dsh_audit.releases import ReleaseRules
from dsh_audit.wire.parts import Piece
from dsh_audit.wire.session_log_field import MARKER, encode_event

MAX_HELD = 5000
"""Most events that are held for one field; longer ones are printed from a second reading."""

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
    """Takes the events of a log in order and keeps those not yet confirmed.

    A pass over the log feeds it (``see``, ``release``); without one it reads the log itself. Events that it let go of
    are read again, which a pass that asks in time never needs.

    Attributes:
        markers: delivery markers of this session among the events read, by seq.
        foreign: own delivery markers that name another session, seq → that session.
        first_end_seed: seq of the first ``session/end-seed`` of a later process among the events read, None so far.
        last_seq: of the events read; −1 before the first.
    """

    def __init__(self, log: EventSource, rules: ReleaseRules, inherited: int | None = None) -> None:
        self._log = log
        self._rules = rules
        # A fork writes an end-seed of its own right after the inherited events, in the parent's process.
        self._forked_at = -1 if inherited is None else inherited
        self.markers: dict[int, Marker] = {}
        self.foreign: dict[int, str] = {}
        self.first_end_seed: int | None = None
        self.last_seq = -1
        self._confirmed: list[tuple[int, int]] = [(-1, -1)]
        self._openings: list[int] = []
        self._held = _Held(log.version, rules, MAX_HELD)
        self._own: Iterator[Event] | None = None
        self._again: tuple[Iterator[Event], _Held] | None = None
        self._is_fed = False

    def see(self, event: Event) -> None:
        """Take the next event of the pass that feeds it."""
        self._is_fed = True
        self._take(event)

    def release(self, seq: int) -> None:
        """Let go of what no call prepared after a seq needs, but for a few confirmations before it."""
        at = self._place(seq)
        if at >= _KEPT_CONFIRMATIONS:
            self._held.forget(self._confirmed[at - _KEPT_CONFIRMATIONS][1])

    def advance(self, through: int) -> None:
        """Read up to and including a seq, or to the end of the log; what feeds the window decides how far."""
        if self._is_fed or self.last_seq >= through:
            return
        self._own = iter(self._log.events()) if self._own is None else self._own
        for event in self._own:
            self._take(event)
            if event.type == MARKER:
                self.release(event.seq)
            if self.last_seq >= through:
                return

    def _take(self, event: Event) -> None:
        self.last_seq = event.last_seq
        if event.type in _BEFORE_A_CALL:
            self._openings.append(event.seq)
        elif event.type == MARKER:
            self._note_marker(event)
        elif event.type == "session/end-seed" and self.first_end_seed is None and event.seq > self._forked_at:
            self.first_end_seed = event.seq
        self._held.add(event)

    def _note_marker(self, event: Event) -> None:
        marker = read_marker(event, self._log, self._rules)
        named = event.data.get("sessionId") if isinstance(event.data, dict) else None
        if isinstance(named, str) and named != self._log.session_id and event.seq > self._forked_at:
            self.foreign[event.seq] = named
        if marker is None:
            return
        self.markers[marker.seq] = marker
        if marker.counts and marker.through > self._confirmed[-1][1]:
            self._confirmed.append((marker.seq, marker.through))

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
        self.advance(through)
        if self.last_seq < through:
            return None
        return self._held.pieces(after, through) if after >= self._held.gone else self._read_again(after, through)

    def _read_again(self, after: int, through: int) -> list[Piece] | None:
        if self._again is None or after < self._again[1].gone:
            self._again = iter(self._log.events()), _Held(self._log.version, self._rules, _ANY)
        events, held = self._again
        if held.last_seq < through:
            for event in events:
                held.add(event)
                at = self._place(event.seq) if event.type == MARKER else 0
                if at >= _KEPT_CONFIRMATIONS:
                    held.forget(min(self._confirmed[at - _KEPT_CONFIRMATIONS][1], after))
                if held.last_seq >= through:
                    break
        return held.pieces(after, through)


class _Held:
    """Events in order, printed when asked for; the oldest are let go of.

    Attributes:
        gone: seq up to which they are gone.
        last_seq: of the newest one.
    """

    def __init__(self, version: int, rules: ReleaseRules, limit: int) -> None:
        self._limit = limit
        self._version = version
        self._rules = rules
        self._events: list[Event | list[Piece]] = []
        self._ends: list[int] = []
        self.gone = self.last_seq = -1

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event) -> None:
        """Hold a further event; when there are too many that nobody let go of, all before it are gone."""
        if len(self) >= self._limit:
            self.forget(self.last_seq)
        self._events.append(event)
        self.last_seq = event.last_seq
        self._ends.append(self.last_seq)

    def forget(self, through: int) -> None:
        """Let go of the events up to a seq; the list is cut when half of it is gone, so in O(1) amortised."""
        count = bisect_right(self._ends, through)
        if count * 2 > len(self._events):
            self.gone = self._ends[count - 1]
            del self._events[:count], self._ends[:count]

    def pieces(self, after: int, through: int) -> list[Piece]:
        """The events after one seq up to another, printed; all of them are held."""
        found: list[Piece] = []
        for place in range(bisect_right(self._ends, after), bisect_left(self._ends, through) + 1):
            found += self._printed(place)
        return [piece for piece in found if piece[1] is not None and after < piece[1] <= through]

    def _printed(self, place: int) -> list[Piece]:
        held = self._events[place]
        if isinstance(held, Event):
            events = held.expand() if isinstance(held, ChunkRun) else (held,)
            held = [(encode_event(event, self._version, self._rules), event.seq) for event in events]
            self._events[place] = held
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
