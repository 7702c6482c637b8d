"""What an archive holds, and what can be claimed from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import ClassVar

from dsh_audit.capture.archive import CaptureArchive
from dsh_audit.capture.exchange import MODEL_KINDS, REDACTED, BodyDigest, Exchange, ExchangeKind, Fidelity
from dsh_audit.capture.response import ResponseFacts, read_facts
from dsh_audit.finding import Finding
from dsh_audit.record import dataclass

CLAIMS = {
    Fidelity.RAW: "identical",
    Fidelity.TEXT: "identical",
    Fidelity.DIGEST: "identical",
    Fidelity.JSON: "same-json",
    Fidelity.PARTIAL: "same-json",
}
"""The strongest verdict that a body of this fidelity allows."""


@dataclass(frozen=True, slots=True)
class ExchangeSummary:
    """One captured request.

    Args:
        claim: the strongest verdict that it allows: ``identical``, ``same-json``, ``not-checked``, ``other``.
        body: size and SHA-256 of what is compared; None without a body.
        encoded: the same of the bytes before their content coding was undone.
        masked: names of HTTP headers whose values were removed.
        response: None when the archive keeps nothing of the answer.
    """

    exchange: Exchange
    claim: str
    body: BodyDigest | None
    masked: tuple[str, ...]
    response: ResponseFacts | None

    JSON: ClassVar = (
        "id=exchange.id method=exchange.method path=exchange.url_path host=exchange.host kind=exchange.kind "
        "session_id=exchange.session_id status=exchange.status fidelity=exchange.fidelity claim "
        "truncation=exchange.truncation content_encoding=exchange.content_encoding body encoded=exchange.encoded "
        "masked response"
    )


@dataclass(frozen=True, slots=True)
class ArchiveSummary:
    """One archive.

    Args:
        source: as named by the user.
        tool: that wrote it, as far as it can be told.
        verified: whether the reader was tested on files that this tool wrote.
        keeps: what the format keeps of a body.
    """

    source: str
    format: str
    tool: str
    verified: bool
    keeps: str
    exchanges: tuple[ExchangeSummary, ...]
    findings: tuple[Finding, ...]

    JSON: ClassVar = "source format tool verified keeps counts exchanges"

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Requests by kind, session and strongest claim; answers by what they hold."""
        model = [item for item in self.exchanges if item.exchange.kind in MODEL_KINDS]
        answers = [item.response for item in model if item.response is not None]
        told = {
            "kept": len(answers),
            "streamed": sum(bool(answer.is_streamed) for answer in answers),
            "usage": sum(answer.usage is not None for answer in answers),
            "diagnostics": sum(answer.diagnostics is not None for answer in answers),
        }
        return {
            "kinds": _count(item.exchange.kind for item in self.exchanges),
            "sessions": _count(item.exchange.session_id or "-" for item in model),
            "claims": _count(item.claim for item in model),
            "responses": told,
        }


def inspect_archive(archive: CaptureArchive, source: str, tool: str, verified: bool, keeps: str) -> ArchiveSummary:
    """Look at every body and answer of an archive once."""
    exchanges = tuple(map(_inspect, archive.exchanges))
    return ArchiveSummary(source, archive.format, tool, verified, keeps, exchanges, archive.findings)


def _inspect(exchange: Exchange) -> ExchangeSummary:
    kind: ExchangeKind = exchange.kind
    body = exchange.read_body() if kind in MODEL_KINDS else None
    digest = exchange.digest if body is None else BodyDigest(len(body), sha256(body).hexdigest())
    claim = "other" if kind not in MODEL_KINDS else CLAIMS[exchange.fidelity]
    return ExchangeSummary(
        exchange=exchange,
        claim=claim if digest is not None or kind not in MODEL_KINDS else "not-checked",
        body=digest,
        masked=tuple(name for name, value in exchange.http_headers if value == REDACTED),
        response=None if exchange.response is None else read_facts(exchange.response),
    )


def _count(items: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(items).items()))
