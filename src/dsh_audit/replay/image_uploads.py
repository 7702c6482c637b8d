"""Captured uploads of images: which request needed each, and whether its bytes are those of the stored image.

The boundary is random and taken from the capture; all else follows from the release. Source: spec images 9.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dsh_audit.attachments.media import EXTENSIONS
from dsh_audit.attachments.store import AttachmentStore
from dsh_audit.capture.exchange import Exchange
from dsh_audit.record import dataclass
from dsh_audit.replay.judge import PairResult, UploadResult

_NAME = re.compile(rb'filename="(dsh-([0-9a-f]{16})-([0-9a-f]{8})\.(png|jpeg|webp|gif))"\r\n')
_SECONDS = re.compile(rb'name="expires_after\[seconds\]"\r\n\r\n([0-9]{1,12})\r\n')


@dataclass(frozen=True, slots=True)
class _Upload:
    """One upload as far as it has the form that a release writes.

    Args:
        start, variant: of the digests in the file name.
        sha256: of the uploaded bytes.
    """

    start: str
    variant: str
    size_bytes: int
    sha256: str


def pair_uploads(
    results: Sequence[PairResult], exchanges: Mapping[str, Exchange], stores: Sequence[AttachmentStore]
) -> list[PairResult]:
    """The results, in order of receipt, each upload of an image with the request after it that carries the image."""
    paired: list[PairResult] = []
    for place, result in enumerate(results):
        exchange = exchanges.get(result.captured or "")
        if exchange is None or exchange.kind != "upload" or result.rebuilt is not None:
            paired.append(result)
            continue
        upload = parse_upload(exchange.read_body() or b"", is_chat=exchange.http_header("anthropic-version") is None)
        after = None if upload is None else _needed_by(upload, results[place + 1 :])
        if upload is None or after is None:
            paired.append(result)
            continue
        needed, attachment = after
        assert needed.rebuilt is not None
        told = UploadResult(attachment, needed.rebuilt.index, upload.size_bytes, _is_stored(upload, attachment, stores))
        paired.append(replace(result, upload=told))
    return paired


def parse_upload(body: bytes, *, is_chat: bool) -> _Upload | None:
    """An upload that is byte for byte what a release sends; None for any other.

    Args:
        is_chat: the era of chat completions, which names a purpose.
    """
    boundary, named, seconds = body.partition(b"\r\n")[0], _NAME.search(body), _SECONDS.search(body)
    if named is None or seconds is None:
        return None
    media_type = next(kind for kind, extension in EXTENSIONS.items() if extension.encode() == named[4])
    fields = [(b"expires_after[anchor]", b"created_at"), (b"expires_after[seconds]", seconds[1])]
    fields = [(b"purpose", b"user_data"), *fields] if is_chat else fields
    disposition = b"\r\nContent-Disposition: form-data; name="
    head = b"".join(boundary + disposition + b'"%b"\r\n\r\n%b\r\n' % pair for pair in fields)
    head += boundary + disposition + b'"file"; filename="%b"\r\n' % named[1]
    head += b"Content-Type: " + media_type.encode() + b"\r\n\r\n"
    end = b"\r\n" + boundary + b"--\r\n"
    if not body.startswith(head) or not body.endswith(end) or len(body) < len(head) + len(end):
        return None
    data = memoryview(body)[len(head) : len(body) - len(end)]
    return _Upload(named[2].decode(), named[3].decode(), len(data), hashlib.sha256(data).hexdigest())


def _needed_by(upload: _Upload, later: Sequence[PairResult]) -> tuple[PairResult, str] | None:
    for result in later:
        for image in result.images:
            if image.attachment is not None and image.attachment[7:23] == upload.start and result.rebuilt is not None:
                return result, image.attachment
    return None


def _is_stored(upload: _Upload, attachment: str, stores: Sequence[AttachmentStore]) -> bool | None:
    """Whether the bytes are those of the object or of the request version; None where the version is lost."""
    if upload.sha256 == attachment[7:]:
        return True
    records = {r.variant_id for store in stores for r in store.file_records if r.attachment_id == attachment}
    wanted = [ident for ident in sorted(records) if ident[7:15] == upload.variant]
    found = [stored for store in stores for ident in wanted if (stored := store.variant(ident)) is not None]
    if found:
        return any(stored.sha256 == upload.sha256 for stored in found)
    originals = [own for store in stores if (own := store.object(attachment)) is not None]
    return False if any(own.size_bytes == upload.size_bytes for own in originals) else None
