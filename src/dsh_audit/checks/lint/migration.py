"""The migrations that later releases make, tried step by step over the events that pass by."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field

from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.checks.lint.releases import format_of, releases_from
from dsh_audit.events import ChunkRun, Event, Json
from dsh_audit.finding import Finding, Severity
from dsh_audit.formats.migrate import MigrationRefusedError, migrate
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules


@dataclass(slots=True)
class MigrationObserver:
    """Hands on the events of one pass while they are migrated to the newest format that is judged."""

    facts: Facts
    types: frozenset[str] = frozenset()
    _refusal: MigrationRefusedError | None = None
    _refused_at: Event | None = None
    _last: Event | None = None
    _held: deque[Event] = field(default_factory=deque)

    def watch(self, events: Iterator[Event]) -> Iterator[Event]:
        """The same events; no more of them wait than an open answer has."""
        log = self.facts.log
        target = max((format_of(release) or 0 for release in self.facts.releases), default=log.version)
        if target > log.version and log.session_header.raw:
            try:
                for _ in migrate(self._seen(events), log.session_header, target).events:
                    while self._held:
                        yield self._held.popleft()
            except MigrationRefusedError as refusal:
                self._refusal, self._refused_at = refusal, self._last
        while self._held:
            yield self._held.popleft()
        yield from events

    def _seen(self, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            self._last = event
            self._held.append(event)
            yield from event.expand() if isinstance(event, ChunkRun) else (event,)

    def event(self, event: Event) -> None:
        """Seen on its way."""

    def request(self, sent: Sent) -> None:
        """No request depends on it."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """The refusal, unless the log cannot be read as far as that."""
        if self._refusal is None or reader.stopped_at is not None or reader.through is not None:
            return
        log, refusal, event = self.facts.log, self._refusal, self._refused_at
        refusing = releases_from(refusal.from_version + 1, self.facts.releases)
        if not refusing:
            return
        step = f"format {refusal.from_version} to {refusal.from_version + 1}"
        at = f" at seq {event.seq} ({event.type})" if event is not None else ""
        later = " and later refuse" if len(refusing) > 1 else " refuses"
        message = f"{refusing[0]}{later} to migrate the log{at}, {step}: {refusal.reason}"
        details: dict[str, Json] = {
            "basis": "refused-by",
            "release": refusing[0],
            "releases": list(refusing),
            "error": refusal.reason,
        }
        details |= {"from_format": refusal.from_version, "to_format": refusal.from_version + 1}
        details["source"] = "migration of 0.1.5-rc.1 and 0.2.1-rc.2"
        details |= {} if event is None else {"event": event.seq, "event_type": event.type}
        where = log.where() if event is None else log.where(seq=event.seq, line=event.line)
        level = Severity.WARNING if self.facts.release is None else Severity.ERROR
        yield Finding(rules.MIGRATION, message, where, details, level)


CHECK = Check("migration", "pass", MigrationObserver)
