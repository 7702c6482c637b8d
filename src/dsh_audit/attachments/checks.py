"""Stored objects and request versions against what the log and the file index say of them."""

from __future__ import annotations

from dsh_audit.attachments.references import Reference
from dsh_audit.attachments.store import AttachmentStore, StoredFile
from dsh_audit.finding import Rule
from dsh_audit.record import dataclass
from dsh_audit.rules import attachments as rules


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a stored file.

    Args:
        rule: the kind of finding.
        what: names it by digest, one phrase.
    """

    rule: Rule
    what: str


def check_object(store: AttachmentStore, reference: Reference) -> Problem | None:
    """What is wrong with the object of an image, None when its bytes are the ones meant."""
    stored = store.object(reference.id)
    name = f"object {reference.id}"
    if stored is None:
        return Problem(rules.MISSING, f"{name} is missing")
    if stored.sha256 != reference.hex:
        other = f"sha256:{stored.sha256}"
        if store.object(other) is not None:
            return Problem(rules.SWAPPED, f"{name} holds the bytes of object {other}")
        return Problem(rules.ALTERED, f"{name} holds other bytes ({other})")
    media, stated = stored.media, (reference.media_type, reference.width, reference.height, reference.size_bytes)
    if media is None:
        return Problem(rules.MISTYPED, f"{name} is no image, not {reference.media_type}")
    if (media.media_type, media.width, media.height, stored.size_bytes) == stated:
        return None
    is_what = f"{media.media_type}, {media.width}x{media.height}, {stored.size_bytes} bytes"
    is_not = f"{stated[0]}, {stated[1]}x{stated[2]}, {stated[3]} bytes"
    return Problem(rules.MISTYPED, f"{name} is {is_what}, not {is_not}")


def check_version(
    store: AttachmentStore, reference: Reference, variant_id: str, stored: StoredFile
) -> Problem | None:
    """What is wrong with a cached request version, None when nothing shows that it was touched."""
    name = f"request version {variant_id} of object {reference.id}"
    sizes = {record.size_bytes for record in store.file_records if record.variant_id == variant_id}
    if sizes and stored.size_bytes not in sizes:
        return Problem(rules.DAMAGED_VERSION, f"{name} has {stored.size_bytes} bytes, {min(sizes)} were uploaded")
    if stored.media is None:
        return Problem(rules.DAMAGED_VERSION, f"{name} is no image")
    if not stored.is_complete:
        return Problem(rules.DAMAGED_VERSION, f"{name} is cut after {stored.size_bytes} bytes")
    return None
