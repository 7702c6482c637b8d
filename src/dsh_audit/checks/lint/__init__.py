"""Will this session still open, migrate and be accepted? One file a check, each listed once in ``CHECKS``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from dsh_audit.checks.lint import (
    arguments,
    attachments,
    images,
    inbox,
    last_request,
    markers,
    migration,
    pairing,
    reasoning,
    tools,
    unfinished,
    version,
)
from dsh_audit.checks.lint.migration import MigrationObserver
from dsh_audit.checks.lint.model import Check, Facts, Need, Observer, Sent
from dsh_audit.checks.lint.unfinished import OpenObserver
from dsh_audit.dispatch.model import Dispatch, Prepared, WireCount
from dsh_audit.events import Event
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.projection.state import SessionState
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request, build_requests
from dsh_audit.wire.adapter import UnloggedInputs
from dsh_audit.wire.protocol import ProtocolChooser

CHECKS: tuple[Check, ...] = (
    version.CHECK,
    migration.CHECK,
    inbox.CHECK,
    markers.CHECK,
    pairing.CHECK,
    arguments.CHECK,
    tools.CHECK,
    reasoning.CHECK,
    images.CHECK,
    attachments.CHECK,
    last_request.CHECK,
    unfinished.CHECK,
)
"""In the order in which they see an event."""

__all__ = ["CHECKS", "Facts", "LintPass"]


@dataclass(slots=True)
class LintPass:
    """All checks of one pass, as one observer of ``inspect_log``.

    Args:
        facts: of the log.
        needs: what the checks may look at.
    """

    facts: Facts
    needs: frozenset[Need] = frozenset({"pass"})
    _observers: list[Observer] = field(init=False)
    _by_type: dict[str, list[Observer]] = field(default_factory=dict)
    _protocols: ProtocolChooser = field(default_factory=ProtocolChooser)
    _count: int = 0
    _protocol: str | None = None

    def __post_init__(self) -> None:
        self._observers = [check.observe(self.facts) for check in CHECKS if check.needs in self.needs]
        for observer in self._observers:
            for name in observer.types:
                self._by_type.setdefault(name, []).append(observer)

    def watch(self, events: Iterator[Event]) -> Iterator[Event]:
        """The same events, each shown to the checks that want its type."""
        for observer in self._observers:
            if isinstance(observer, MigrationObserver):
                events = observer.watch(events)
        for event in events:
            for observer in self._by_type.get(event.type, ()):
                observer.event(event)
            yield event

    def request(self, request: Request) -> None:
        """The next request."""
        choice = self._protocols.choose(request, UnloggedInputs(self.facts.deployment))
        if request.dispatch.kind == "step":
            self._protocol = choice.protocol
        self._show(Sent(self._count, request, choice.protocol))
        self._count += 1

    def _show(self, sent: Sent) -> None:
        for observer in self._observers:
            observer.request(sent)

    def finish(self, reader: EventReader, state: SessionState) -> list[Finding]:
        """The findings, once the request that would come next was shown as well."""
        open_turn = next(one for one in self._observers if isinstance(one, OpenObserver)).turn
        if reader.stopped_at is None and self._protocol is not None:
            nothing = Dispatch("step", None, None, None, state.last_seq, state.count, None, WireCount(0, 0, ""), "none")
            request = build_requests(Prepared(nothing, state.snapshot()), self.facts.log.session_header)[0]
            self._show(Sent(None, request, self._protocol, is_turn_open=open_turn is not None))
        found = [finding for observer in self._observers for finding in observer.finish(reader)]
        explained = {index for finding in found for index in finding.details.get("refused", ())}
        return [one for one in found if one.details.get("last_request", -1) not in explained]
