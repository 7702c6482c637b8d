"""The first row of a log. Source: spec session-log 3.1; readers of 0.1.1-rc.1, dsh-session-format-v0-to-v1,
-v1-to-v2 0.1.3-alpha.2.
"""

from __future__ import annotations

import re

from dsh_audit.events import Json, SessionHeader
from dsh_audit.formats.base import FormatError, RowRejectedError
from dsh_audit.formats.envelope import require_count, require_keys, require_object

_OPTIONAL = ("cwd", "parentSession", "origin", "agentPreset")
_RETIRED = ("sandboxMode", "approvalPolicy")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")


def parse_seed_length_header(row: Json, version: int, *, unknown_keys: bool) -> SessionHeader:
    """Session header of formats 0 and 1.

    Args:
        unknown_keys: whether members that no release writes are ignored; only the reader of 0.1.1 does.

    Raises:
        RowRejectedError: not an acceptable session header of this version.
    """
    return _parse(row, version, required=(), optional=("seedLength",), unknown_keys=unknown_keys)


def parse_is_seeded_header(row: Json, version: int) -> SessionHeader:
    """Session header of format 2 and later; raises RowRejectedError."""
    return _parse(row, version, required=("isSeeded",), optional=(), unknown_keys=False)


def _parse(
    row: Json, version: int, *, required: tuple[str, ...], optional: tuple[str, ...], unknown_keys: bool
) -> SessionHeader:
    try:
        return _checked(require_object(row, "session header"), version, required, optional, unknown_keys)
    except FormatError as error:
        raise RowRejectedError(error.reason, kind="inadmissible") from None


def _checked(
    row: dict[str, Json],
    version: int,
    required: tuple[str, ...],
    optional: tuple[str, ...],
    unknown_keys: bool,
) -> SessionHeader:
    for key in _RETIRED:
        if key in row:
            raise FormatError(f"session header has the retired member {key!r}")
    needed = ("type", "version", "id", "createdAt", *required, "delegationDepth")
    require_keys(row, needed, tuple(row) if unknown_keys else (*_OPTIONAL, *optional), "session header")
    if row["type"] != "session" or row["version"] != version or isinstance(row["version"], bool):
        raise FormatError(f"not a session header of format {version}")
    for key in ("id", "cwd", "parentSession", "agentPreset"):
        if not isinstance(row.get(key, ""), str):
            raise FormatError(f"session header {key} must be a string")
    if "cwd" in row and _ABSOLUTE.match(row["cwd"]) is None:
        raise FormatError("session header cwd must be an absolute path")
    if row.get("origin", "subagent") != "subagent":
        raise FormatError('session header origin must be "subagent"')
    if not isinstance(row.get("isSeeded", False), bool):
        raise FormatError("session header isSeeded must be a boolean")
    seeded = "isSeeded" in required
    seed_length = require_count(row["seedLength"], "session header seedLength") if _has_seed(row, seeded) else None
    return SessionHeader(
        version=version,
        id=row["id"],
        created_at=require_count(row["createdAt"], "session header createdAt"),
        cwd=row.get("cwd"),
        parent_session=row.get("parentSession"),
        seed_length=seed_length,
        is_seeded=row["isSeeded"] if seeded else None,
        origin=row.get("origin"),
        delegation_depth=require_count(row["delegationDepth"], "session header delegationDepth"),
        agent_preset=row.get("agentPreset"),
        raw=row,
    )


def _has_seed(row: dict[str, Json], seeded: bool) -> bool:
    return not seeded and "seedLength" in row


def encode_session_header(header: SessionHeader) -> dict[str, Json]:
    """The first row as the harness writes it, from the fields of the header."""
    row: dict[str, Json] = {
        "type": "session",
        "version": header.version,
        "id": header.id,
        "createdAt": header.created_at,
        "cwd": header.cwd,
        "parentSession": header.parent_session,
        "seedLength": header.seed_length,
        "isSeeded": header.is_seeded,
        "origin": header.origin,
        "delegationDepth": header.delegation_depth,
        "agentPreset": header.agent_preset,
    }
    return {key: value for key, value in row.items() if value is not None}
