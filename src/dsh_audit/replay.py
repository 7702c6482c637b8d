"""One log → its requests, rebuilt in one pass: events → folds → dispatches → requests → wire bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dsh_audit.deployment import Deployment
from dsh_audit.dispatch.compaction_range import Retention
from dsh_audit.dispatch.model import Prepared
from dsh_audit.dispatch.scan import DispatchScanner
from dsh_audit.finding import Finding
from dsh_audit.log import EventReader, SessionLog
from dsh_audit.projection.rejection import ProjectionError
from dsh_audit.projection.state import SessionState
from dsh_audit.request import Request, build_requests
from dsh_audit.rules import log as rules
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.session import SessionEncoder


def _retention(deployment: Deployment) -> Retention:
    tokens, ratio = (deployment.look_up("compaction", key) for key in ("retain_tokens", "retain_ratio"))
    return Retention(tokens) if ratio is None else Retention(tokens, ratio)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One request of a log with its wire form.

    Args:
        index: from 0 in the order of the log.
        request: the neutral request, the best one where the log leaves a choice.
        encoded: its wire form.
        others: further requests that the log allows, best first, not encoded yet.
    """

    index: int
    request: Request
    encoded: Encoded
    others: tuple[Request, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One row of the ``requests`` report (schemas/requests.schema.json)."""
        dispatch, body = self.request.dispatch, self.encoded.body
        return {
            "index": self.index,
            "kind": dispatch.kind,
            "turn": dispatch.turn,
            "step": dispatch.step,
            "attempt": dispatch.attempt,
            "prefix_seq": dispatch.prefix_seq,
            "provider": self.request.provider,
            "model": self.request.model,
            "protocol": self.encoded.protocol or None,
            "wire": dispatch.wire.to_json(),
            "outcome": dispatch.outcome,
            "retry_of": dispatch.retry_of,
            "recomputed": dispatch.recomputed,
            "settled_seq": dispatch.settled_seq,
            "claim": self.encoded.claim,
            "why": list(self.encoded.why),
            "unlogged": [used.to_json() for used in self.encoded.unlogged],
            "body": None if body is None else {"size": body.size_bytes, "sha256": body.sha256()},
        }


@dataclass(slots=True)
class Replay:
    """A pass over a log that gives its requests in order; complete when it has been exhausted.

    Args:
        log: the log.
        deployment: what the log cannot know.
        through: last seq to read, None for the whole log.

    Attributes:
        reader: the event reader with counts, digest, fence.
        findings: of the log, ready after the pass.
    """

    log: SessionLog
    deployment: Deployment
    through: int | None = None
    findings: list[Finding] = field(default_factory=list)
    reader: EventReader = field(init=False)
    encoder: SessionEncoder = field(init=False)

    def __post_init__(self) -> None:
        self.reader = self.log.events(self.through)
        self.encoder = SessionEncoder(self.deployment)

    def __iter__(self) -> Iterator[Rebuilt]:
        for index, prepared in enumerate(self._dispatches()):
            yield self._rebuild(index, prepared)
        self.findings = [*self.log.open_findings, *self.reader.findings, *self.findings]

    def _dispatches(self) -> Iterator[Prepared]:
        state = SessionState(self.log.version)
        scanner = DispatchScanner(self.log.version, self.log.own_from(), _retention(self.deployment))
        events = iter(self.reader)
        for event in events:
            yield from scanner.see(event, state)
            try:
                state.apply(event)
            except ProjectionError as error:
                where = self.log.where(seq=event.seq, line=event.line)
                self.findings.append(Finding(rules.PROJECTION, error.reason, where))
                break
        yield from scanner.finish(state)
        for _ in events:
            pass

    def _rebuild(self, index: int, prepared: Prepared) -> Rebuilt:
        requests = build_requests(prepared, self.log.session_header)
        fence = self.reader.fence_seq
        if fence is not None and prepared.dispatch.prefix_seq >= fence:
            why = f"an unknown required event at seq {fence} may change what the model sees"
            requests = (replace(requests[0], why_not=(why, *requests[0].why_not)),)
        return Rebuilt(index, requests[0], self.encoder.encode(requests[0]), requests[1:])
