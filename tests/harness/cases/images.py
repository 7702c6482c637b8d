"""Images in user messages: uploaded files, inline data, the offload of old images, a model without image input."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from tests.harness.cases.basic import case, texts

Json = Any


def _png(width: int, height: int, shade: int) -> Json:
    """An image block with a plain RGB PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes([shade, 90, 200]) * width) * height, 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return {"type": "image", "mimeType": "image/png", "data": base64.b64encode(data).decode()}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


WELL, BARN, MAP = _png(6, 4, 10), _png(5, 5, 99), _png(1800, 1500, 180)
STORE = {"id": "attachment-local", "name": "@deepseek-ai/dsh-attachment-local"}
DO = [
    ["prompt", [_text("See"), WELL]],
    ["prompt", [_text("and"), BARN, _text("and once more"), WELL, MAP]],
    ["prompt", "And now?"],
]
REFUSED: Json = [{"to": "files", "status": 400}] * 3


def _images(era: str, kind: str, shows: str, replies: list[Json], *, modalities: list[str], **config: int) -> Json:
    model = {"id": "deepseek-flash", "inputModalities": modalities}
    rows = {"llm-deepseek": {"config": {"models": [model], **config}}}
    phase = {"do": DO, "insert": [] if era == "v4" else [STORE], "rows": rows, "effort": "high"}
    script = [*texts("A well.", "A barn and a map.", "Nothing new."), *replies]
    fresh = {} if kind in ("images-files", "images-inline") else {"fresh_only": True}
    return case(era, kind, shows, script, phase, **fresh)


BOTH = ["text", "image"]
FEW = {"maxImagesPerRequest": 2, "imageOffloadCountQuantum": 1}
CASES = [
    made
    for era in ("v0late", "v3", "v4")  # the wheel of 0.1.1 has no store of images
    for made in (
        _images(era, "images-files", "Images as uploaded files.", [], modalities=BOTH),
        _images(era, "images-inline", "The Files API fails, so images go inline.", REFUSED, modalities=BOTH),
        _images(era, "images-offloaded", "More images than a request may hold.", [], modalities=BOTH, **FEW),
        _images(era, "images-unseen", "A model without image input.", [], modalities=["text"]),
    )
]
