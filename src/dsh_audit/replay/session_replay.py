"""One session → its requests, rebuilt in one pass: events → folds → dispatches → requests → wire bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Protocol

from dsh_audit.deployment import Deployment, Used
from dsh_audit.dispatch.compaction_range import DEFAULT_RATIO, Retention
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

    def allows(self, after: int, through: int) -> bool:
        """Whether the log allows this request to have carried the events after one seq up to another."""
        return self.extensions.explain(self.request, after, through) is not None

    def extended(self, body: Body, captured: bytes | None = None) -> Extension:
        """A base body of this request with the extension fields that the log and the deployment give.

        Args:
            body: of ``encoded`` or of one of the others.
            captured: the body as captured; it decides what the log leaves open.
        """
        return self.extensions.extend(self.request, replace(self.encoded, body=body), captured)


class Observer(Protocol):
    """What looks on while a session is folded."""

    def event(self, log: SessionLog, event: Event) -> None:
        """The next event of a generation, a run of chunks counting as one; told when it was folded."""

    def request(self, rebuilt: Rebuilt) -> None:
        """The next request, told before the first event that is no part of its prefix."""


@dataclass(slots=True)
class EventFold:
    """The one loop over the events of a log: events → folds → dispatches.

    Attributes:
        refused: what ended the fold, where the harness would refuse an event.
        state: the folds so far.
    """

    log: SessionLog
    reader: EventReader
    scanner: DispatchScanner
    refused: list[Finding] = field(default_factory=list)
    state: SessionState = field(init=False)

    def __post_init__(self) -> None:
        self.state = SessionState(self.log.version)

    def run(
        self,
        own_from: int,
        see: Callable[[Event], None],
        see_rest: Callable[[Event], None] | None = None,
        watch: Callable[[Iterator[Event]], Iterator[Event]] | None = None,
    ) -> Iterator[Prepared]:
        """The dispatches, each as soon as it is decided.

        Args:
            own_from: seq at which the session begins to be its own.
            see: told each event when it was folded.
            see_rest: told those behind a refused one.
            watch: gives the same events on, each before it is folded.
        """
        state, events = self.state, self.reader.runs(split_at=own_from)
        events = events if watch is None else watch(events)
        for event in events:
            yield from self.scanner.see(event, state)
            try:
                state.apply(event)
            except ProjectionError as error:
                where = self.log.where(seq=event.seq, line=event.line)
                self.refused.append(Finding(rules.PROJECTION, error.reason, where))
                if see_rest is not None:
                    see_rest(event)
                break
            see(event)
        yield from self.scanner.finish(state)
        for event in events:
            if see_rest is not None:
                see_rest(event)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the log."""
        return [*self.log.open_findings, *self.reader.findings, *self.refused]


@dataclass(slots=True)
class Replay:
    """A pass over a session that gives its requests in order; complete when it has been exhausted.

    Args:
        history: the session's generations.
        deployment: what the log cannot know.
        through: last seq of the current generation to read, None for all.
        assumed: values to use where the deployment is silent, proven by a capture.
        observers: told each event, after the requests whose prefix it is no part of.

    Attributes:
        reader: the event reader of the current generation with counts, digest, fence.
        findings: of all logs, ready after the pass.
    """

    history: SessionHistory
    deployment: Deployment
    through: int | None = None
    assumed: tuple[Used, ...] = ()
    observers: tuple[Observer, ...] = ()
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
            for prepared in self._dispatches(generation, extensions):
                yield self._rebuild(index, prepared, generation, extensions)
                extensions.release(prepared.dispatch.prefix_seq)
                index += 1
        self.findings = [*self.history.findings, *self.findings, *self._images.findings(self.history.current)]

    def _dispatches(self, generation: Generation, extensions: Extensions) -> Iterator[Prepared]:
        log = generation.log
        reader = self.reader if log is self.history.current else log.events()
        own_from = max(log.own_from(), generation.native_from)
        scanner = DispatchScanner(log.version, own_from, _retention(self.deployment, log.version), log.summaries)
        fold = EventFold(log, reader, scanner)

        def observe(event: Event) -> None:
            extensions.see(event)
            for observer in self.observers:
                observer.event(log, event)

        for prepared in fold.run(own_from, observe):
            yield _fenced(prepared, reader)
        self.findings += fold.findings

    def _rebuild(self, index: int, prepared: Prepared, generation: Generation, extensions: Extensions) -> Rebuilt:
        log = generation.log
        requests = build_requests(prepared, log.session_header)
        encoded = self.claimed(self.encoder.encode(requests[0]), prepared.dispatch, log)
        named = extensions.foreign_to(requests[0])
        if named is not None and encoded.claim == "bytes":
            why = f"its delivery marker names session {named}: the dsh_session_log that it carried is not in this log"
            encoded = replace(encoded, claim="logical", why=(why, *encoded.why))
        self._images.see(index, encoded)
        return Rebuilt(index, requests[0], encoded, log, extensions, requests[1:])

    def claimed(self, encoded: Encoded, dispatch: Dispatch, log: SessionLog) -> Encoded:
        """An encoded request with the claim that its generation allows."""
        until = next(one.migrated_until for one in self.history.generations if one.log is log)
        if dispatch.prefix_seq >= until or encoded.claim not in ("bytes", "json"):
            return encoded
        return replace(encoded, claim="logical", why=(AS_MIGRATED, *encoded.why))


def fold_log(
    history: SessionHistory, deployment: Deployment, *observers: Observer, through: int | None = None
) -> Replay:
    """Fold a session once; each observer is told its events and requests in the order of the log.

    Args:
        history: the session's generations.
        deployment: what the log cannot know.
        through: last seq of the current generation to read, None for all.

    Returns:
        the pass, with its findings and counts.
    """
    replay = Replay(history, deployment, through, observers=observers)
    for rebuilt in replay:
        for observer in observers:
            observer.request(rebuilt)
    return replay


def _fenced(prepared: Prepared, reader: EventReader) -> Prepared:
    """The dispatch with the reason why nothing is claimed, when an unknown required event precedes it."""
    fence = reader.fence_seq
    if fence is None or prepared.dispatch.prefix_seq < fence:
        return prepared
    return replace(prepared, why_not=f"an unknown required event at seq {fence} may change what the model sees")


def _retention(deployment: Deployment, format_version: int) -> Retention:
    names = ("retain_tokens", "retain_ratio", "max_tokens")
    tokens, ratio, limit = (deployment.look_up("compaction", name) for name in names)
    rules = deployment.release_rules(format_version)
    ratio = DEFAULT_RATIO if ratio is None else ratio
    return Retention(tokens, ratio, limit, rules.compaction_tokens, rules.reserves_output)
