"""A log that is newer than the release it is to be opened with. Source: spec session-log 10."""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.checks.lint.releases import format_of
from dsh_audit.events import Event
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules


@dataclass(slots=True)
class VersionObserver:
    """Looks at the session header only."""

    facts: Facts
    types: frozenset[str] = frozenset()

    def event(self, event: Event) -> None:
        """None is needed."""

    def request(self, sent: Sent) -> None:
        """No request depends on it."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """A refusal of the named release."""
        log, release = self.facts.log, self.facts.release
        reads = log.version if release is None else format_of(release)
        if reads is not None and reads < log.version:
            message = f"{release} refuses the log: it is of format {log.version}, that release reads up to {reads}"
            details = {"basis": "refused-by", "release": release, "format": log.version, "reads": reads}
            yield Finding(rules.TOO_NEW, message, log.where(line=1), details)


CHECK = Check("version", "pass", VersionObserver)
