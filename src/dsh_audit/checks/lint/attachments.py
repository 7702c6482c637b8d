"""Images whose stored bytes are missing or altered: what needs them fails before anything is sent.

The harness reports it as TRANSPORT and retries; no request leaves. Source: spec dispatch 9; dsh#7582, dsh#10842.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.attachments.checks import Problem, check_object
from dsh_audit.attachments.references import blocks_of, parse_reference
from dsh_audit.checks.lint.model import Check, Facts, Sent
from dsh_audit.events import Event, as_list
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.projection.messages import derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.record import dataclass

_WHAT = "a request that needs its bytes fails as TRANSPORT and nothing is sent"


@dataclass(slots=True)
class AttachmentObserver:
    """The images that requests carry, each object looked at once."""

    facts: Facts
    types: frozenset[str] = frozenset()
    _surface: Surface | None = None
    _found: dict[str, tuple[Problem, int, int | None] | None] = field(default_factory=dict)

    def event(self, event: Event) -> None:
        """The requests show what is needed."""

    def request(self, sent: Sent) -> None:
        """The images of one more request."""
        if self.facts.deployment.attachments is None or sent.request.dispatch.kind != "step":
            return
        surface, known = sent.request.snapshot.surface, self._surface
        start = len(known) if known is not None and surface.extends(known) else 0
        self._surface = surface
        for derived in derive_nodes(surface[start:] if start else surface, surface.marks):
            for block in blocks_of(as_list(derived.message.get("content")), "image"):
                if not block.get("offloaded"):
                    self._look(block, derived.seq, sent.index)

    def _look(self, block: dict[str, object], seq: int, index: int | None) -> None:
        reference, store = parse_reference(block.get("attachment")), self.facts.deployment.attachments
        if reference is None or store is None or reference.id in self._found:
            return
        problem = check_object(store, reference)
        self._found[reference.id] = None if problem is None else (problem, seq, index)

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """One finding an object."""
        for ident, found in self._found.items():
            if found is None:
                continue
            problem, seq, index = found
            details = {"basis": "refused-by", "event": seq, "attachment": ident, "first_request": index}
            details["source"] = "run of 0.1.1-rc.2; dsh#7582, dsh#10842"
            where = self.facts.log.where(seq=seq, request=index)
            yield Finding(problem.rule, f"{problem.what}: {_WHAT}", where, details)


CHECK = Check("attachments", "bodies", AttachmentObserver)
