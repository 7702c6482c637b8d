"""One captured HTTP request: what every importer produces and every comparison reads.

Secrets are removed when the exchange is made, so no later stage can print one. Bodies are not held: an
exchange knows how to load its body again. Source: spec captures 3b, wire-deepseek 4.4 and 5.5, wire-pi-ai 11.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from dsh_audit.capture.response import HttpHeaders, Response
from dsh_audit.events import Json
from dsh_audit.record import dataclass

REDACTED = "<redacted>"

ExchangeKind: TypeAlias = Literal["chat-completions", "messages", "responses", "upload", "search", "other"]

MODEL_KINDS: frozenset[ExchangeKind] = frozenset({"chat-completions", "messages", "responses"})

_SECRET_HEADER = re.compile(
    r"auth(?!ority)|api[-_]?key|cookie|token|secret|password|credential|signature", re.IGNORECASE
)
_SECRET_QUERY = re.compile(r"auth|key|token|secret|sig|pass|credential|code|session|cookie", re.IGNORECASE)
_AFFINITY_HEADERS = ("session_id", "session-id", "x-session-id", "x-session-affinity", "x-client-request-id")
_SEARCH_AGENT = "deepseek-harness/0.0.1"


class Fidelity(StrEnum):
    """How much of the sent body a capture kept; each comparison claims no more than this allows."""

    RAW = "raw"
    """The bytes as sent."""
    TEXT = "text"
    """The verbatim text; bytes after encoding it as UTF-8."""
    JSON = "json"
    """The parsed value: white space, escapes, number spelling and duplicate keys are gone."""
    PARTIAL = "partial"
    """A cut body, or one that is known, or cannot be excluded, to be altered."""
    DIGEST = "digest"
    """Only the size and the SHA-256 of the bytes as sent."""


@dataclass(frozen=True, slots=True)
class BodyDigest:
    """What a digest-only capture keeps of a body: its length and the hex SHA-256 of its bytes."""

    size_bytes: int
    sha256: str


_WEAKEST_FIRST = (Fidelity.PARTIAL, Fidelity.DIGEST, Fidelity.JSON, Fidelity.TEXT, Fidelity.RAW)


def weakest(fidelities: Iterable[Fidelity]) -> Fidelity:
    """The lowest fidelity of several; RAW for none."""
    return min(fidelities, key=_WEAKEST_FIRST.index, default=Fidelity.RAW)


@dataclass(slots=True)
class TextCheck:
    """Whether a body is UTF-8: asked once, and only of bytes that no rebuilt body has shown to be text.

    Args:
        report: called with the offset of the first byte that is no text.
    """

    report: Callable[[int], None]
    is_due: bool = True

    def run(self, data: bytes, known: int = 0) -> None:
        """Check a body whose first ``known`` bytes are text; the second time nothing happens."""
        if self.is_due:
            self.is_due = False
            try:
                str(memoryview(data)[known:], "utf-8")
            except UnicodeDecodeError as error:
                self.report(known + error.start)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One captured request.

    Args:
        id: name inside the archive, e.g. ``0000``.
        method: upper case.
        url_path: path and query, secret query values replaced.
        host: host and port; None when not captured.
        http_headers: names as captured, in order, secret values replaced by ``<redacted>``.
        fidelity: of the body.
        received_order: place in order of receipt, from 0.
        load_body: reads the body, content coding undone; for JSON fidelity JavaScript's print of the value.
        load_value: for JSON fidelity only, reads the captured value.
        status: of the response, where known.
        truncation: why the body is partial, one line; None when it is not.
        digest: of a body that the archive does not hold.
        text_check: what to do with the body when it is read first; None when it was looked at already.
        archive: the name of the archive it is in.
        encoded: size and digest of the body before its content coding was undone.
        time_ms: of the request, where known.
        response: the answer, where the archive keeps any of it.
    """

    id: str
    method: str
    url_path: str
    host: str | None
    http_headers: HttpHeaders
    fidelity: Fidelity
    received_order: int
    load_body: Callable[[], bytes | None] = field(repr=False, compare=False)
    load_value: Callable[[], Json] | None = field(default=None, repr=False, compare=False)
    status: int | None = None
    truncation: str | None = None
    digest: BodyDigest | None = None
    text_check: TextCheck | None = field(default=None, repr=False, compare=False)
    archive: str = ""
    encoded: BodyDigest | None = None
    time_ms: float | None = None
    response: Response | None = field(default=None, repr=False, compare=False)

    def http_header(self, name: str) -> str | None:
        """The first value of a header, by lower-case name."""
        return next((value for key, value in self.http_headers if key.lower() == name), None)

    @property
    def session_id(self) -> str | None:
        """The session that the DeepSeek adapter names."""
        return self.http_header("x-deepseek-harness-session-id")

    @property
    def affinity_ids(self) -> tuple[str, ...]:
        """Values of the headers by which pi-ai routes may name the session; they may be something else."""
        return tuple(value for name in _AFFINITY_HEADERS if (value := self.http_header(name)))

    @property
    def is_compaction(self) -> bool:
        """Whether the adapter marked the request as a compaction."""
        return self.http_header("x-deepseek-harness-compact") == "1"

    @property
    def content_encoding(self) -> str | None:
        """The content coding the body was sent with; None for identity."""
        coding = (self.http_header("content-encoding") or "").strip().lower()
        return coding if coding not in ("", "identity") else None

    @property
    def kind(self) -> ExchangeKind:
        """What the request asks for."""
        return classify(self.method, self.url_path, self.http_header("user-agent"))

    def read_body(self) -> bytes | None:
        """The body; None when the archive holds none (or it can no longer be read)."""
        return self.load_body()


def classify(method: str, url_path: str, user_agent: str | None = None) -> ExchangeKind:
    """What a request asks for, by method, path and, for searches only, user agent.

    Source: spec dispatch 5.4, images 9, wire-deepseek 1.
    """
    path = url_path.partition("?")[0].rstrip("/")
    if path.endswith("/files") or "/files/" in path:
        return "upload"
    if method != "POST":
        return "other"
    if user_agent is not None and user_agent.split(" ")[0] == _SEARCH_AGENT:
        return "search"
    if path.endswith("/chat/completions"):
        return "chat-completions"
    if path.endswith("/messages"):
        return "messages"
    return "responses" if path.endswith("/responses") else "other"


def redact_http_headers(pairs: Iterable[tuple[str, str]]) -> HttpHeaders:
    """Headers with the values of all that may hold a credential replaced."""
    return tuple((name, REDACTED if _SECRET_HEADER.search(name) else value) for name, value in pairs)


def split_url(url: str) -> tuple[str | None, str]:
    """Host (without user info) and path with query (secret values replaced) of a URL or of a bare path."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2] or None
        path, query = parts.path, parts.query
    except ValueError:  # e.g. an unbalanced bracket in the host
        host, (path, _, query) = None, url.partition("?")
    if not query:
        return host, path
    return host, f"{path}?{'&'.join(map(_redact_query, query.split('&')))}"


def _redact_query(item: str) -> str:
    name, equals, _ = item.partition("=")
    return f"{name}={REDACTED}" if equals and _SECRET_QUERY.search(name) else item
