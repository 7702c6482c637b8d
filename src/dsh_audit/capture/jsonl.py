"""Request records in JSON: what local proxies, gateways and fetch patches write, one JSON object a line or one array.

Members are found by dotted paths (``request.headers``). Without ``fields`` the names in common use are tried
in order, so records of claude-tap, claude-trace, LiteLLM callbacks, gateway exports, web servers and most home-made
taps are read as they are. A body as a string is verbatim text, in base64 raw bytes, as an object parsed JSON. The
default shape is described by schemas/capture-jsonl.schema.json. Source: spec captures 3a and 3c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from dsh_audit.capture.access_log import parse_escaped
from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.exchange import Fidelity, split_url
from dsh_audit.capture.fields import FieldMap
from dsh_audit.capture.files import Source, parse_whole
from dsh_audit.capture.litellm import call_id_of, is_cut, without_added
from dsh_audit.capture.response import Response
from dsh_audit.capture.shapes import BadShapeError, http_headers_of, optional_int, time_of
from dsh_audit.capture.text import HeldBody, base64_body, text_body
from dsh_audit.errors import CaptureError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET, BudgetError

FORMAT = "jsonl"

_BOM = b"\xef\xbb\xbf"
_SHAPES: dict[str, set[str]] = {
    "claude-tap": {"turn", "upstream_base_url", "request"},
    "LiteLLM": {"proxy_server_request"},
    "Helicone": {"request_created_at", "request_body"},
    "an AI gateway": {"provider", "model", "path", "request"},
}
_ANSWER_MEMBERS = ("usage", "choices", "content", "output", "error")


def detect(path: Path, head: bytes) -> bool:
    """By the name, or a first byte that opens an object or a list."""
    names = {".jsonl", ".ndjson"}.intersection(path.suffixes)
    return bool(head) and (bool(names) or head.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["))


def read_jsonl(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read request records; plain JSONL line by line, a compressed file or an array held in memory once.

    Args:
        fields: field (``fields.DEFAULT_FIELDS``) → dotted path.

    Findings: ``capture/bad-record``, ``capture/torn-record``, ``capture/skipped-record``,
    ``capture/too-large``, ``capture/lossy-text`` and those of every importer.

    Raises:
        CaptureError: unreadable, or without any request record.
        UsageError: fields names something unknown.
    """
    source, findings, names = Source.of(path), Findings(str(path)), FieldMap.of(fields)
    values = _read_array(source)
    if values is not None:
        return read_values(path, values, names, findings, FORMAT)
    return _finish(path, RecordReader(names, findings), lambda reader: read_lines(reader, source, parse_line), FORMAT)


def read_values(path: Path, values: list[Json], fields: FieldMap, findings: Findings, name: str) -> CaptureArchive:
    """An archive of records that are in memory."""

    def take(reader: RecordReader) -> Iterator[Record]:
        for index, value in enumerate(values):
            record = reader.take(value, Entry(partial(_same, value), fields), f"record {index}")
            if record is not None:
                yield record

    return _finish(path, RecordReader(fields, findings), take, name)


def _same(value: Json) -> Json:
    return value


def _finish(
    path: Path, reader: RecordReader, take: Callable[[RecordReader], Iterator[Record]], name: str
) -> CaptureArchive:
    exchanges = [finish_exchange(record, order, reader.findings) for order, record in enumerate(take(reader))]
    reader.tell_skipped()
    if not exchanges and not reader.findings.all:
        raise CaptureError(
            f"{path}: no request records: nothing in it has a url and a body",
            hint="Say where they are: --capture-field url=a.b --capture-field body=c.d (also headers, method, …).",
        )
    return CaptureArchive(tuple(exchanges), reader.findings, name, reader.tool)


def _read_array(source: Source) -> list[Json] | None:
    """The items of a file that is one JSON array; None for any other."""
    with source.open() as file:
        if file.read(64).removeprefix(_BOM).lstrip()[:1] != b"[":
            return None
    data = source.read_all()
    try:
        value = parse_whole(source.path, data.removeprefix(_BOM).rstrip())
    except ecma.EcmaSyntaxError as error:
        if b"\n" in data[: error.at].strip():
            return None
        raise CaptureError(f"{source.path}: is not JSON at byte {error.at}") from None
    return value if isinstance(value, list) and value and all(isinstance(item, dict) for item in value) else None


