"""One session → its requests, rebuilt in one pass: events → folds → dispatches → requests → wire bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from dsh_audit.deployment import Deployment, Used
from dsh_audit.dispatch.compaction_range import Retention
from dsh_audit.dispatch.model import Dispatch, Prepared
from dsh_audit.dispatch.scan import DispatchScanner
from dsh_audit.events import Event
from dsh_audit.finding import Finding
from dsh_audit.log.generations import Generation, SessionHistory
from dsh_audit.log.session_log import EventReader, SessionLog
from dsh_audit.projection.rejection import ProjectionError
from dsh_audit.projection.state import SessionState
from dsh_audit.record import dataclass
from dsh_audit.replay.image_problems import ImageProblems
from dsh_audit.request.neutral import Request, build_requests
from dsh_audit.rules import log as rules
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.body import Body
from dsh_audit.wire.extensions import Extension, Extensions
from dsh_audit.wire.session import SessionEncoder

AS_MIGRATED = "as migrated, not as sent: the log of the older format is not here"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One request of a session with its wire form.

    Args:
        index: from 0 in the order of the session.
        request: the neutral request, the best one where the log leaves a choice; its seqs are those of ``log``.
        encoded: its wire form.
        log: the generation that was in force when the request was sent.
        extensions: rebuilds the extension fields of that generation's requests.
        others: further requests that the log allows, best first, not encoded yet.
    """

    index: int
    request: Request
    encoded: Encoded
    log: SessionLog
    extensions: Extensions
    others: tuple[Request, ...] = ()

    def extended(self, body: Body, captured: bytes | None = None) -> Extension:
        """A base body of this request with the extension fields that the log and the deployment give.

        Args:
            body: of ``encoded`` or of one of the others.
            captured: the body as captured; it decides what the log leaves open.
        """
        return self.extensions.extend(self.request, replace(self.encoded, body=body), captured)


@dataclass(slots=True)
class Replay:
    """A pass over a session that gives its requests in order; complete when it has been exhausted.

    Args:
        history: the session's generations.
        deployment: what the log cannot know.
        through: last seq of the current generation to read, None for all.
        assumed: values to use where the deployment is silent, proven by a capture.
        observe: called with each log and event, after the requests whose prefix the event is no part of.

    Attributes:
        reader: the event reader of the current generation with counts, digest, fence.
        findings: of all logs, ready after the pass.
    """

    history: SessionHistory
    deployment: Deployment
    through: int | None = None
    assumed: tuple[Used, ...] = ()
    observe: Callable[[SessionLog, Event], None] | None = None
    findings: list[Finding] = field(default_factory=list)
    reader: EventReader = field(init=False)
    encoder: SessionEncoder = field(init=False)
    _images: ImageProblems = field(default_factory=ImageProblems)

    def __post_init__(self) -> None:
        self.reader = self.history.current.events(self.through)
        if self.deployment.attachments is None and self.history.attachments is not None:
            self.deployment = replace(self.deployment, attachments=self.history.attachments)

    def __iter__(self) -> Iterator[Rebuilt]:
        index = 0
        for generation in self.history.generations:
            self.encoder = SessionEncoder(self.deployment, self.assumed)
            extensions = Extensions(generation.log, self.deployment)
            for prepared in self._dispatches(generation):
                yield self._rebuild(index, prepared, generation, extensions)
                index += 1
        self.findings = [*self.history.findings, *self.findings, *self._images.findings(self.history.current)]

    def _dispatches(self, generation: Generation) -> Iterator[Prepared]:
        log = generation.log
        reader = self.reader if log is self.history.current else log.events()
        state = SessionState(log.version)
        own_from = max(log.own_from(), generation.native_from)
        scanner = DispatchScanner(log.version, own_from, _retention(self.deployment))
        refused: list[Finding] = []
        events = reader.runs(split_at=own_from)
        for event in events:
            for prepared in scanner.see(event, state):
                yield _fenced(prepared, reader)
            try:
                state.apply(event)
            except ProjectionError as error:
                refused.append(Finding(rules.PROJECTION, error.reason, log.where(seq=event.seq, line=event.line)))
                break
            if self.observe is not None:
                self.observe(log, event)
        for prepared in scanner.finish(state):
            yield _fenced(prepared, reader)
        for _ in events:
            pass
        self.findings += [*log.open_findings, *reader.findings, *refused]

    def _rebuild(self, index: int, prepared: Prepared, generation: Generation, extensions: Extensions) -> Rebuilt:
        log = generation.log
        requests = build_requests(prepared, log.session_header)
        encoded = self.claimed(self.encoder.encode(requests[0]), prepared.dispatch, log)
        self._images.see(index, encoded)
        return Rebuilt(index, requests[0], encoded, log, extensions, requests[1:])

    def claimed(self, encoded: Encoded, dispatch: Dispatch, log: SessionLog) -> Encoded:
        """An encoded request with the claim that its generation allows."""
        until = next(one.migrated_until for one in self.history.generations if one.log is log)
        if dispatch.prefix_seq >= until or encoded.claim not in ("bytes", "json"):
            return encoded
        return replace(encoded, claim="logical", why=(AS_MIGRATED, *encoded.why))


def _fenced(prepared: Prepared, reader: EventReader) -> Prepared:
    """The dispatch with the reason why nothing is claimed, when an unknown required event precedes it."""
    fence = reader.fence_seq
    if fence is None or prepared.dispatch.prefix_seq < fence:
        return prepared
    return replace(prepared, why_not=f"an unknown required event at seq {fence} may change what the model sees")


def _retention(deployment: Deployment) -> Retention:
    tokens, ratio = (deployment.look_up("compaction", key) for key in ("retain_tokens", "retain_ratio"))
    return Retention(tokens) if ratio is None else Retention(tokens, ratio)
