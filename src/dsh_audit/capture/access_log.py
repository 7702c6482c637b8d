r"""Access logs of nginx and its kin with ``$request_body``: a line a request, in the server's own escaping.

The default escaping writes ``"``, ``\``, control characters and every byte above 126 as ``\xHH``; it loses nothing.
With ``escape=json`` a line is JSON and read as such. A body that was buffered on disk is logged as ``-`` or empty.
Source: nginx ``ngx_http_log_module``, ``log_format``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dsh_audit.capture.archive import CaptureArchive
from dsh_audit.errors import UsageError
from dsh_audit.events import Json
from dsh_audit.text import ecma

FORMAT = "access-log"

_REQUEST = re.compile(rb'"([A-Z]{3,10}) ([^ "]+) HTTP/[0-9.]+"(?: (\d{3})\b)?')
_JSON = re.compile(rb"\s*(?:\{|\[\s*[\[{])")
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_BODY = re.compile(rb'("?)(\{(?:\\x22|\\x0[9AaDd]| |\})[^"]*)')
_SESSION = re.compile(rb"x-deepseek-harness-session-id[\"'=: ]+([\w.-]+)", re.IGNORECASE)


def detect(path: Path, head: bytes) -> bool:
    """A request line in quotes, in a line that is no JSON."""
    first = head.lstrip().partition(b"\n")[0]
    return _JSON.match(first) is None and _REQUEST.search(first) is not None


def read_access_log(path: Path, fields: Mapping[str, str] | None = None) -> CaptureArchive:
    """Read an access log line by line; findings and errors as of JSONL.

    Raises:
        CaptureError: unreadable, or without any request.
        UsageError: fields were given, which an access log does not have.
    """
    from dsh_audit.capture.jsonl import read_archive

    if fields:
        raise UsageError("--capture-field applies to JSONL captures only")
    return read_archive(path, parse_access_line, FORMAT)


def parse_access_line(text: bytes) -> Json:
    """A record with the members of JSONL; one without a url when the line holds no request."""
    match = _REQUEST.search(text)
    if match is None:
        return {}
    body = _BODY.search(text, match.end())
    session = _SESSION.search(text)
    return {
        "method": match[1].decode(),
        "url": _unescape(match[2]),
        "status": int(match[3]) if match[3] else None,
        "headers": {"x-deepseek-harness-session-id": session[1].decode()} if session else {},
        "body": _unescape(_logged_body(body, text)) if body else "-",
    }


def _logged_body(match: re.Match[bytes], text: bytes) -> bytes:
    """Up to its closing quote; without quotes up to the last brace, whatever a template writes behind it."""
    body = match[2]
    if match[1]:
        return body if match.end() < len(text) else body.rstrip()
    return body[: body.rfind(b"}") + 1] or body.rstrip()


def parse_escaped(text: bytes) -> Json:
    """A line written as JSON by a template whose values were escaped by default; None when it is not one."""
    if text[:1] != b"{" or _ESCAPE.search(text) is None:
        return None
    try:
        value = ecma.parse(_ESCAPE.sub(rb"\\u00\1", text))
    except ecma.EcmaSyntaxError:
        return None
    return {name: _to_text(item) for name, item in value.items()} if isinstance(value, dict) else None


def _to_text(value: Json) -> Json:
    """Text whose characters are bytes, as the text that these bytes are."""
    if not isinstance(value, str):
        return value
    try:
        return value.encode("latin-1").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value


def _unescape(text: bytes) -> str:
    data = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), text)
    return data.decode("utf-8", "surrogateescape")
