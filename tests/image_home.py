"""A session with images and the home it lies in, for tests; nothing here is of a real run."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path
from typing import Any

from dsh_audit.attachments.references import Reference
from dsh_audit.attachments.versions import RECIPES, default_policy
from tests.logs import text_block
from tests.toy_session import START_MS, ToySession

Json = Any


def png(width: int, height: int, shade: int = 0) -> bytes:
    """A grey PNG; small whatever its size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes([shade]) * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int, filler: bytes = b"") -> bytes:
    """What has the header and the end of a JPEG."""
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + filler + b"\xff\xd9"


def ident(data: bytes) -> str:
    """The id of an object."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def place_of(folder: Path, name: str) -> Path:
    """Where a store keeps a digest."""
    return folder / name[7:9] / name[7:]


def image(data: bytes, width: int, height: int, media_type: str = "image/png", **more: Json) -> dict[str, Json]:
    """An image block that refers to an object."""
    about = {"mediaType": media_type, "width": width, "height": height, "bytes": len(data), **more}
    return {"type": "image", "attachment": {"attachmentId": ident(data), **about}}


def store(home: Path, *objects: bytes) -> Path:
    """A home with objects; gives their folder."""
    folder = home / "attachments/v1/objects"
    folder.mkdir(parents=True, exist_ok=True)
    for data in objects:
        place = place_of(folder, ident(data))
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
    return folder


def index(home: Path, files: dict[str, bytes], recipe: int = 0, created_ms: int = START_MS) -> None:
    """A file index: id → original that was uploaded unchanged."""
    records = []
    for file_id, data in files.items():
        width, height = struct.unpack(">II", data[16:24])
        reference = Reference(ident(data), "image/png", width, height, len(data))
        variant = default_policy(RECIPES[recipe]).variant_id(reference)
        times = {"createdAt": created_ms, "expiresAt": created_ms + 604_800_000}
        named = {"scope": "0" * 64, "attachmentId": reference.id, "variantId": variant, "fileId": file_id}
        records.append({**named, "bytes": len(data), **times})
    (home / "llm-deepseek").mkdir(parents=True, exist_ok=True)
    (home / "llm-deepseek/files-v3.json").write_text(json.dumps({"formatVersion": 3, "records": records}))


def shown(home: Path, turns: list[list[Json]], version: int = 0, **settings: Json) -> Path:
    """A session of one request a turn, inside a home; gives its log."""
    toy = ToySession(version, **settings)
    for number, content in enumerate(turns):
        toy.begin(f"Turn {number}")
        for row in reversed(toy.rows):
            if row["type"] == "user/message":
                row["data"]["content"] = [block if isinstance(block, dict) else text_block(block) for block in content]
                break
        toy.answer("Seen.")
    folder = home / "sessions" / "--srv-toy--" / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / ("session.jsonl" if version == 0 else f"session.v{version}.jsonl")
    log.write_bytes(toy.plain())
    return log
