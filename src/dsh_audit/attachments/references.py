"""The images that messages refer to. Source: spec session-log 3.3, images 1."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dsh_audit.events import Json
from dsh_audit.record import dataclass

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_MAX_SIDE = 1 << 31


@dataclass(frozen=True, slots=True)
class Reference:
    """What an image block says of its object.

    Args:
        id: ``sha256:`` and the digest of the stored bytes.
        name: as displayed; belongs to the occurrence.
    """

    id: str
    media_type: str
    width: int
    height: int
    size_bytes: int
    name: str | None = None

    @property
    def hex(self) -> str:
        """The digest."""
        return self.id[7:]


def parse_reference(attachment: Json) -> Reference | None:
    """A block's ``attachment``; None when no release writes such a one."""
    if not isinstance(attachment, dict):
        return None
    ident, media_type, name = (attachment.get(key) for key in ("attachmentId", "mediaType", "name"))
    numbers = [attachment.get(key) for key in ("width", "height", "bytes")]
    if not isinstance(ident, str) or not _DIGEST.match(ident) or not isinstance(media_type, str):
        return None
    if not all(isinstance(number, int) and 0 < number < _MAX_SIDE for number in numbers):
        return None
    width, height, size_bytes = (int(number or 0) for number in numbers)
    return Reference(ident, media_type, width, height, size_bytes, name if isinstance(name, str) else None)


def blocks_of(content: Sequence[Json], kind: str) -> Iterator[dict[str, Json]]:
    """The blocks of one type in some content, those of nested tool results included, in order."""
    for block in content:
        if not isinstance(block, dict):
            continue
        if block.get("type") == kind:
            yield block
        elif block.get("type") == "tool-result" and isinstance(block.get("content"), list):
            yield from blocks_of(block["content"], kind)


def has_blocks(content: Sequence[Json], kind: str) -> bool:
    """Whether some content holds a block of a type."""
    return next(blocks_of(content, kind), None) is not None
