"""Capture archives → exchanges. A format is one module and one line in ``IMPORTERS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dsh_audit.capture import access_log, bundle, cassette, claude_tap, har, jsonl, mitmproxy
from dsh_audit.capture.archive import CaptureArchive, parsed_bodies_finding
from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.capture.files import read_head
from dsh_audit.capture.foreign import hint_at_log, name_foreign
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.record import dataclass

__all__ = ["IMPORTERS", "CaptureArchive", "Exchange", "Fidelity", "Importer", "read_capture"]


@dataclass(frozen=True, slots=True)
class Importer:
    """One capture format.

    Args:
        format: its name in reports and for ``--capture-format``.
        detect: (path, first bytes, uncompressed; empty for a directory) → whether the path is of this format.
        read: (path, field paths) → archive; raises CaptureError when it cannot be read at all.
        keeps: of a body, in words.
        tools: that wrote the files it was tested on.
        writer: the tool that writes this format, where there is one.
    """

    format: str
    detect: Callable[[Path, bytes], bool]
    read: Callable[[Path, Mapping[str, str] | None], CaptureArchive]
    keeps: str
    tools: tuple[str, ...] = ()
    writer: str | None = None


IMPORTERS: tuple[Importer, ...] = (
    Importer(bundle.FORMAT, bundle.detect, bundle.read_bundle, "the bytes as sent", ("a bundle",), "a bundle"),
    Importer(
        mitmproxy.FORMAT, mitmproxy.detect, mitmproxy.read_flows, "the bytes as sent", ("mitmproxy",), "mitmproxy"
    ),
    Importer(
        har.FORMAT,
        har.detect,
        har.read_har,
        "the text, decoded; the bytes where its length is the one sent",
        ("mitmproxy",),
    ),
    Importer(
        claude_tap.FORMAT,
        claude_tap.detect,
        claude_tap.read_trace,
        "the parsed JSON value",
        ("claude-tap",),
        "claude-tap",
    ),
    Importer(cassette.FORMAT, cassette.detect, cassette.read_cassette, "the text or the bytes", ("vcrpy",), "vcrpy"),
    Importer(
        access_log.FORMAT,
        access_log.detect,
        access_log.read_access_log,
        "the text, in a lossless escaping",
        writer="a web server such as nginx",
    ),
    Importer(
        jsonl.FORMAT,
        jsonl.detect,
        jsonl.read_jsonl,
        "what each record says: bytes in base64, text, or a parsed JSON value",
        ("claude-tap", "LiteLLM"),
    ),
)
"""In the order they are asked."""


def importer_of(path: Path, chosen: str | None = None) -> Importer:
    """The importer of a path, found by its content.

    Args:
        chosen: name of the format to take instead.

    Raises:
        CaptureError: missing, unreadable, or of an unknown format; the hint says what it is.
        UsageError: there is no such format.
    """
    if chosen is not None:
        for importer in IMPORTERS:
            if importer.format == chosen:
                return importer
        raise UsageError(f"there is no capture format {chosen}")
    head = read_head(path)
    foreign = name_foreign(head)
    if foreign is not None:
        raise CaptureError(f"{path}: no capture: {foreign[0]}", hint=foreign[1] or None)
    for importer in IMPORTERS:
        if importer.detect(path, head):
            return importer
    raise CaptureError(
        f"{path}: {'empty file' if not head else 'not a capture format that is known'}",
        hint="Give a directory of NNNN.body and NNNN.meta.json, a mitmproxy flow file, a HAR 1.2 file, a cassette, an "
        "access log with bodies, or JSONL of request records.",
    )


def read_capture(path: Path, *, fields: Mapping[str, str] | None = None, chosen: str | None = None) -> CaptureArchive:
    """Read a capture of any known format.

    Args:
        path: a capture bundle directory or a file; it may be gzip or zstd.
        fields: for JSONL, field name → dotted path (``fields.DEFAULT_FIELDS`` has the names).
        chosen: name of a format, instead of the one that the content shows.

    Raises:
        CaptureError: missing, unreadable, damaged as a whole, or of an unknown format.
        UsageError: fields or a format that do not exist, or fields for another format than JSONL.
    """
    importer = importer_of(path, chosen)
    try:
        archive = importer.read(path, fields)
    except CaptureError as error:
        raise CaptureError(error.message, hint=hint_at_log(path.name, read_head(path)) or error.hint) from None
    archive.collected.all += parsed_bodies_finding(archive.exchanges, str(path))
    return archive
