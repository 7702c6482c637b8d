"""Capture archives → exchanges. A format is one module and one line in ``IMPORTERS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dsh_audit.capture import access_log, bundle, cassette, claude_tap, har, jsonl, mitmproxy
from dsh_audit.capture.archive import CaptureArchive, parsed_bodies_finding
from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.capture.files import read_head
from dsh_audit.errors import CaptureError
from dsh_audit.record import dataclass

__all__ = ["IMPORTERS", "CaptureArchive", "Exchange", "Fidelity", "Importer", "read_capture"]


@dataclass(frozen=True, slots=True)
class Importer:
    """One capture format.

    Args:
        format: its name in reports.
        detect: (path, first bytes, uncompressed; empty for a directory) → whether the path is of this format.
        read: (path, field paths) → archive; raises CaptureError when it cannot be read at all.
    """

    format: str
    detect: Callable[[Path, bytes], bool]
    read: Callable[[Path, Mapping[str, str] | None], CaptureArchive]


IMPORTERS: tuple[Importer, ...] = (
    Importer(bundle.FORMAT, bundle.detect, bundle.read_bundle),
    Importer(mitmproxy.FORMAT, mitmproxy.detect, mitmproxy.read_flows),
    Importer(har.FORMAT, har.detect, har.read_har),
    Importer(claude_tap.FORMAT, claude_tap.detect, claude_tap.read_trace),
    Importer(cassette.FORMAT, cassette.detect, cassette.read_cassette),
    Importer(access_log.FORMAT, access_log.detect, access_log.read_access_log),
    Importer(jsonl.FORMAT, jsonl.detect, jsonl.read_jsonl),
)
"""In the order they are asked."""


def read_capture(path: Path, *, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read a capture of any known format.

    Args:
        path: a capture bundle directory, HAR file or JSONL file; the files may be gzip or zstd.
        fields: for JSONL, field name → dotted path (``fields.DEFAULT_FIELDS`` has the names).

    Raises:
        CaptureError: missing, unreadable, damaged as a whole, or of an unknown format.
        UsageError: fields that do not exist, or fields for another format than JSONL.
    """
    head = read_head(path)
    for importer in IMPORTERS:
        if importer.detect(path, head):
            archive = importer.read(path, fields)
            archive.collected.all += parsed_bodies_finding(archive.exchanges, str(path))
            return archive
    raise CaptureError(
        f"{path}: {'empty file' if not head else 'not a capture format that is known'}",
        hint="Give a directory of NNNN.body and NNNN.meta.json, a HAR 1.2 file or JSONL of request records.",
    )
