"""Media type and size of an image from its header alone; no decoder runs and nothing is sized by what a header says.

``imagesize`` is not used: it takes any format for any other, scans for markers byte by byte and gives no media type.
Source: spec images 1, 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from dsh_audit.record import dataclass

ReadAt = Callable[[int, int], bytes]
"""(offset, count) → at most that many bytes."""

EXTENSIONS = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp", "image/gif": "gif"}
"""Media type → extension in upload names."""

_MAX_SEGMENTS = 1000
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE = frozenset((0x01, *range(0xD0, 0xD9)))


@dataclass(frozen=True, slots=True)
class Media:
    """What an image header says.

    Args:
        media_type: ``image/png``, ``image/jpeg``, ``image/webp`` or ``image/gif``.
        width, height: in pixels, as stored.
    """

    media_type: str
    width: int
    height: int


def parse_media(read: ReadAt, size_bytes: int) -> Media | None:
    """The header of an image; None when it is none of the four formats or its size cannot be read.

    Args:
        read: reads from the image; called a bounded number of times for a few bytes each.
    """
    head = read(0, 30)
    try:
        if head.startswith(b"\x89PNG\r\n\x1a\n"):
            return _media("image/png", *struct.unpack(">II", head[16:24])) if head[12:16] == b"IHDR" else None
        if head[:6] in (b"GIF87a", b"GIF89a"):
            return _media("image/gif", *struct.unpack("<HH", head[6:10]))
        if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            return _webp(head)
        return _jpeg(read, size_bytes) if head.startswith(b"\xff\xd8") else None
    except struct.error:
        return None


def is_complete(media_type: str, read: ReadAt, size_bytes: int) -> bool:
    """Whether a file ends as its format ends, as what an encoder has just written does."""
    if media_type == "image/webp":
        stated = read(4, 4)
        return len(stated) == 4 and int(struct.unpack("<I", stated)[0]) + 8 == size_bytes
    ends = {"image/png": b"IEND\xaeB`\x82", "image/jpeg": b"\xff\xd9", "image/gif": b";"}
    end = ends[media_type]
    return size_bytes > len(end) and read(size_bytes - len(end), len(end)) == end


def _media(media_type: str, width: int, height: int) -> Media | None:
    return Media(media_type, width, height) if width and height else None


def _webp(head: bytes) -> Media | None:
    kind = head[12:16]
    if kind == b"VP8X" and len(head) >= 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        return Media("image/webp", width, height)
    if kind == b"VP8L" and head[20:21] == b"\x2f":
        bits = struct.unpack("<I", head[21:25])[0]
        return Media("image/webp", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", head[26:30])
        return _media("image/webp", width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(read: ReadAt, size_bytes: int) -> Media | None:
    at = 2
    for _ in range(_MAX_SEGMENTS):
        marker = read(at, 4)
        if at >= size_bytes or len(marker) < 2 or marker[0] != 0xFF:
            return None
        code = marker[1]
        if code == 0xFF or code in _ALONE:
            at += 1 if code == 0xFF else 2
            continue
        length = struct.unpack(">H", marker[2:4])[0]
        if code in _FRAMES:
            height, width = struct.unpack(">HH", read(at + 5, 4))
            return _media("image/jpeg", width, height)
        if code in (0xD9, 0xDA) or length < 2:
            return None
        at += 2 + length
    return None
