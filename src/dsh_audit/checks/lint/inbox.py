"""Inbox splices of an old log, replayed as later releases replay them: none removes what is not there.

In the formats of those releases the reader itself does so (``log/reload-refused``). Source: spec session-log 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.checks.lint.releases import releases_from
from dsh_audit.events import Event, Json, as_list, as_object
from dsh_audit.finding import Finding, Severity
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules

_SINCE = 3


@dataclass(slots=True)
class InboxObserver:
    """How many messages wait for each target."""

    facts: Facts
    types: frozenset[str] = frozenset({"agent/inbox/spliced"})
    _waiting: dict[str, int] = field(default_factory=dict)
    _found: list[Finding] = field(default_factory=list)

    def event(self, event: Event) -> None:
        """Replay one splice."""
        data = as_object(event.data)
        target, start, removed = str(data.get("target", "")), _count(data, "start"), _count(data, "removedCount")
        inserted, held = len(as_list(data.get("inserted"))), self._waiting.get(target, 0)
        if start > held or removed > held - start:
            self._refuse(event, target, removed, max(0, held - start))
            removed, start = min(removed, max(0, held - start)), min(start, held)
        self._waiting[target] = held - removed + inserted

    def _refuse(self, event: Event, target: str, removed: int, held: int) -> None:
        refusing = releases_from(_SINCE, self.facts.releases)
        if self._found or not refusing or self.facts.log.version >= _SINCE:
            return
        error = f"invalid persisted inbox splice at session seq {event.seq}"
        message = (
            f"{refusing[0]}{' and later refuse' if len(refusing) > 1 else ' refuses'} the log: {error}; "
            f"it removes {removed} from {target}, which holds {held}"
        )
        details = {
            "basis": "refused-by",
            "event": event.seq,
            "release": refusing[0],
            "releases": list(refusing),
            "error": error,
        }
        details |= {"error": error, "source": "runs of 0.1.5-rc.1 and 0.2.1-rc.2"}
        details |= {"target": target, "removed": removed, "held": held}
        where = self.facts.log.where(seq=event.seq, line=event.line, pointer="/removedCount")
        level = Severity.WARNING if self.facts.release is None else Severity.ERROR
        self._found.append(Finding(rules.INBOX_SPLICE, message, where, details, level))

    def request(self, sent: Sent) -> None:
        """No request depends on it."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """The first refused splice."""
        return self._found


def _count(data: dict[str, Json], key: str) -> int:
    value = data.get(key, 0)
    return value if isinstance(value, int) else 0


CHECK = Check("inbox", "pass", InboxObserver)
