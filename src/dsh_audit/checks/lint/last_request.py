"""The last request of a step was refused, and nothing in the history explains it: the next one carries the same."""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.checks.lint.model import Check, Facts, Sent, describe_failure, is_refusal
from dsh_audit.events import Event
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules


@dataclass(slots=True)
class LastObserver:
    """Remembers the last step request."""

    facts: Facts
    types: frozenset[str] = frozenset()
    last: Sent | None = None

    def event(self, event: Event) -> None:
        """The requests say it."""

    def request(self, sent: Sent) -> None:
        """The next request."""
        if sent.index is not None and sent.request.dispatch.kind == "step":
            self.last = sent

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """The refusal."""
        if self.last is None or self.last.request.dispatch.outcome != "failed":
            return
        dispatch, index = self.last.request.dispatch, self.last.index
        if is_refusal(dispatch.failure):
            error = describe_failure(dispatch.failure)
            details = {"basis": "refused-in-log", "error": error, "event": dispatch.settled_seq, "last_request": index}
            message = f"request {index}, the last one, was refused with {error}; the next one carries the same history"
            where = self.facts.log.where(seq=dispatch.settled_seq, request=index)
            yield Finding(rules.LAST_REFUSED, message, where, details)


CHECK = Check("last_request", "pass", LastObserver)
