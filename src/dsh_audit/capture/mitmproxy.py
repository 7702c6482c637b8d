"""mitmproxy flow files, as ``mitmdump -w`` writes them: request bodies are the bytes as sent.

One tagged netstring a flow. Read by their fields: format 21 (mitmproxy 11 and 12), 17 (8.1) and what keeps method,
path, headers and content of ``request`` as they do. A flow is written when its answer ends; the order is that of the
requests. A content of null is a body that was not kept. Source: spec captures 3c, mitmproxy ``io/compat.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.exchange import Fidelity
from dsh_audit.capture.files import Source
from dsh_audit.capture.response import Response
from dsh_audit.capture.shapes import BadShapeError
from dsh_audit.capture.tnetstring import (
    MAX_SIZE_DIGITS,
    Place,
    TnetstringError,
    Value,
    parse_size,
    parse_tnetstring,
)
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.record import dataclass
from dsh_audit.rules import capture as rules
from dsh_audit.text.budget import BUDGET

FORMAT = "mitmproxy"

_HEAD = re.compile(rb"[1-9]\d{0,11}:[1-9]\d?:[a-z_]{1,40}[;,]")


def detect(path: Path, head: bytes) -> bool:
    """A size, and a dictionary's first key."""
    return _HEAD.match(head) is not None


