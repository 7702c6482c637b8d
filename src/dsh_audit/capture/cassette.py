"""Cassettes of vcrpy and pytest-recording, YAML or JSON: what other clients sent; the harness itself is not seen.

A text body is the bytes as UTF-8, a ``!!binary`` one the bytes themselves. YAML needs PyYAML (the extra ``cassettes``)
and is read by its safe loader. Source: spec captures 3c, vcrpy 9.4.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsh_audit.capture.archive import CaptureArchive, Findings, Record, finish_exchange
from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.capture.files import parse_whole, read_whole
from dsh_audit.capture.response import Response
from dsh_audit.capture.shapes import BadShapeError, http_headers_of, optional_int, required_text
from dsh_audit.capture.text import HeldBody, base64_body, text_body
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma

FORMAT = "vcr"
MAX_YAML_BYTES = 1 << 27

_YAML = re.compile(rb"(?:---\s*\n|#[^\n]*\n)*(?:interactions:|version: 1\s*\ninteractions:)")
_JSON = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"interactions"\s*:\s*\[')


def detect(path: Path, head: bytes) -> bool:
    """A first member ``interactions``."""
    return _YAML.match(head) is not None or _JSON.match(head) is not None


def read_cassette(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a cassette, held in memory once.

    Findings: ``capture/bad-record`` and those of every importer.

    Raises:
        CaptureError: unreadable, cut, or YAML without PyYAML.
        UsageError: fields were given, which a cassette does not have.
    """
    if fields:
        raise UsageError("--capture-field applies to JSONL captures only")
    data = read_whole(path)
    cassette = _parse_json(path, data) if data.lstrip()[:1] == b"{" else _parse_yaml(path, data)
    items = cassette.get("interactions") if isinstance(cassette, dict) else None
    if not isinstance(items, list):
        raise CaptureError(f"{path}: no cassette: interactions is not a list")
    findings = Findings(str(path))
    exchanges: list[Exchange] = []
    for index, item in enumerate(items):
        try:
            exchanges.append(finish_exchange(_parse_interaction(item, f"{index:04d}"), len(exchanges), findings))
        except BadShapeError as error:
            findings.add(rules.BAD_RECORD, f"interaction {index}: {error}")
    return CaptureArchive(tuple(exchanges), findings, FORMAT)


def _parse_json(path: Path, data: bytes) -> Any:
    try:
        return parse_whole(path, data)
    except ecma.EcmaSyntaxError as error:
        raise CaptureError(f"{path}: is cut or no JSON at byte {error.at}") from None


def _parse_yaml(path: Path, data: bytes) -> Any:
    if len(data) > MAX_YAML_BYTES:
        raise CaptureError(f"{path}: more than {MAX_YAML_BYTES} bytes of YAML", hint="Record with the JSON serialiser.")
    try:
        import yaml
    except ImportError:
        hint = "pip install 'dsh-audit[cassettes]', or record with serializer='json'."
        raise CaptureError(f"{path}: a YAML cassette needs PyYAML", hint=hint) from None
    try:
        return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        raise CaptureError(f"{path}: is cut or no YAML{where}") from None
    except (RecursionError, ValueError):
        raise CaptureError(f"{path}: is no YAML of a cassette") from None


def _parse_interaction(item: Any, name: str) -> Record:
    request, response = (item.get(side) if isinstance(item, dict) else None for side in ("request", "response"))
    if not isinstance(request, dict):
        raise BadShapeError("request must be an object")
    body, fidelity = _parse_body(request.get("body"))
    answer = _parse_response(response) if isinstance(response, dict) else None
    return Record(
        id=name,
        method=required_text(request, "method"),
        url=required_text(request, "uri"),
        http_headers=http_headers_of(request.get("headers")),
        fidelity=fidelity,
        load=body,
        status=None if answer is None else answer.status,
        response=answer,
    )


def _parse_body(body: Any) -> tuple[HeldBody, Fidelity]:
    if isinstance(body, dict):
        body = base64_body(body["base64_string"]).data if "base64_string" in body else body.get("string")
    if isinstance(body, bytes):
        return HeldBody(body or None), Fidelity.RAW
    if body is not None and not isinstance(body, str):
        raise BadShapeError("body must be text or binary")
    held = text_body(body) if body else HeldBody(None)
    return held, Fidelity.PARTIAL if held.is_lossy else Fidelity.TEXT


def _parse_response(response: dict[str, Any]) -> Response:
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else response.get("status_code", status)
    body = response["content"] if "content" in response else response.get("body")
    return Response(optional_int(code), http_headers_of(response.get("headers")), load_body=_parse_body(body)[0])