def parse_line(text: bytes) -> Json:
    """The record of one line, also where a web server escaped it as its own text and not as JSON.

    Raises:
        EcmaSyntaxError: it is neither.
    """
    text = text.removeprefix(_BOM).rstrip()
    try:
        return ecma.parse(text)
    except BudgetError:
        raise
    except ecma.EcmaSyntaxError:
        value = parse_escaped(text)
        if value is None:
            raise
        return value


def read_archive(path: Path, parse: Callable[[bytes], Json], name: str) -> CaptureArchive:
    """A file of lines that a function turns into records with the members of JSONL."""
    reader, source = RecordReader(FieldMap.of(None), Findings(str(path))), Source.of(path)
    return _finish(path, reader, lambda reader: read_lines(reader, source, parse), name)


def read_lines(reader: RecordReader, source: Source, parse: Callable[[bytes], Json]) -> Iterator[Record]:
    """A record for each line that holds a request."""
    try:
        for line, at, text in _lines(source):
            if text is None:
                message = f"line {line}: longer than {BUDGET.get().document_bytes} bytes: {BUDGET.get().text}"
                reader.findings.add(rules.TOO_LARGE, message, line=line, at=at)
            elif text.strip():
                entry = Entry(partial(_read_again, source, at, len(text), parse), reader.fields)
                record = _parse_record(reader, parse, entry, text, line, at)
                if record is not None:
                    yield record
    except OSError as error:
        raise CaptureError(f"{source.path}: {error.strerror or 'cannot be read'}") from None


def _lines(source: Source) -> Iterator[tuple[int, int, bytes | None]]:
    """Line number, offset and bytes with their newline; None for a line over the limit."""
    with source.open() as file:
        line, at = 1, 0
        while text := file.readline(BUDGET.get().document_bytes):
            size, piece = len(text), text
            while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
                size += len(piece)
            yield line, at, text if size == len(text) else None
            line, at = line + 1, at + size


def _parse_record(
    reader: RecordReader, parse: Callable[[bytes], Json], entry: Entry, text: bytes, line: int, at: int
) -> Record | None:
    try:
        return reader.take(parse(text), entry, f"line {line}", line, at)
    except BudgetError as error:
        reader.findings.add(rules.TOO_LARGE, f"line {line}: {error}", line=line, at=at)
        return None
    except ecma.EcmaSyntaxError as error:
        if text.endswith(b"\n"):
            message = f"line {line}: not JSON at byte {error.at} of the line"
            reader.findings.add(rules.BAD_RECORD, message, line=line, at=at + error.at)
        else:
            message = f"line {line}: the last line is cut after {len(text)} bytes"
            reader.findings.add(rules.TORN_RECORD, message, line=line, at=at)
        return None


def _read_again(source: Source, at: int, size_bytes: int, parse: Callable[[bytes], Json]) -> Json:
    data = source.read_at(at, size_bytes)
    return None if data is None else parse(data)


@dataclass(frozen=True, slots=True)
class Entry:
    """One record, read and parsed again at each use."""

    read: Callable[[], Json]
    fields: FieldMap

    def load_body(self) -> bytes | None:
        """The body as stored."""
        try:
            return _parse_body(self.read(), self.fields)[0]()
        except ValueError:
            return None  # the file changed after it was read

    def load_value(self) -> Json:
        """A parsed body."""
        return self._find("body")

    def load_answer(self) -> Json:
        """The body of the answer, as stored."""
        return _find_answer(self.read, self.fields)

    def _find(self, name: str) -> Json:
        try:
            return without_added(self.fields.find(self.read(), name))[0]
        except ValueError:
            return None


