"""Delivery markers that name another session: the log was imported under a new id. Source: spec session-log 3.4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.checks.lint.releases import releases_from
from dsh_audit.events import Event, as_object
from dsh_audit.finding import Finding, Severity
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules

_ERROR = "current-generation delivery marker names the wrong Session"


@dataclass(slots=True)
class MarkerObserver:
    """The own markers of a log."""

    facts: Facts
    types: frozenset[str] = frozenset({"session-log-deepseek/delivery-accepted"})
    _own_from: int = field(init=False)
    _foreign: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._own_from = self.facts.log.own_from()

    def event(self, event: Event) -> None:
        """One marker."""
        log, data = self.facts.log, as_object(event.data)
        is_own = event.seq >= self._own_from and bool(log.session_id)
        if is_own and data.get("sessionId") != log.session_id and data.get("sessionFormatVersion", 0) == log.version:
            self._foreign.append(event)

    def request(self, sent: Sent) -> None:
        """No request depends on it."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """One finding for all of them."""
        if not self._foreign:
            return
        log, first = self.facts.log, self._foreign[0]
        other = str(as_object(first.data).get("sessionId"))
        many = len(self._foreign)
        text = f"{many} delivery {'marker names' if many == 1 else 'markers name'} session {other!r}"
        refusing = releases_from(4, self.facts.releases) if log.version == 4 else ()
        details = {"event": first.seq, "events": [event.seq for event in self._foreign], "other_session": other}
        where = log.where(seq=first.seq, line=first.line, pointer="/sessionId")
        if refusing:
            details |= {"basis": "refused-by", "release": refusing[0], "releases": list(refusing), "error": _ERROR}
            details["source"] = "run of 0.2.1-rc.2"
            message = f"{refusing[0]} refuses the log: {_ERROR}; {text}"
            yield Finding(rules.FOREIGN_MARKER, message, where, details)
        else:
            message = f"{text}: the log was imported; the releases of its format open it"
            yield Finding(rules.FOREIGN_MARKER, message, where, {"basis": "accepted", **details}, Severity.INFO)


CHECK = Check("markers", "pass", MarkerObserver)
