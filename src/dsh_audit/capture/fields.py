"""Where a JSONL record keeps what: dotted paths, given by the user or tried in order."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsh_audit.errors import UsageError
from dsh_audit.events import Json
from dsh_audit.record import dataclass

_LITELLM = tuple(f"{place}proxy_server_request." for place in ("", "litellm_params.", "kwargs.litellm_params."))
_CONTAINERS = (*_LITELLM, "request.", "req.", "http.request.", "")
_REQUEST_LINE = re.compile(r"([A-Z]{3,10}) (\S+) HTTP/[0-9.]+")
_BODY_MEMBERS = ("messages", "input")

_NAMES: dict[str, tuple[str, ...]] = {
    "method": ("method", "http_method", "request_method"),
    "url": ("url", "uri", "path", "url_path", "request_url", "request_path"),
    "headers": ("headers", "http_headers", "request_headers", "requestHeaders"),
    "body": ("body", "raw_body", "body_text", "postData.text", "request_body", "requestBody", "payload"),
    "body_base64": ("body_base64", "bodyBase64", "body_b64", "raw_body_base64"),
    "body_encoding": ("body_encoding", "bodyEncoding", "encoding"),
}

DEFAULT_FIELDS: dict[str, tuple[str, ...]] = {
    name: tuple(prefix + path for prefix in _CONTAINERS for path in paths) for name, paths in _NAMES.items()
} | {
    "host": ("upstream_base_url", "request.host", "host"),
    "status": (
        "response.status", "response.status_code", "response.statusCode", "status", "status_code", "response_status"
    ),
    "time": ("timestamp", "created_at", "request_created_at", "time", "request.timestamp", "startTime"),
    "response_headers": ("response.headers", "response_headers"),
    "response_body": ("response.body", "response.body_text", "response_body", "response.content.text"),
}  # fmt: skip
"""Field → dotted paths, first hit wins."""


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Field → dotted paths to try."""

    paths: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, fields: Mapping[str, str] | None) -> FieldMap:
        """The default paths, with those the user named in their place.

        Raises:
            UsageError: an unknown field or an empty path.
        """
        for name, path in (fields or {}).items():
            if name not in DEFAULT_FIELDS:
                known = ", ".join(DEFAULT_FIELDS)
                raise UsageError(f"unknown capture field {name!r}", hint=f"One of: {known}.")
            if not path:
                raise UsageError(f"capture field {name!r} has an empty path")
        return cls(DEFAULT_FIELDS | {name: (path,) for name, path in (fields or {}).items()})

    def find(self, record: Json, name: str) -> Json:
        """The value of a field; None when no path leads anywhere."""
        for path in self.paths[name]:
            value = resolve(record, path)
            if value is not None:
                return value
        return _find_in_request(record, name) if isinstance(record, dict) else None


def _find_in_request(record: dict[str, Json], name: str) -> Json:
    """Of a web server's ``"request": "POST /v1/messages HTTP/1.1"``, or a gateway's whose ``request`` is the body."""
    request = record.get("request")
    if isinstance(request, str) and name in ("method", "url") and (match := _REQUEST_LINE.fullmatch(request)):
        return match[1] if name == "method" else match[2]
    if name == "body" and isinstance(request, dict) and any(member in request for member in _BODY_MEMBERS):
        return request
    return request if name == "body" and isinstance(request, str) and request[:1] == "{" else None


def resolve(record: Json, path: str) -> Json:
    """The value at a dotted path; numbers index lists; a member named like the whole path wins."""
    if isinstance(record, dict) and path in record:
        return record[path]
    for name in path.split("."):
        if isinstance(record, dict):
            record = record.get(name)
        elif isinstance(record, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(record):
            record = record[int(name[:9])]
        else:
            return None
    return record