@dataclass(slots=True)
class RecordReader:
    """Turns records into requests, and remembers what was left out."""

    fields: FieldMap
    findings: Findings
    count: int = 0
    skipped: list[str] = field(default_factory=list)
    first_line: int | None = None
    added: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    tool: str | None = None

    def take(
        self, value: Json, entry: Entry, place: str, line: int | None = None, at: int | None = None
    ) -> Record | None:
        """The request of a record; None, with the reason kept, when it holds none."""
        url, body = self.fields.find(value, "url"), self.fields.find(value, "body")
        method, call = self.fields.find(value, "method"), call_id_of(value, body)
        if not isinstance(url, str) or (method is None and body is None) or call in self.seen:
            self.skipped.append(place)
            self.first_line = self.first_line or line
            return None
        self.seen |= {call} if call is not None else set()
        try:
            record = self._request(value, entry, url, method)
        except BadShapeError as error:
            self.findings.add(rules.BAD_RECORD, f"{place}: {error}", line=line, at=at)
            return None
        self.count += 1
        self.tool = self.tool or _tool_of(value)
        return record

    def tell_skipped(self) -> None:
        """Findings about records, and members of bodies, that were left out."""
        if self.skipped and self.count:
            what = "record" if len(self.skipped) == 1 else "records"
            message = f"{len(self.skipped)} {what} left out, the first on {self.skipped[0]}"
            self.findings.add(rules.SKIPPED_RECORD, message, line=self.first_line)
        if self.added:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self.added.items()))
            self.findings.add(rules.ADDED_MEMBERS, f"left out of the bodies: {names}")

    def _request(self, value: Json, entry: Entry, url: str, method: Json) -> Record:
        name = f"{self.count:04d}"
        body, fidelity = _parse_body(value, self.fields)
        if body.is_lossy:
            self.findings.add(rules.LOSSY_TEXT, "the text holds an unpaired surrogate", captured=name)
        if not isinstance(method, str | None):
            raise BadShapeError("method must be a string")
        parsed, cut = None, None
        if fidelity is Fidelity.JSON:
            parsed, added = without_added(self.fields.find(value, "body"))
            cut = "the gateway cut long texts out of the body" if is_cut(parsed) else None
            for member in added:
                self.added[member] = self.added.get(member, 0) + 1
        host = self.fields.find(value, "host")
        return Record(
            id=name,
            method=method or "POST",
            url=_with_host(url, host),
            http_headers=http_headers_of(self.fields.find(value, "headers")),
            fidelity=fidelity,
            load=entry.load_body,
            load_value=entry.load_value if fidelity is Fidelity.JSON else None,
            status=optional_int(self.fields.find(value, "status")),
            no_body="the log holds no body" if self.fields.find(value, "body") in ("", "-") else None,
            cut=cut,
            response=self._response(value, entry),
            time_ms=time_of(self.fields.find(value, "time")),
        )

    def _response(self, value: Json, entry: Entry) -> Response | None:
        status, headers = self.fields.find(value, "status"), self.fields.find(value, "response_headers")
        body = _find_answer(lambda: value, self.fields)
        if body is None and headers is None:
            return None
        try:
            pairs = http_headers_of(headers)
        except BadShapeError:
            pairs = ()
        return Response(optional_int(status), pairs, load_value=None if body is None else entry.load_answer)


def _find_answer(read: Callable[[], Json], fields: FieldMap) -> Json:
    try:
        record = read()
    except ValueError:
        return None
    found = fields.find(record, "response_body")
    if found is not None:
        return found
    response = record.get("response") if isinstance(record, dict) else None
    return response if isinstance(response, dict) and any(name in response for name in _ANSWER_MEMBERS) else None


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
        held = text_body(body) if body and body != "-" else HeldBody(None)
        return held, Fidelity.PARTIAL if held.is_lossy else Fidelity.TEXT
    if isinstance(body, dict | list):
        return HeldBody(None), Fidelity.JSON
    raise BadShapeError("body must be a string, an object or a list")


def _tool_of(record: Json) -> str | None:
    """Who writes records of this shape."""
    names = set(record) if isinstance(record, dict) else set()
    return next((tool for tool, signs in _SHAPES.items() if signs <= names), None)


def _with_host(url: str, host: Json) -> str:
    if "//" not in url and not url.startswith("/"):
        url = f"/{url}"
    if not url.startswith("/") or not isinstance(host, str) or not host:
        return url
    netloc = split_url(host)[0] if "//" in host else host.partition("/")[0]
    return f"//{netloc}{url}" if netloc else url
