"""One log → what it is and how healthy it is: identity, counts, routes, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import ClassVar, Literal, Protocol

from dsh_audit.dispatch.scan import DispatchScanner
from dsh_audit.events import Event
from dsh_audit.finding import Finding, Severity, sort_findings
from dsh_audit.log.session_log import EventReader, LogStats, SessionLog
from dsh_audit.projection.state import SessionState
from dsh_audit.record import dataclass
from dsh_audit.replay.family import Inherited, TurnSpans
from dsh_audit.replay.session_replay import EventFold
from dsh_audit.request.neutral import Request, build_requests
from dsh_audit.rules import log as rules

_TAIL_CODES = {rules.TORN_TAIL.code, rules.DROPPED_TAIL.code, rules.ZERO_TAIL.code, rules.BLANK_LINE.code}

Health = Literal["ok", "notes", "refused", "torn", "damaged"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one pass over a log has found.

    Args:
        log: the log.
        stats: counts, encoding and digest.
        event_types: events by type, ordered by name.
        turns: own turns started.
        requests: dispatches by kind.
        routes: ``provider/model`` of the requests, in order of first use.
        fence_seq: first unknown required event.
        stopped_at: seq where the sound prefix ends; None when the log was read whole.
        findings: sorted.
        inherited: what its parent wrote of it; None where that is nothing.
        turns_run: with their times.
    """

    log: SessionLog
    stats: LogStats
    event_types: dict[str, int]
    turns: int
    requests: dict[str, int]
    routes: tuple[str, ...]
    fence_seq: int | None
    stopped_at: int | None
    findings: tuple[Finding, ...]
    inherited: Inherited | None = None
    turns_run: TurnSpans = field(default_factory=TurnSpans)

    JSON: ClassVar = (
        "source=log.source.label session_id=log.session_header.id format_version=log.version "
        "created_at=log.session_header.created_at cwd=log.session_header.cwd "
        "parent_session=log.session_header.parent_session origin=log.session_header.origin "
        "agent_preset=log.session_header.agent_preset inherited encoding=stats.encoding "
        "size=stats.size_bytes decoded_size=stats.decoded_bytes sha256=stats.sha256 frames=stats.frames "
        "rows=stats.rows events=stats.events last_seq=stats.last_seq event_types dialects=stats.dialects turns "
        "requests routes fence_seq stopped_at health findings"
    )

    def with_findings(self, more: Iterable[Finding]) -> Inspection:
        """The same with further findings."""
        return replace(self, findings=tuple(sort_findings([*self.findings, *more])))

    @property
    def worst(self) -> Finding | None:
        """The first of the heaviest findings."""
        levels = list(Severity)
        return min(self.findings, key=lambda finding: levels.index(finding.severity), default=None)

    @property
    def health(self) -> Health:
        """``damaged``; ``torn`` when only the tail is lost; ``refused`` when the file is sound and a release or a
        provider refuses the session; ``notes`` when there is no error; else ``ok``.
        """
        errors = {finding.code for finding in self.findings if finding.severity is Severity.ERROR}
        if errors:
            damage = {code for code in errors if not code.startswith("lint/") and code != rules.RELOAD_REFUSED.code}
            return "refused" if not damage else "torn" if damage <= _TAIL_CODES else "damaged"
        return "notes" if self.findings else "ok"


class Observer(Protocol):
    """What else looks at a log while it is read."""

    def watch(self, events: Iterator[Event]) -> Iterator[Event]:
        """The same events, seen."""

    def request(self, request: Request) -> None:
        """The next request, before the events behind its prefix."""

    def finish(self, reader: EventReader, state: SessionState) -> list[Finding]:
        """What it has found, when the log was read."""


@dataclass(slots=True)
class _Tally:
    types: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    routes: dict[str, None] = field(default_factory=dict)
    turns: int = 0
    spans: TurnSpans = field(default_factory=TurnSpans)


def inspect_log(
    log: SessionLog, through: int | None = None, findings: Iterable[Finding] = (), observer: Observer | None = None
) -> Inspection:
    """Read a log once and tell what it is; no body is encoded."""
    reader, tally, own_from = log.events(through), _Tally(), log.own_from()

    def see(event: Event) -> None:
        tally.types[event.type] += event.last_seq - event.seq + 1
        if event.type in ("turn/start", "turn/end"):
            tally.turns += event.type == "turn/start" and event.seq >= own_from
            tally.spans.see(event)

    fold = EventFold(log, reader, DispatchScanner(log.version, own_from))
    watch = None if observer is None else observer.watch
    for prepared in fold.run(own_from, see, see, watch):
        tally.requests[prepared.dispatch.kind] += 1
        request = build_requests(prepared, log.session_header)[0]
        if request.model:
            tally.routes[f"{request.provider}/{request.model}"] = None
        if observer is not None:
            observer.request(request)
    observed = [] if observer is None else observer.finish(reader, fold.state)
    found = sort_findings([*findings, *fold.findings, *observed])
    return Inspection(
        log=log,
        stats=reader.stats,
        event_types=dict(sorted(tally.types.items())),
        turns=tally.turns,
        requests=dict(sorted(tally.requests.items())),
        routes=tuple(tally.routes),
        fence_seq=reader.fence_seq,
        stopped_at=reader.stopped_at,
        findings=tuple(found),
        inherited=Inherited(min(own_from, reader.stats.events), tally.spans.before(own_from)) if own_from else None,
        turns_run=tally.spans,
    )


def relate(inspections: Iterable[Inspection]) -> list[Inspection]:
    """The same, each child with the turn that its parent was in when it was made."""
    listed = list(inspections)
    parents = {one.log.session_id: one.turns_run for one in listed}
    return [_with_parent(one, parents.get(one.log.session_header.parent_session or "")) for one in listed]


def _with_parent(child: Inspection, parent: TurnSpans | None) -> Inspection:
    if child.inherited is None or parent is None:
        return child
    turn = parent.at(child.log.session_header.created_at)
    return replace(child, inherited=replace(child.inherited, parent_turn=turn))


def format_time(time_ms: int | float | None) -> str:
    """UTC time of a millisecond stamp, ``-`` when it is none."""
    if time_ms is None or not 0 < time_ms < 253_402_300_800_000:
        return "-"
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
