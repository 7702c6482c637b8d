"""The surface: the ordered events that a model sees, folded from the log.

``append`` pushes an event; ``replace`` puts it in the place of a range of nodes whose ends are found by
*position*. Source: dsh-session 0.1.0-rc.8 and 0.1.1-rc.2 (v0), 0.1.5-rc.1 (v3), 0.2.1-rc.2 (v4), foldSurface
and isSurfaceEvent; spec wire-deepseek 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from dsh_audit.events import Event, SurfaceOp
from dsh_audit.projection import surface_rules as rules
from dsh_audit.projection.offload import OFFLOAD_TYPE, IncrementalMarks, OffloadMarks
from dsh_audit.projection.prefix import Prefix
from dsh_audit.projection.rejection import ProjectionError as ProjectionError
from dsh_audit.projection.rejection import Rejection as Rejection
from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replacement that the fold made.

    Args:
        seq: of the event that replaced.
        start, end: the endpoints it named.
        shadowed_seqs: the nodes it removed, in surface order.
    """

    seq: int
    start: int
    end: int
    shadowed_seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Surface(Sequence[Event]):
    """The surface at one prefix of a log: a sequence of its events in the order of the model's history.

    Immutable; it stays valid when the fold that gave it goes on.

    Args:
        nodes: the events in order.
        replacements: every replacement of the prefix, in log order.
        marks: image offload marks in force.
    """

    nodes: Prefix[Event]
    replacements: Prefix[Replacement]
    marks: OffloadMarks

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.nodes)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self.nodes[index]

    @property
    def seqs(self) -> tuple[int, ...]:
        """Seqs of the nodes in order."""
        return tuple(node.seq for node in self.nodes)

    @property
    def generation(self) -> int:
        """How many replacements the prefix holds; it changes exactly when nodes were removed."""
        return len(self.replacements)

    def extends(self, earlier: Surface) -> bool:
        """Whether this is ``earlier`` with nodes appended and no new mark, known in O(1) without comparing.

        False may also mean that the two come from different folds.
        """
        is_same_run = self.nodes.shares_list(earlier.nodes) and self.marks.count == earlier.marks.count
        return is_same_run and len(self.nodes) >= len(earlier.nodes)


class IncrementalSurface:
    """The running fold of one session's surface.

    ``apply`` is O(1) amortised for an append and for an event that is not on the surface, and O(nodes) for a
    replacement. ``snapshot`` is O(1). Memory follows the surface, not the log.

    Args:
        version: format version of the events.
    """

    def __init__(self, *, version: int) -> None:
        self._version = version
        self._types = rules.surface_types(version)
        self._next_seq = 0
        self._nodes: list[Event] = []
        self._positions: dict[int, int] = {}
        self._replacements: list[Replacement] = []
        self._marks = IncrementalMarks(nested=version == 3)
        self._headers: dict[int, Event] = {}

    @property
    def next_seq(self) -> int:
        """The only seq that ``apply`` accepts now; also the number of events applied."""
        return self._next_seq

    def find(self, seq: int) -> Event | None:
        """The current node with a seq, in O(1)."""
        position = self._positions.get(seq)
        return None if position is None else self._nodes[position]

    def snapshot(self) -> Surface:
        """The surface after the events applied so far."""
        nodes = Prefix(self._nodes, len(self._nodes))
        return Surface(nodes, Prefix(self._replacements, len(self._replacements)), self._marks.snapshot())

    def apply(self, event: Event) -> None:
        """Fold one event.

        Raises:
            ProjectionError: the harness would refuse the event; the fold stays as it was.
        """
        if event.seq != self._next_seq:
            rules.refuse(event, Rejection.SEQ, f"event has seq {event.seq} where {self._next_seq} is next")
        if event.type in self._types:
            self._apply_surface_event(event)
        else:
            self._apply_log_only(event)
        self._next_seq = event.last_seq + 1

    def _apply_log_only(self, event: Event) -> None:
        rules.check_log_only(event, self._version)
        if event.type == OFFLOAD_TYPE and self._version >= 3:
            self._marks.apply(event, self.find)
        elif event.type == "request/header" and self._version >= 4:
            self._headers[event.seq] = event

    def _apply_surface_event(self, event: Event) -> None:
        op = rules.check_op(event, self._version)
        # Released order: format 0 looks for the range before it looks at the sources, later ones after.
        if self._version >= 2 or op.op == "append":
            rules.check_sources(event, self._version)
        if event.type == "developer/message":
            rules.check_developer(event, self._headers)
        if op.op == "append":
            self._positions[event.seq] = len(self._nodes)
            self._nodes.append(event)
        else:
            self._replace(event, op)

    def _replace(self, event: Event, op: SurfaceOp) -> None:
        first, last = rules.find_range(event, op, self._positions)
        if self._version < 2:
            rules.check_sources(event, self._version)
        shadowed = self._nodes[first : last + 1]
        rules.check_replacement(event, first, shadowed, self._nodes[0], self._version)
        # Snapshots share the old list, so a replacement makes a new one instead of changing it.
        self._nodes = [*self._nodes[:first], event, *self._nodes[last + 1 :]]
        for node in shadowed:
            del self._positions[node.seq]
        self._positions[event.seq] = first
        if first != last:
            self._positions.update((self._nodes[at].seq, at) for at in range(first, len(self._nodes)))
        assert op.start is not None and op.end is not None
        seqs = tuple(node.seq for node in shadowed)
        self._replacements.append(Replacement(event.seq, op.start, op.end, seqs))


def is_surface_event(event: Event, *, version: int) -> bool:
    """Whether the event belongs to the surface: type of a surface event, and a surface operation."""
    return event.type in rules.surface_types(version) and event.surface_op is not None


def fold_surface(events: Iterable[Event], through: int | None = None, *, version: int) -> Surface:
    """The surface after a prefix of a log.

    Args:
        events: of one session, from seq 0.
        through: last seq of the prefix, inclusive; all events when None or past the end.
        version: format version of the events.

    Raises:
        ProjectionError: the harness would refuse an event of the prefix.
    """
    fold = IncrementalSurface(version=version)
    for event in prefix_of(events, through):
        fold.apply(event)
    return fold.snapshot()


def prefix_of(events: Iterable[Event], through: int | None) -> Iterator[Event]:
    """The events up to and including seq ``through`` (all when None), reading no further than that."""
    return islice(events, None if through is None else max(through + 1, 0))
