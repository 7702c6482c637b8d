"""What the migration steps share: refusals, references between events, turn observation.

Source: spec session-log 5 to 8; dsh-session-format of 0.2.1-rc.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from dsh_audit.events import Event, Json, SessionHeader, SurfaceOp
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_object, require_object
from dsh_audit.record import dataclass

SYSTEM_ORDER = ("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs")
"""Envelope order of the system replacements that the step to format 3 inserts."""


class MigrationRefusedError(FormatError):
    """The harness refuses to migrate the log.

    Args:
        reason: one line.
        from_version: format that the refusing step migrates from.
        seq: seq in that format of the event at fault; None for the session header or the end of the log.
    """

    def __init__(self, reason: str, *, from_version: int, seq: int | None = None) -> None:
        super().__init__(reason)
        self.from_version = from_version
        self.seq = seq


@dataclass(frozen=True, slots=True)
class ChildSession:
    """What a parent's migration to format 4 needs of one child session.

    Args:
        child_id: session id.
        created_at: of the child's session header.
        descriptor_count: number of the child's own ``subagent/descriptor`` events.
        descriptor: payload of the first of them, or None.
    """

    child_id: str
    created_at: int
    descriptor_count: int = 0
    descriptor: Json = None


MigrateEvents: TypeAlias = Callable[[Iterable[Event], SessionHeader, Sequence[ChildSession]], Iterator[Event]]


@dataclass(frozen=True, slots=True)
class Step:
    """One adjacent migration.

    Args:
        from_version: format it reads; it writes the next.
        migrate_header: source header → target header; raises FormatError.
        migrate_events: events, source header, children → target events; raises MigrationRefusedError.
    """

    from_version: int
    migrate_header: Callable[[SessionHeader], SessionHeader]
    migrate_events: MigrateEvents


class Migration(Protocol):
    """State of one step over one log."""

    def step(self, event: Event) -> Iterator[Event]:
        """Target events of the next source event; raises FormatError."""

    def finish(self) -> Iterator[Event]:
        """Target events after the last source event; raises FormatError."""


def run_migration(migration: Migration, events: Iterable[Event], from_version: int) -> Iterator[Event]:
    """All target events of a step; its refusals become MigrationRefusedError, errors of the source pass."""
    for event in events:
        yield from _guarded(migration.step(event), from_version, event.seq)
    yield from _guarded(migration.finish(), from_version, None)


def _guarded(made: Iterator[Event], from_version: int, seq: int | None) -> Iterator[Event]:
    try:
        yield from made
    except FormatError as error:
        raise MigrationRefusedError(error.reason, from_version=from_version, seq=seq) from None
    except RecursionError:
        raise MigrationRefusedError("nested too deeply", from_version=from_version, seq=seq) from None


class References:
    """Positions of source events in the target; -1 marks an event that is gone."""

    def __init__(self) -> None:
        self._targets: list[int] = []

    def __len__(self) -> int:
        return len(self._targets)

    def place(self, source: int, target: int) -> None:
        """The source event stands at ``target``; sources in between are gone."""
        missing = source + 1 - len(self._targets)
        if missing > 0:
            self._targets.extend([-1] * missing)
        self._targets[source] = target

    def one(self, seq: Json, label: str) -> int:
        """Target of one referenced source event; raises FormatError."""
        known = isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq < len(self._targets)
        target = self._targets[seq] if known else -1
        if target < 0:
            raise FormatError(f"{label} refers to an event that is gone or not earlier: {seq}")
        return target

    def many(self, seqs: Json, label: str) -> list[int]:
        """Targets of a list of source events; raises FormatError."""
        if not isinstance(seqs, list):
            raise FormatError(f"{label} must be an array")
        return [self.one(seq, label) for seq in seqs]

    def event(self, event: Event, seq: int) -> Event:
        """The event at its target place, with all its references to this log's events."""
        label = f"{event.type} {event.seq}"
        sources = event.source_event_seqs
        if sources is not None:
            sources = tuple(self.one(each, label) for each in sources)
        op = event.surface_op
        if op is not None and op.op == "replace":
            op = SurfaceOp("replace", self.one(op.start, label), self.one(op.end, label))
        data = self._payload(event.type, event.data, label)
        return event.changed(seq=seq, data=data, source_event_seqs=sources, surface_op=op)

    def _payload(self, event_type: str, data: Json, label: str) -> Json:
        match event_type:
            case "command/done":
                found = require_object(data, label)
                if "sourceEventSeq" not in found:
                    return data
                return {**found, "sourceEventSeq": self.one(found["sourceEventSeq"], label)}
            case "compaction/summary" | "compaction/prune":
                return self._shadowed(require_object(data, label), label)
            case "session/title" | "session/title-llm-request":
                found = require_object(data, label)
                return {**found, "messageSeqs": self.many(found.get("messageSeqs"), label)}
            case "image/offload":
                return self._targets_of(require_object(data, label), label)
            case _:
                return data

    def _shadowed(self, data: dict[str, Json], label: str) -> dict[str, Json]:
        span = require_object(data.get("shadowedRange"), f"{label} shadowedRange")
        ends = {key: self.one(span.get(key), label) for key in ("start", "end")}
        seqs = self.many(data.get("shadowedSeqs"), label)
        return {**data, "shadowedRange": {**span, **ends}, "shadowedSeqs": seqs}

    def _targets_of(self, data: dict[str, Json], label: str) -> dict[str, Json]:
        targets = data.get("targets")
        if not isinstance(targets, list):
            raise FormatError(f"{label} targets must be an array")
        moved = [
            {**require_object(each, label), "seq": self.one(require_object(each, label).get("seq"), label)}
            for each in targets
        ]
        return {**data, "targets": moved}


@dataclass(slots=True)
class RestartWatch:
    """Finds a turn that starts although the turn before was never ended: an interrupted restart.

    Attributes:
        turns_close_steps: a turn's start and end close a step that was left open; not so in the step to format 4.
        turn: the open turn, if any.
    """

    turns_close_steps: bool
    turn: Json = None
    _step_open: bool = False
    _spliced: bool = False

    def see(self, event: Event) -> int | None:
        """Take note of the next source event; returns the turn to end as interrupted before it, if any."""
        data = event.data if is_object(event.data) else {}
        interrupted = None
        if event.type == "turn/start":
            sound = isinstance(self.turn, int) and not self._step_open and self._spliced
            interrupted = self.turn if sound and data.get("turn") == self.turn + 1 else None
        self._spliced = event.type == "agent/inbox/spliced" and _splices_next_turn(data)
        match event.type:
            case "turn/start" | "turn/end":
                self.turn = data.get("turn") if event.type == "turn/start" else None
                self._step_open = self._step_open and not self.turns_close_steps
            case "step/start":
                self._step_open = True
            case "step/end":
                self._step_open = False
        return interrupted


def _splices_next_turn(data: dict[str, Json]) -> bool:
    inserted = data.get("inserted")
    return data.get("target") == "next-turn" and isinstance(inserted, list) and len(inserted) > 0


def interrupted_end(turn: int, event: Event, seq: int) -> Event:
    """The ``turn/end`` that an interrupted restart is given, at the time of the event after it."""
    return Event("turn/end", seq, event.time, {"turn": turn, "reason": {"kind": "interrupted"}})


def is_inherited_mark(event: Event) -> bool:
    """Whether the event marks the end of what a seeded session inherited, in format 2 and later."""
    return event.type == "session/end-seed" and is_object(event.data) and event.data.get("inherited") is True
