"""What of a session's log left the machine inside requests (``dsh_session_log``).

A delivery marker proves an upload that the provider accepted, and gives its range; its bytes follow from the log. A
capture proves every upload it holds, also refused ones. Source: spec wire-deepseek 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from dsh_audit.capture.exchange import Exchange
from dsh_audit.deployment import DEFAULT_CHAT_URL, DEFAULT_MESSAGES_URL, Deployment
from dsh_audit.finding import Finding, Where
from dsh_audit.log.session_log import SessionLog
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.rules import uploads as rules
from dsh_audit.text import ecma
from dsh_audit.text.pointer import MalformedError, Member, scan_members
from dsh_audit.wire.extensions import Extensions, Span
from dsh_audit.wire.protocol import CHAT, MESSAGES
from dsh_audit.wire.session_log_field import FIELD

Proof = Literal["marker", "capture", "marker+capture"]
_URLS = {CHAT: DEFAULT_CHAT_URL, MESSAGES: DEFAULT_MESSAGES_URL}


@dataclass(frozen=True, slots=True)
class Upload:
    """One request that carried a part of the log.

    Args:
        session_id: the session.
        request: index of the request in its session; None when no dispatch explains the capture.
        kind: of the dispatch.
        turn, step: None for one-shot calls.
        captured: id of the exchange; None when only a marker proves the upload.
        generation: format version whose numbering the seqs have.
        first_seq, last_seq: of the events, both included.
        events: how many.
        resent: how many of them an earlier upload of the session held too; after uploads from an older
            generation, every migrated event counts.
        inherited: how many of them came from the parent session.
        size_bytes: of the field's value; None when the log lacks some of the events.
        host: where it went.
        host_source: ``capture``, ``deployment`` or ``default``.
        accepted: whether the provider answered with success; None when unknown.
        proof: what shows the upload.
        verified: whether the captured bytes are what the log gives; None without a capture.
    """

    session_id: str
    request: int | None
    kind: str | None
    turn: int | None
    step: int | None
    captured: str | None
    generation: int
    first_seq: int
    last_seq: int
    events: int
    resent: int
    inherited: int
    size_bytes: int | None
    host: str | None
    host_source: str
    accepted: bool | None
    proof: Proof
    verified: bool | None


@dataclass(frozen=True, slots=True)
class UploadsReport:
    """The result of the check.

    Args:
        logs: of the sessions.
        uploads: by session in the order of its requests; captures without a dispatch last.
        possible: session → indexes of requests that may have carried a part of the log, without proof.
        findings: sorted by the caller.
    """

    logs: tuple[SessionLog, ...]
    uploads: tuple[Upload, ...]
    possible: Mapping[str, tuple[int, ...]]
    findings: tuple[Finding, ...]

    SCHEMA: ClassVar = "dsh-audit/uploads/1"
    JSON: ClassVar = "schema=SCHEMA summary uploads possible=possible_requests findings"

    @property
    def summary(self) -> dict[str, Any]:
        """Totals; ``size_bytes`` counts the uploads whose size is known."""
        uploads = self.uploads
        return {
            "uploads": len(uploads),
            "accepted": sum(upload.accepted is True for upload in uploads),
            "refused": sum(upload.accepted is False for upload in uploads),
            "proven_by_capture": sum(upload.captured is not None for upload in uploads),
            "possible": sum(map(len, self.possible.values())),
            **({"under_other_id": self.under_other_id} if self.under_other_id else {}),
            "events": sum(upload.events for upload in uploads),
            "distinct_events": sum(upload.events - upload.resent for upload in uploads),
            "resent_events": sum(upload.resent for upload in uploads),
            "size_bytes": sum(upload.size_bytes or 0 for upload in uploads),
            "hosts": sorted({upload.host for upload in uploads if upload.host is not None}),
        }

    @property
    def under_other_id(self) -> int:
        """Uploads whose delivery markers name another session: what they held is not known."""
        found = (finding for finding in self.findings if finding.rule is rules.OTHER_ID)
        return sum(len(finding.details["requests"]) for finding in found)

    @property
    def possible_requests(self) -> list[dict[str, Any]]:
        """``possible`` as a list."""
        return [{"session_id": ident, "requests": list(indexes)} for ident, indexes in self.possible.items()]


def check_uploads(
    session_id: str,
    requests: Iterable[Rebuilt],
    deployment: Deployment,
    exchanges: Mapping[int, Sequence[Exchange]] | None = None,
    unexplained: Iterable[Exchange] = (),
    native_from: Mapping[int, int] | None = None,
) -> UploadsReport:
    """The uploads of one session.

    Args:
        session_id: the session.
        requests: all of its requests in order.
        deployment: for hosts, and what the extension fields need.
        exchanges: captured exchanges by index of the request; None when there is no capture.
        unexplained: captured exchanges of the session that no request explains.
        native_from: format version of a generation → seq of its first event that was not migrated.
    """
    session = _Session(session_id, deployment, native_from or {}, has_capture=exchanges is not None)
    for rebuilt in requests:
        session.take(rebuilt, (exchanges or {}).get(rebuilt.index, ()))
    for exchange in unexplained:
        session.take_unexplained(exchange)
    return session.report()


class _Session:
    def __init__(
        self, session_id: str, deployment: Deployment, native_from: Mapping[int, int], *, has_capture: bool
    ) -> None:
        self._session_id = session_id
        self._deployment = deployment
        self._has_capture = has_capture
        self._extensions: list[Extensions] = []
        self._logs: dict[int, SessionLog] = {}
        self._sent = _Sent(native_from)
        self._uploads: list[Upload] = []
        self._possible: list[int] = []
        self._used_markers: set[tuple[int, int | None]] = set()
        self._findings: list[Finding] = []
        self._foreign: dict[str, list[int]] = {}

    def take(self, rebuilt: Rebuilt, exchanges: Sequence[Exchange]) -> None:
        """Note the uploads of one request."""
        extensions = rebuilt.extensions
        if extensions not in self._extensions:
            self._extensions.append(extensions)
            self._logs[rebuilt.log.version] = rebuilt.log
        shown = [upload for exchange in exchanges for upload in self._captured(rebuilt, exchange, extensions)]
        if shown:
            self._uploads += shown
            return
        named = extensions.foreign_to(rebuilt.request)
        if named is not None:
            self._foreign.setdefault(named, []).append(rebuilt.index)
            return
        spans = extensions.spans(rebuilt.request)
        version = rebuilt.log.version
        span = next((span for span in spans if (version, span.marker_seq) not in self._used_markers), None)
        if span is None or rebuilt.encoded.protocol not in _URLS:
            return
        if span.marker_seq is not None:
            self._used_markers.add((version, span.marker_seq))
            self._uploads.append(self._proven(rebuilt, span, extensions))
        elif not exchanges:
            self._possible.append(rebuilt.index)

    def take_unexplained(self, exchange: Exchange) -> None:
        """Note an upload that no request of the log explains."""
        body = exchange.read_body() or b""
        sent = read_field(body)
        if sent is None:
            return
        upload = self._base(None, exchange, sent.version or 0, Span(sent.after, sent.through))
        upload = replace(upload, size_bytes=sent.size_bytes, accepted=_answered(exchange), verified=False)
        self._uploads.append(upload)

    def report(self) -> UploadsReport:
        """What was found."""
        is_expected = any(extensions.is_expected() for extensions in self._extensions)
        possible = {self._session_id: tuple(self._possible)} if self._possible and is_expected else {}
        findings = [*self._findings, *self._uncaptured(), *self._under_other_id()]
        return UploadsReport(tuple(self._logs.values()), tuple(self._uploads), possible, tuple(findings))

    def _under_other_id(self) -> Iterator[Finding]:
        for named, requests in self._foreign.items():
            count = "1 upload was" if len(requests) == 1 else f"{len(requests)} uploads were"
            message = f"{count} accepted under session {named}, whose delivery markers this log holds"
            where = Where(session=self._session_id, request=requests[0])
            yield Finding(rules.OTHER_ID, message, where, {"session": named, "requests": requests})

    def _captured(self, rebuilt: Rebuilt, exchange: Exchange, extensions: Extensions) -> Iterator[Upload]:
        body = exchange.read_body() or b""
        sent = read_field(body)
        if sent is None:
            return
        found = extensions.explain(rebuilt.request, sent.after, sent.through)
        span = found or Span(sent.after, sent.through)
        if found is not None and found.marker_seq is not None:
            self._used_markers.add((rebuilt.log.version, found.marker_seq))
        value = None if found is None else extensions.value(found)
        verified = body[sent.at : sent.at + sent.size_bytes] == value
        markers = extensions.markers(rebuilt.request)
        is_marked = any(marker.counts and marker.through == sent.through for marker in markers)
        upload = self._base(rebuilt, exchange, rebuilt.log.version, span)
        accepted = True if is_marked else _answered(exchange, rebuilt)
        upload = replace(upload, size_bytes=sent.size_bytes, accepted=accepted, verified=verified)
        if is_marked:
            upload = replace(upload, proof="marker+capture")
        if not verified:
            message = f"request {rebuilt.index}: the captured dsh_session_log"
            message += f" (seq {span.after + 1} to {span.through}) is not that of the log"
            where = replace(self._where(rebuilt), captured=exchange.id, at=sent.at)
            self._findings.append(Finding(rules.ALTERED, message, where))
        yield upload

    def _proven(self, rebuilt: Rebuilt, span: Span, extensions: Extensions) -> Upload:
        upload = self._base(rebuilt, None, rebuilt.log.version, span)
        return replace(upload, size_bytes=extensions.measure(span), accepted=True)

    def _base(self, rebuilt: Rebuilt | None, exchange: Exchange | None, version: int, span: Span) -> Upload:
        dispatch = None if rebuilt is None else rebuilt.request.dispatch
        host, source = self._host(rebuilt, exchange)
        count = max(span.through - span.after, 0)
        own_from = self._logs[version].own_from() if version in self._logs else 0
        return Upload(
            session_id=self._session_id,
            request=None if rebuilt is None else rebuilt.index,
            kind=None if dispatch is None else dispatch.kind,
            turn=None if dispatch is None else dispatch.turn,
            step=None if dispatch is None else dispatch.step,
            captured=None if exchange is None else exchange.id,
            generation=version,
            first_seq=span.after + 1,
            last_seq=span.through,
            events=count,
            resent=self._sent.add(version, span),
            inherited=min(max(own_from - span.after - 1, 0), count),
            size_bytes=None,
            host=host,
            host_source=source,
            accepted=None,
            proof="marker" if exchange is None else "capture",
            verified=None,
        )

    def _host(self, rebuilt: Rebuilt | None, exchange: Exchange | None) -> tuple[str | None, str]:
        if exchange is not None and exchange.host is not None:
            return exchange.host, "capture"
        if rebuilt is None:
            return None, "default"
        request, default = rebuilt.request, _URLS.get(rebuilt.encoded.protocol)
        used = self._deployment.model(request.provider, request.model, "base_url", default)
        return None if used.value is None else urlsplit(str(used.value)).netloc or None, used.source

    def _where(self, rebuilt: Rebuilt) -> Where:
        return replace(rebuilt.log.where(), request=rebuilt.index)

    def _uncaptured(self) -> Iterator[Finding]:
        missing = [upload.request for upload in self._uploads if upload.captured is None]
        if not self._has_capture or not missing:
            return
        shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        noun = "upload is" if len(missing) == 1 else "uploads are"
        message = f"{len(missing)} {noun} proven by markers only: requests {shown}"
        yield Finding(rules.UNCAPTURED, message, Where(session=self._session_id), {"requests": missing})


class _Sent:
    """Ranges uploaded so far, per generation, as disjoint intervals; in their order an addition is O(1)."""

    def __init__(self, native_from: Mapping[int, int]) -> None:
        self._native_from = native_from
        self._ranges: dict[int, list[tuple[int, int]]] = {}

    def add(self, version: int, span: Span) -> int:
        """Take a range; returns how many of its events were taken before."""
        if version not in self._ranges:
            migrated = self._native_from.get(version, 0) if self._ranges else 0
            self._ranges[version] = [(0, migrated - 1)] if migrated else []
        ranges = self._ranges[version]
        first, last, known = span.after + 1, span.through, 0
        if last < first:
            return 0
        later: list[tuple[int, int]] = []
        while ranges and ranges[-1][0] > last:
            later.append(ranges.pop())
        while ranges and ranges[-1][1] >= first:
            start, end = ranges.pop()
            known += min(end, span.through) - max(start, span.after + 1) + 1
            first, last = min(first, start), max(last, end)
        ranges.append((first, last))
        ranges.extend(reversed(later))
        return known


@dataclass(frozen=True, slots=True)
class SentField:
    """A captured ``dsh_session_log``.

    Args:
        at: offset of its value in the body.
        size_bytes: of the value.
        after, through: as it says.
        version: format version it says; None for 0.1.2.
    """

    at: int
    size_bytes: int
    after: int
    through: int
    version: int | None


def read_field(body: bytes) -> SentField | None:
    """The ``dsh_session_log`` of a captured body; None when there is none that can be read."""
    member = _find_member(body)
    if member is None:
        return None
    try:
        value = ecma.parse(body[member.value_start : member.end])
    except ecma.EcmaSyntaxError:
        return None
    after = value.get("afterSeq") if isinstance(value, dict) else None
    through = value.get("throughSeq") if isinstance(value, dict) else None
    if not isinstance(after, int) or not isinstance(through, int):
        return None
    version = value.get("sessionFormatVersion")
    size = member.end - member.value_start
    return SentField(member.value_start, size, after, through, version if isinstance(version, int) else None)


def _find_member(body: bytes) -> Member | None:
    if b'"' + FIELD.encode() + b'"' not in body:
        return None
    try:
        return next((m for m in scan_members(body, body.index(b"{") + 1) if m.name == FIELD), None)
    except (MalformedError, ValueError):
        return None


def _answered(exchange: Exchange, rebuilt: Rebuilt | None = None) -> bool | None:
    """Whether the provider accepted a request that left no marker."""
    if exchange.status is not None:
        return 200 <= exchange.status < 300
    failure = None if rebuilt is None else rebuilt.request.dispatch.failure
    status = failure.get("status") if isinstance(failure, dict) else None
    return False if isinstance(status, int) else None
