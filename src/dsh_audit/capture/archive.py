"""What an importer returns, and the step from a stored record to an exchange that all importers share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from dsh_audit.capture.coding import ContentCodingError, decode_content, sniff_coding
from dsh_audit.capture.exchange import (
    MODEL_KINDS,
    BodyDigest,
    Exchange,
    Fidelity,
    TextCheck,
    redact_http_headers,
    split_url,
    weakest,
)
from dsh_audit.capture.response import Response
from dsh_audit.events import Json
from dsh_audit.finding import Finding, Rule, Where
from dsh_audit.record import dataclass
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma


@dataclass(frozen=True, slots=True)
class CaptureArchive:
    """The requests of one capture.

    Args:
        exchanges: in order of receipt.
        collected: what is wrong with the archive, as far as it was read.
        format: name of the importer.
        tool: that wrote it, where the archive says so.
    """

    exchanges: tuple[Exchange, ...]
    collected: Findings
    format: str
    tool: str | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the archive; reads those bodies that nobody has looked at yet."""
        for exchange in self.exchanges:
            if exchange.text_check is not None and exchange.text_check.is_due:
                body = exchange.read_body()
                if body is not None:
                    exchange.text_check.run(body)
        return tuple(self.collected.all)

    @property
    def fidelity(self) -> Fidelity:
        """The weakest fidelity among the model requests; RAW when there are none."""
        return weakest(exchange.fidelity for exchange in self.exchanges if exchange.kind in MODEL_KINDS)


@dataclass(frozen=True, slots=True)
class Record:
    """One request as an archive stores it, secrets included; lives only inside an importer.

    Args:
        url: URL or bare path.
        fidelity: that the format gives to an undamaged body.
        load: reads the body as stored, content coding not undone; None when there is none.
        load_value: for JSON fidelity, reads the parsed body.
        sent_bytes: length of the sent body, where the archive says it other than by content-length.
        digest: of a body that was left out on purpose.
        peek: size and first bytes of the stored body without reading it; None when it has to be read.
        needs_length: the format may alter bodies silently; only a known length proves that it did not.
        no_body: why there is none, where the format says so.
        cut: why the body is not whole, where the format says so.
        response: as stored, secrets included.
        time_ms: when it was sent, or answered where only that is known.
    """

    id: str
    method: str
    url: str
    http_headers: tuple[tuple[str, str], ...]
    fidelity: Fidelity
    load: Callable[[], bytes | None]
    load_value: Callable[[], Json] | None = None
    status: int | None = None
    sent_bytes: int | None = None
    needs_length: bool = False
    digest: BodyDigest | None = None
    peek: Callable[[], tuple[int, bytes] | None] | None = None
    no_body: str | None = None
    cut: str | None = None
    response: Response | None = None
    time_ms: float | None = None


