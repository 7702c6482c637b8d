"""HAR 1.2: text bodies from browsers, desktop proxies and mitmproxy's ``savehar``.

The whole file is held in memory once (as far as the budget admits). A HAR body is text; ``bodySize`` or
the content-length header proves that it encodes to as many bytes as were sent, otherwise it is partial.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.exchange import Fidelity
from dsh_audit.capture.files import parse_whole, read_whole
from dsh_audit.capture.response import Response
from dsh_audit.capture.shapes import BadShapeError, http_headers_of, optional_int, required_text, time_of
from dsh_audit.capture.text import HeldBody, base64_body, text_body
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.events import Json
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma

FORMAT = "har"

_LOG_MEMBER = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_BOM = b"\xef\xbb\xbf"


def detect(path: Path, head: bytes) -> bool:
    """By the name, or a first member ``log`` that is an object."""
    return bool(head) and (".har" in path.suffixes or _LOG_MEMBER.match(head.removeprefix(_BOM)) is not None)


def read_har(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a HAR file, plain or compressed.

    Findings: ``capture/bad-record``, ``capture/lossy-text`` and those of every importer.

    Raises:
        CaptureError: unreadable, cut, not JSON, or without ``log.entries``.
        UsageError: fields were given, which HAR does not have.
    """
    if fields:
        raise UsageError("--capture-field applies to JSONL captures only")
    findings = Findings(str(path))
    records: list[tuple[float | None, Record]] = []
    entries, tool = _parse_entries(path)
    for index, entry in enumerate(entries):
        name = f"{index:04d}"
        try:
            records.append((_started(entry), _parse_entry(entry, name, findings)))
        except BadShapeError as error:
            findings.add(rules.BAD_RECORD, f"entry {index}: {error}", captured=name)
    exchanges = [finish_exchange(record, order, findings) for order, record in enumerate(_by_time(records))]
    return CaptureArchive(tuple(exchanges), findings, FORMAT, tool)


def _parse_entries(path: Path) -> tuple[list[Json], str | None]:
    """The entries, and the tool that says it wrote them."""
    data = read_whole(path).removeprefix(_BOM)
    try:
        har = parse_whole(path, data)
    except ecma.EcmaSyntaxError as error:
        what = "is cut" if error.at >= len(data.rstrip()) else "is not JSON"
        raise CaptureError(f"{path}: {what} at byte {error.at}", hint="Export the HAR again.") from None
    log = har.get("log") if isinstance(har, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise CaptureError(f"{path}: no HAR: log.entries is not a list")
    creator = log.get("creator") if isinstance(log, dict) else None
    name, version = (creator.get(key) if isinstance(creator, dict) else None for key in ("name", "version"))
    return entries, f"{name} {version}"[:60] if isinstance(name, str) and isinstance(version, str) else None


def _by_time(records: list[tuple[float | None, Record]]) -> list[Record]:
    """Records by start time, file order where equal; in file order when any time is missing.

    Some tools write entries when the response ends, which is not the order of requests.
    """
    times = [time for time, _ in records if time is not None]
    if len(times) < len(records):
        return [record for _, record in records]
    order = sorted(range(len(records)), key=times.__getitem__)
    return [records[index][1] for index in order]


def _started(entry: Json) -> float | None:
    text = entry.get("startedDateTime") if isinstance(entry, dict) else None
    return time_of(text) if isinstance(text, str) else None


def _parse_entry(entry: Json, name: str, findings: Findings) -> Record:
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        raise BadShapeError("request must be an object")
    answer = _parse_response(entry.get("response"))
    headers = http_headers_of(request.get("headers"))
    body, fidelity = _parse_post_data(request.get("postData"))
    size = optional_int(request.get("bodySize"))
    is_announced = any(name.lower() == "content-length" for name, _ in headers)
    if body.is_lossy:
        findings.add(rules.LOSSY_TEXT, "the text holds an unpaired surrogate", captured=name)
    return Record(
        id=name,
        method=required_text(request, "method"),
        url=required_text(request, "url"),
        http_headers=headers,
        fidelity=fidelity,
        load=body,
        status=None if answer is None else answer.status,
        # Some tools give the length of the decoded text as bodySize, so what was announced goes first.
        sent_bytes=size if size and size > 0 and not is_announced else None,
        needs_length=not body.is_lossy,
        no_body="the HAR holds no text of the body",
        response=answer,
        time_ms=_started(entry),
    )


def _parse_response(response: Json) -> Response | None:
    if not isinstance(response, dict):
        return None
    content = response.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    status, load = optional_int(response.get("status")), HeldBody(None)
    try:
        if isinstance(content, dict) and isinstance(text, str) and text:
            load = base64_body(text) if content.get("encoding") == "base64" else text_body(text)
        return Response(status, http_headers_of(response.get("headers")), load_body=load)
    except BadShapeError:
        return Response(status)


def _parse_post_data(post_data: Json) -> tuple[HeldBody, Fidelity]:
    if post_data is None:
        return HeldBody(None), Fidelity.TEXT
    if not isinstance(post_data, dict):
        raise BadShapeError("postData must be an object")
    text = post_data.get("text")
    if text is not None and not isinstance(text, str):
        raise BadShapeError("postData.text must be a string")
    if not text:
        return HeldBody(None), Fidelity.TEXT
    if post_data.get("encoding") == "base64":
        return base64_body(text), Fidelity.RAW
    body = text_body(text)
    return body, Fidelity.PARTIAL if body.is_lossy else Fidelity.TEXT
