"""``files-v3.json``: ids of uploaded request versions, as they are now; it is no history. Source: spec images 9."""

from __future__ import annotations

from dsh_audit.record import dataclass
from dsh_audit.text import ecma


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One uploaded version.

    Args:
        scope: digest of endpoint and credential.
        size_bytes: of the version.
        created_ms, expires_ms: by the provider's clock.
    """

    scope: str
    attachment_id: str
    variant_id: str
    file_id: str
    size_bytes: int
    created_ms: float
    expires_ms: float


_MEMBERS = (("scope", str), ("attachmentId", str), ("variantId", str), ("fileId", str), ("bytes", int))
_TIMES = ("createdAt", "expiresAt")


def parse_file_index(data: bytes) -> tuple[FileRecord, ...] | None:
    """The records of an index; malformed ones are left out. None when it is no index."""
    try:
        value = ecma.parse(data)
    except ecma.EcmaSyntaxError:
        return None
    if not isinstance(value, dict) or value.get("formatVersion") != 3 or not isinstance(value.get("records"), list):
        return None
    found = []
    for record in value["records"]:
        is_record = isinstance(record, dict) and all(isinstance(record.get(key), kind) for key, kind in _MEMBERS)
        if is_record and all(isinstance(record.get(key), (int, float)) for key in _TIMES):
            found.append(FileRecord(*(record[key] for key, _ in _MEMBERS), *(record[key] for key in _TIMES)))
    return tuple(found)