class Findings:
    """Collects the findings of one archive."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.all: list[Finding] = []

    def add(
        self,
        rule: Rule,
        message: str,
        *,
        captured: str | None = None,
        at: int | None = None,
        line: int | None = None,
    ) -> None:
        """Add a finding at a place of this archive."""
        prefix = f"{captured}: " if captured is not None else ""
        where = Where(source=self.source, captured=captured, at=at, line=line)
        self.all.append(Finding(rule, prefix + message, where))


def finish_exchange(record: Record, received_order: int, findings: Findings) -> Exchange:
    """Remove secrets and, for a model request, look at the body once.

    Findings: ``capture/no-body``, ``capture/encoded-body``, ``capture/undecodable-body``,
    ``capture/not-utf8``, ``capture/truncated-body``, ``capture/unknown-length``.
    """
    host, url_path = split_url(record.url)
    exchange = Exchange(
        id=record.id,
        method=record.method.upper(),
        url_path=url_path,
        host=host or next((value for name, value in record.http_headers if name.lower() == "host"), None),
        http_headers=redact_http_headers(record.http_headers),
        fidelity=record.fidelity,
        received_order=received_order,
        load_body=record.load if record.load_value is None else _Printed(record.load_value),
        load_value=record.load_value,
        status=record.status,
        archive=findings.source,
        time_ms=record.time_ms,
        digest=record.digest,
        response=None if record.response is None else _finish_response(record.response),
    )
    if exchange.kind in MODEL_KINDS and record.cut is not None:
        findings.add(rules.TRUNCATED_BODY, record.cut, captured=record.id)
        exchange = replace(exchange, fidelity=Fidelity.PARTIAL, truncation=record.cut)
    if exchange.kind not in MODEL_KINDS or record.load_value is not None:
        return exchange
    peeked = record.peek() if record.peek is not None else None
    if peeked is not None and _coding_to_undo(exchange, peeked[1]) is None:
        exchange = _check_undone(record, exchange, peeked[0], findings)
        return replace(exchange, text_check=TextCheck(partial(_not_text, record.id, findings)))
    data = record.load()
    if data is None and record.digest is not None:
        findings.add(rules.WITHHELD_BODY, f"{exchange.method} {url_path}: size and SHA-256 only", captured=record.id)
        return replace(exchange, fidelity=Fidelity.DIGEST)
    if data is None:
        reason = record.no_body or "no body was captured"
        findings.add(rules.NO_BODY, f"{exchange.method} {url_path} has no body: {reason}", captured=record.id)
        return replace(exchange, fidelity=Fidelity.PARTIAL, truncation=reason)
    return _check_body(record, exchange, data, findings)


def _finish_response(response: Response) -> Response:
    """Without secrets, its content coding undone when the body is read."""
    coding = next((value for name, value in response.http_headers if name.lower() == "content-encoding"), "")
    headers = redact_http_headers(response.http_headers)
    return replace(response, http_headers=headers, load_body=_Answer(response.load_body, coding.strip().lower()))


def _check_body(record: Record, exchange: Exchange, data: bytes, findings: Findings) -> Exchange:
    coding = _coding_to_undo(exchange, data)
    if coding is not None:
        exchange = _check_length(record, exchange, len(data), findings)
        encoded = BodyDigest(len(data), hashlib.sha256(data).hexdigest())
        try:
            data = decode_content(data, coding)
        except ContentCodingError as error:
            findings.add(rules.UNDECODABLE_BODY, str(error), captured=record.id)
            return replace(exchange, fidelity=Fidelity.PARTIAL, load_body=_nothing, truncation=str(error))
        findings.add(rules.ENCODED_BODY, f"content coding {coding} undone for comparison", captured=record.id)
        exchange = replace(exchange, load_body=_Decoded(record.load, coding), encoded=encoded)
    else:
        exchange = _check_undone(record, exchange, len(data), findings)
        if exchange.truncation is None and data[:1] == b"{" and not data.rstrip().endswith(b"}"):
            reason = f"the body is cut after {len(data)} bytes"
            findings.add(rules.TRUNCATED_BODY, reason, captured=record.id)
            exchange = replace(exchange, fidelity=Fidelity.PARTIAL, truncation=reason)
    TextCheck(partial(_not_text, record.id, findings)).run(data)
    return exchange


def _check_undone(record: Record, exchange: Exchange, size_bytes: int, findings: Findings) -> Exchange:
    if exchange.content_encoding is None:
        return _check_length(record, exchange, size_bytes, findings)
    message = f"content coding {exchange.content_encoding} was already undone by the capturing tool"
    findings.add(rules.ENCODED_BODY, message, captured=record.id)
    return exchange


def _not_text(ident: str, findings: Findings, at: int) -> None:
    findings.add(rules.NOT_UTF8, f"the body is not UTF-8 at byte {at}", captured=ident, at=at)


def _coding_to_undo(exchange: Exchange, data: bytes) -> str | None:
    if exchange.fidelity is not Fidelity.RAW or data[:1] in (b"{", b""):
        return None
    return exchange.content_encoding or sniff_coding(data)


def _check_length(record: Record, exchange: Exchange, size_bytes: int, findings: Findings) -> Exchange:
    sent = record.sent_bytes if record.sent_bytes is not None else _content_length(exchange)
    if sent is None and record.needs_length:
        reason = "neither bodySize nor content-length is known"
        findings.add(rules.UNKNOWN_LENGTH, reason, captured=record.id)
    elif sent is not None and sent != size_bytes:
        reason = f"the body has {size_bytes} bytes, {sent} were sent"
        findings.add(rules.TRUNCATED_BODY, reason, captured=record.id)
    else:
        return exchange
    return replace(exchange, fidelity=Fidelity.PARTIAL, truncation=reason)


def _content_length(exchange: Exchange) -> int | None:
    value = (exchange.http_header("content-length") or "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def _nothing() -> bytes | None:
    return None


@dataclass(frozen=True, slots=True)
class _Decoded:
    load: Callable[[], bytes | None]
    coding: str

    def __call__(self) -> bytes | None:
        data = self.load()
        try:
            return None if data is None else decode_content(data, self.coding)
        except ContentCodingError:
            return None  # the file changed after it was checked


@dataclass(frozen=True, slots=True)
class _Answer:
    """The body of a response; archives keep it encoded or decoded, whatever its header says."""

    load: Callable[[], bytes | None]
    coding: str

    def __call__(self) -> bytes | None:
        data = self.load()
        if not data or not self.coding or data.lstrip()[:1] in (b"{", b"d", b"e", b":"):
            return data
        try:
            return decode_content(data, self.coding)
        except ContentCodingError:
            return None


@dataclass(frozen=True, slots=True)
class _Printed:
    load_value: Callable[[], Json]

    def __call__(self) -> bytes | None:
        return ecma.stringify(self.load_value())


def parsed_bodies_finding(exchanges: Iterable[Exchange], source: str) -> tuple[Finding, ...]:
    """One ``capture/parsed-bodies`` finding when any model request has JSON fidelity."""
    count = sum(1 for item in exchanges if item.fidelity is Fidelity.JSON and item.kind in MODEL_KINDS)
    if not count:
        return ()
    bodies = "body was" if count == 1 else "bodies were"
    return (Finding(rules.PARSED_BODIES, f"{count} {bodies} stored as parsed JSON", Where(source=source)),)
