"""JSONL of request records: what local proxies and fetch patches write, one JSON object a line.

Members are found by dotted paths (``request.headers``). Without ``fields`` the names in common use are tried
in order, so records of claude-tap, claude-trace and most home-made taps are read as they are. A body as a
string is verbatim text, in base64 raw bytes, as an object parsed JSON. The default shape is described by
schemas/capture-jsonl.schema.json.
Source: spec captures 3a.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.coding import MAX_BODY_BYTES
from dsh_audit.capture.exchange import Fidelity, split_url
from dsh_audit.capture.fields import FieldMap
from dsh_audit.capture.files import Source
from dsh_audit.capture.shapes import BadShapeError, http_headers_of, optional_int
from dsh_audit.capture.text import HeldBody, base64_body, text_body
from dsh_audit.errors import CaptureError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma

FORMAT = "jsonl"
MAX_LINE_BYTES = MAX_BODY_BYTES

_BOM = b"\xef\xbb\xbf"


def detect(path: Path, head: bytes) -> bool:
    """By the name, or a first byte that opens an object."""
    names = {".jsonl", ".ndjson"}.intersection(path.suffixes)
    return bool(head) and (bool(names) or head.removeprefix(_BOM).lstrip()[:1] == b"{")


def read_jsonl(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read JSONL request records; a plain file line by line, a compressed one held in memory once.

    Args:
        fields: field (``fields.DEFAULT_FIELDS``) → dotted path.

    Findings: ``capture/bad-record``, ``capture/torn-record``, ``capture/skipped-record``,
    ``capture/too-large``, ``capture/lossy-text`` and those of every importer.

    Raises:
        CaptureError: unreadable, or without any request record.
        UsageError: fields names something unknown.
    """
    reader = _Reader(Source.of(path), FieldMap.of(fields), Findings(str(path)))
    exchanges = [
        finish_exchange(record, order, reader.findings) for order, record in enumerate(reader.records())
    ]
    if not exchanges and not reader.findings.all:
        raise CaptureError(
            f"{path}: no request records: no line has a url and a body",
            hint="Say where they are: --capture-field url=a.b --capture-field body=c.d (also headers, method, …).",
        )
    return CaptureArchive(tuple(exchanges), reader.findings, FORMAT)


def _lines(source: Source) -> Iterator[tuple[int, int, bytes | None]]:
    """Line number, offset and bytes with their newline; None for a line over the limit."""
    with source.open() as file:
        line, at = 1, 0
        while text := file.readline(MAX_LINE_BYTES):
            size, piece = len(text), text
            while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
                size += len(piece)
            yield line, at, text if size == len(text) else None
            line, at = line + 1, at + size


@dataclass(frozen=True, slots=True)
class _Place:
    """One line of a source, read and parsed again at each use."""

    source: Source
    at: int
    size_bytes: int
    fields: FieldMap

    def record(self) -> Json:
        with self.source.open() as file:
            file.seek(self.at)
            return ecma.parse(file.read(self.size_bytes).removeprefix(_BOM).rstrip())

    def load_body(self) -> bytes | None:
        try:
            return _parse_body(self.record(), self.fields)[0]()
        except (OSError, ValueError):
            return None  # the file changed after it was read

    def load_value(self) -> Json:
        try:
            return self.fields.find(self.record(), "body")
        except (OSError, ValueError):
            return None


@dataclass(slots=True)
class _Reader:
    """One pass over the lines."""

    source: Source
    fields: FieldMap
    findings: Findings
    count: int = 0
    skipped: int = 0
    first_skipped: int = 0

    def records(self) -> Iterator[Record]:
        try:
            for line, at, text in _lines(self.source):
                if text is None:
                    message = f"line {line}: longer than {MAX_LINE_BYTES} bytes"
                    self.findings.add(rules.TOO_LARGE, message, line=line, at=at)
                elif text.strip() and (record := self._record(line, at, text)) is not None:
                    self.count += 1
                    yield record
        except OSError as error:
            raise CaptureError(f"{self.source.path}: {error.strerror or 'cannot be read'}") from None
        if self.skipped and self.count:
            what = "record" if self.skipped == 1 else "records"
            message = f"{self.skipped} {what} left out, the first on line {self.first_skipped}"
            self.findings.add(rules.SKIPPED_RECORD, message, line=self.first_skipped)

    def _record(self, line: int, at: int, text: bytes) -> Record | None:
        try:
            value = ecma.parse(text.removeprefix(_BOM).rstrip())
        except ecma.EcmaSyntaxError as error:
            if text.endswith(b"\n"):
                message = f"line {line}: not JSON at byte {error.at} of the line"
                self.findings.add(rules.BAD_RECORD, message, line=line, at=at + error.at)
            else:
                message = f"line {line}: the last line is cut after {len(text)} bytes"
                self.findings.add(rules.TORN_RECORD, message, line=line, at=at)
            return None
        url, body = self.fields.find(value, "url"), self.fields.find(value, "body")
        method = self.fields.find(value, "method")
        if not isinstance(url, str) or (method is None and body is None):
            self.skipped, self.first_skipped = self.skipped + 1, self.first_skipped or line
            return None
        try:
            return self._request(value, _Place(self.source, at, len(text), self.fields), url, method)
        except BadShapeError as error:
            self.findings.add(rules.BAD_RECORD, f"line {line}: {error}", line=line, at=at)
            return None

    def _request(self, value: Json, place: _Place, url: str, method: Json) -> Record:
        name = f"{self.count:04d}"
        body, fidelity = _parse_body(value, self.fields)
        if body.is_lossy:
            self.findings.add(rules.LOSSY_TEXT, "the text holds an unpaired surrogate", captured=name)
        if not isinstance(method, str | None):
            raise BadShapeError("method must be a string")
        host = self.fields.find(value, "host")
        return Record(
            id=name,
            method=method or "POST",
            url=_with_host(url, host),
            http_headers=http_headers_of(self.fields.find(value, "headers")),
            fidelity=fidelity,
            load=place.load_body,
            load_value=place.load_value if fidelity is Fidelity.JSON else None,
            status=optional_int(self.fields.find(value, "status")),
        )


def _parse_body(record: Json, fields: FieldMap) -> tuple[HeldBody, Fidelity]:
    """The body as stored; for a parsed body nothing is held."""
    encoded = fields.find(record, "body_base64")
    if encoded is None and fields.find(record, "body_encoding") == "base64":
        encoded = fields.find(record, "body")
    if encoded is not None:
        if not isinstance(encoded, str):
            raise BadShapeError("a base64 body must be a string")
        return base64_body(encoded), Fidelity.RAW
    body = fields.find(record, "body")
    if body is None or isinstance(body, str):
        held = text_body(body) if body else HeldBody(None)
        return held, Fidelity.PARTIAL if held.is_lossy else Fidelity.TEXT
    if isinstance(body, dict | list):
        return HeldBody(None), Fidelity.JSON
    raise BadShapeError("body must be a string, an object or a list")


def _with_host(url: str, host: Json) -> str:
    if not url.startswith("/") or not isinstance(host, str) or not host:
        return url
    netloc = split_url(host)[0] if "//" in host else host.partition("/")[0]
    return f"//{netloc}{url}" if netloc else url
