"""Log formats 0 to 4: rows → events. A further format is one module and one entry in ``_MODULES``."""

from __future__ import annotations

from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.formats import v0, v1, v2, v3, v4
from dsh_audit.formats.base import (
    Classification,
    Format,
    FormatError,
    LogReader,
    RowRejectedError,
    UnsupportedVersionError,
)
from dsh_audit.formats.envelope import is_count, is_object

_MODULES = (v0, v1, v2, v3, v4)

FORMATS: dict[int, Format] = {module.FORMAT.version: module.FORMAT for module in _MODULES}
SUPPORTED_VERSIONS = tuple(sorted(FORMATS))

__all__ = [
    "FORMATS",
    "SUPPORTED_VERSIONS",
    "Classification",
    "Format",
    "FormatError",
    "LogReader",
    "RowRejectedError",
    "UnsupportedVersionError",
    "classify",
    "format_of",
    "parse_session_header",
]


def format_of(row: Json) -> Format:
    """The format that a session header row claims.

    Raises:
        RowRejectedError: the row is no object or claims no valid version.
        UnsupportedVersionError: a version that is not read here; its other members are not looked at.
    """
    version = row.get("version") if is_object(row) else None
    if not is_count(version):
        raise RowRejectedError("the session header has no valid format version", kind="inadmissible")
    if version not in FORMATS:
        known = ", ".join(map(str, SUPPORTED_VERSIONS))
        hint = f"this release reads formats {known}; an upgrade may read it"
        raise UnsupportedVersionError(f"format {version} is not supported", hint=hint)
    return FORMATS[version]


def parse_session_header(row: Json) -> SessionHeader:
    """The session header of any supported format; raises as ``format_of`` and the format's own parser."""
    return format_of(row).parse_session_header(row)


def classify(event: Event, version: int) -> Classification:
    """Whether a reader of the format knows the event; if not, whether it may skip it."""
    return FORMATS[version].classify(event)
