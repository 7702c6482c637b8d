"""``.ctap.json``, what ``claude-tap export`` writes: one object whose records name repeated values by their digest.

Expanded they are the records of its JSONL. Bodies are parsed JSON. Source: claude-tap 0.1.146 ``compact_trace.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive, Findings
from dsh_audit.capture.fields import FieldMap
from dsh_audit.capture.files import parse_whole, read_whole
from dsh_audit.capture.jsonl import read_values
from dsh_audit.errors import CaptureError
from dsh_audit.events import Json
from dsh_audit.rules import capture as rules
from dsh_audit.text import ecma

FORMAT = "claude-tap"

_TRACE, _RECORD, _REF = (f"__claude_tap_{name}__" for name in ("compact_trace", "compact_record", "blob_ref"))


def detect(path: Path, head: bytes) -> bool:
    """The mark of a compact trace near the start."""
    return head.lstrip()[:1] == b"{" and _TRACE.encode() in head[:200]


def read_trace(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a compact trace, held in memory once; findings as of JSONL.

    Raises:
        CaptureError: unreadable, cut, of another version, or without any request.
    """
    data = read_whole(path)
    try:
        bundle = parse_whole(path, data)
    except ecma.EcmaSyntaxError as error:
        raise CaptureError(f"{path}: is cut or no JSON at byte {error.at}", hint="Export the trace again.") from None
    mark = bundle.get(_TRACE) if isinstance(bundle, dict) else None
    records, blobs = (bundle.get(name) if isinstance(bundle, dict) else None for name in ("records", "blobs"))
    if not isinstance(mark, dict) or mark.get("version") != 1:
        raise CaptureError(f"{path}: a trace of claude-tap of another version than 1")
    if not isinstance(records, list) or not isinstance(blobs, dict):
        raise CaptureError(f"{path}: records or blobs are missing")
    findings = Findings(str(path))
    values = []
    for index, record in enumerate(records):
        try:
            values.append(_expand(record, blobs))
        except (KeyError, IndexError, TypeError, ValueError):
            findings.add(rules.BAD_RECORD, f"record {index}: it names a value that is not in the file")
    return read_values(path, values, FieldMap.of(fields), findings, FORMAT)


def _expand(payload: Json, blobs: dict[str, Json]) -> Json:
    """The record with its references followed; only where the record says they stand."""
    if not isinstance(payload, dict) or _RECORD not in payload:
        return payload
    record = payload["record"]
    for ref in payload[_RECORD]["refs"]:
        *path, last = ref["path"].removeprefix("/").split("/")
        holder = record
        for name in path:
            holder = holder[_step(holder, name)]
        step = _step(holder, last)
        holder[step] = blobs[holder[step][_REF]["hash"]]["payload"]
    return record


def _step(holder: Json, name: str) -> str | int:
    return int(name) if isinstance(holder, list) else name.replace("~1", "/").replace("~0", "~")
