"""Attachment folders on disk, read-only; every file is hashed at most once. Source: spec images 1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsh_audit.attachments.file_index import FileRecord, parse_file_index
from dsh_audit.attachments.media import Media, is_complete, parse_media
from dsh_audit.record import dataclass

_OBJECTS = "attachments/v1/objects"
_VARIANTS = ("attachments/v1/request-images", "cache/attachments/request-images")
_INDEX = "llm-deepseek/files-v3.json"
_MAX_INDEX_BYTES = 64_000_000
_PIECE_BYTES = 3 << 18
"""Divides by three, so that pieces can be printed in base64 one by one."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object or a request version as it lies on disk.

    Args:
        sha256: hex digest of the bytes.
        media: of the header; None when it is no image.
        is_complete: whether it ends as its format ends.
    """

    path: Path
    size_bytes: int
    sha256: str
    media: Media | None
    is_complete: bool

    def pieces(self) -> Iterator[bytes]:
        """The bytes in pieces whose size divides by three, the last one apart; fewer when the file was cut since."""
        with self.path.open("rb") as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece


class AttachmentStore:
    """The attachments of one or more homes.

    Args:
        homes: harness homes.
        objects: further folders of objects, each named by its digest, with or without the two-digit folder.
    """

    def __init__(self, homes: Iterable[Path] = (), objects: Iterable[Path] = ()) -> None:
        homes = tuple(homes)
        self._objects = (*(home / _OBJECTS for home in homes), *objects)
        self._variants = tuple(home / place for home in homes for place in _VARIANTS)
        self._indexes = tuple(home / _INDEX for home in homes)
        self._known: dict[tuple[str, str], StoredFile | None] = {}
        self._records: tuple[FileRecord, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no place is known at all."""
        return not self._objects

    def object(self, attachment_id: str) -> StoredFile | None:
        """The file that should be an object, whatever it holds; the sound one where several places have it."""
        return self._find("object", attachment_id, self._objects)

    def variant(self, variant_id: str) -> StoredFile | None:
        """The cached request version of a variant id."""
        return self._find("variant", variant_id, self._variants)

    @property
    def file_records(self) -> tuple[FileRecord, ...]:
        """All records of the file indexes."""
        if self._records is None:
            self._records = tuple(record for path in self._indexes for record in _read_index(path))
        return self._records

    def _find(self, kind: str, ident: str, folders: Iterable[Path]) -> StoredFile | None:
        key = kind, ident
        if key not in self._known:
            name = ident.removeprefix("sha256:")
            found = [
                file
                for folder in folders
                for place in (folder / name[:2] / name, folder / name)
                if (file := _read_file(place)) is not None
            ]
            sound = (file for file in found if file.sha256 == name)
            self._known[key] = next(sound, found[0] if found else None)
        return self._known[key]


def _read_file(path: Path) -> StoredFile | None:
    """A regular file, read once in pieces."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as stream:
            digest, size_bytes = hashlib.sha256(), 0
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
                size_bytes += len(piece)

            def read(at: int, count: int) -> bytes:
                stream.seek(at)
                return stream.read(count)

            media = parse_media(read, size_bytes)
            whole = media is not None and is_complete(media.media_type, read, size_bytes)
            return StoredFile(path, size_bytes, digest.hexdigest(), media, whole)
    except (OSError, ValueError):
        return None


def _read_index(path: Path) -> tuple[FileRecord, ...]:
    try:
        with path.open("rb") as stream:
            return parse_file_index(stream.read(_MAX_INDEX_BYTES)) or ()
    except (OSError, ValueError):
        return ()