def read_flows(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a flow file; bodies stay on disk unless it is compressed.

    Findings: ``capture/bad-record``, ``capture/torn-record``, ``capture/too-large``, ``capture/skipped-record`` and
    those of every importer.

    Raises:
        CaptureError: unreadable, or without a whole flow.
        UsageError: fields were given, which a flow file does not have.
    """
    if fields:
        raise UsageError("--capture-field applies to JSONL captures only")
    reader = _Reader(Source.of(path), Findings(str(path)))
    try:
        records = list(reader.records())
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or 'cannot be read'}") from None
    if not records and not reader.findings.all:
        raise CaptureError(f"{path}: no flow of mitmproxy is in it")
    records.sort(key=lambda item: item[0])
    exchanges = [finish_exchange(record, order, reader.findings) for order, (_, record) in enumerate(records)]
    return CaptureArchive(tuple(exchanges), reader.findings, FORMAT)


@dataclass(slots=True)
class _Reader:
    """One pass over the flows."""

    source: Source
    findings: Findings
    skipped: list[int] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def records(self) -> Iterator[tuple[float, Record]]:
        """Start time and record of each HTTP flow."""
        for index, (at, data) in enumerate(self._flows()):
            if data is None:
                self.findings.add(rules.TOO_LARGE, f"flow {index}: larger than {BUDGET.get().text}", at=at)
                continue
            try:
                flow, _end = parse_tnetstring(data)
                found = _Flow(self.source, at, data).record(flow, f"{index:04d}")
            except TnetstringError as error:
                self.findings.add(rules.BAD_RECORD, f"flow {index}: {error}", at=at + error.at)
            except BadShapeError as error:
                self.findings.add(rules.BAD_RECORD, f"flow {index}: {error}", at=at)
            else:
                if found is None or self._is_repeated(flow):
                    self.skipped.append(index)
                else:
                    yield found
        if self.skipped:
            what = "flow is" if len(self.skipped) == 1 else "flows are"
            message = f"{len(self.skipped)} {what} no HTTP or there twice, the first is flow {self.skipped[0]}"
            self.findings.add(rules.SKIPPED_RECORD, message)

    def _is_repeated(self, flow: Value) -> bool:
        """A flow that was saved twice has one id."""
        ident = flow.get("id") if isinstance(flow, dict) else None
        if not isinstance(ident, str):
            return False
        is_known = ident in self.seen
        self.seen.add(ident)
        return is_known

    def _flows(self) -> Iterator[tuple[int, bytes | None]]:
        """Offset and bytes of each flow; None for one over the limit."""
        with self.source.open() as file:
            at = 0
            while head := file.read(MAX_SIZE_DIGITS + 1):
                try:
                    size, start = parse_size(head, 0, len(head))
                except TnetstringError:
                    if not at:
                        raise CaptureError(f"{self.source.path}: no flow of mitmproxy starts in it") from None
                    self.findings.add(rules.BAD_RECORD, f"no flow starts at byte {at}", at=at)
                    return
                total = start + size + 1
                file.seek(at)
                data = file.read(total) if total <= BUDGET.get().body_bytes else None
                if data is None:
                    file.seek(at + total)
                elif len(data) < total:
                    message = f"the last flow is cut after {len(data)} of {total} bytes"
                    if not at:
                        raise CaptureError(f"{self.source.path}: {message}, there is no other")
                    self.findings.add(rules.TORN_RECORD, message, at=at)
                    return
                yield at, data
                at += total


@dataclass(frozen=True, slots=True)
class _Flow:
    """One flow: its bytes, and where they stand in the file."""

    source: Source
    at: int
    data: bytes

    def record(self, flow: Value, name: str) -> tuple[float, Record] | None:
        if not isinstance(flow, dict):
            raise BadShapeError("a flow must be a dictionary")
        request, response = flow.get("request"), flow.get("response")
        if request is None:
            return None
        if not isinstance(request, dict):
            raise BadShapeError("request must be a dictionary")
        content = request.get("content")
        body = content if isinstance(content, Place) else None
        sent_at = request.get("timestamp_start")
        answer = self._response(response) if isinstance(response, dict) else None
        record = Record(
            id=name,
            method=self._text(request, "method"),
            url=self._url(request),
            http_headers=self._http_headers(request),
            fidelity=Fidelity.RAW,
            load=self._load(body),
            peek=None if body is None else lambda: (body.size_bytes, start),
            status=None if answer is None else answer.status,
            no_body="mitmproxy kept no body: it was streamed",
            response=answer,
            time_ms=float(sent_at) * 1000 if isinstance(sent_at, int | float) else None,
        )
        start = b"" if body is None else body.of(self.data[: body.at + 4])
        return float(sent_at) if isinstance(sent_at, int | float) else 0.0, record

    def _load(self, body: Place | None) -> _Stored:
        return _Stored(self.source, 0, -1) if body is None else _Stored(self.source, self.at + body.at, body.size_bytes)

    def _response(self, response: dict[str, Value]) -> Response:
        content, status = response.get("content"), response.get("status_code", response.get("code"))
        return Response(
            status=status if isinstance(status, int) else None,
            http_headers=self._http_headers(response),
            load_body=self._load(content if isinstance(content, Place) else None),
        )

    def _string(self, value: Value) -> str:
        return value.of(self.data).decode("utf-8", "replace") if isinstance(value, Place) else str(value or "")

    def _text(self, request: dict[str, Value], name: str) -> str:
        text = self._string(request.get(name))
        if not text:
            raise BadShapeError(f"request.{name} must be bytes")
        return text

    def _url(self, request: dict[str, Value]) -> str:
        path, host, port = self._text(request, "path"), self._string(request.get("host")), request.get("port")
        if not path.startswith("/") or not host:
            return path
        host = f"[{host}]" if ":" in host else host
        return f"//{host}:{port}{path}" if isinstance(port, int) else f"//{host}{path}"

    def _http_headers(self, message: dict[str, Value]) -> tuple[tuple[str, str], ...]:
        headers = message.get("headers")
        if not isinstance(headers, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in headers):
            raise BadShapeError("headers must be a list of pairs")
        return tuple((self._string(pair[0]), self._string(pair[1])) for pair in headers if isinstance(pair, list))


@dataclass(frozen=True, slots=True)
class _Stored:
    """A body in the file; a negative size stands for one that was not kept."""

    source: Source
    at: int
    size_bytes: int

    def __call__(self) -> bytes | None:
        return None if self.size_bytes < 0 else self.source.read_at(self.at, self.size_bytes)
