"""Members of a ZIP export as streams; imported only where there is one."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from dsh_audit.errors import LogError

_MAX_MEMBERS = 100_000
_MAX_EXPANSION = 200
_FREE_BYTES = 32 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)


def is_zip(path: Path) -> bool:
    """Whether a file ends as a ZIP does."""
    return zipfile.is_zipfile(path)


def read_members(path: Path, named: str) -> Iterator[tuple[PurePosixPath, int, Callable[[], BinaryIO]]]:
    """Name, size and opener of each file in a ZIP.

    Raises:
        LogError: not a ZIP that can be read, or more members than any export has.
    """
    try:
        archive = zipfile.ZipFile(path)
        members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise LogError(f"{named}: not a readable ZIP ({error})") from None
    if len(members) > _MAX_MEMBERS:
        raise LogError(f"{named}: more than {_MAX_MEMBERS} members in this ZIP")
    for member in members:
        if not member.is_dir():
            name = PurePosixPath(member.filename.replace("\\", "/"))
            yield name, member.file_size, _opener(archive, member, named)


def _opener(archive: zipfile.ZipFile, member: zipfile.ZipInfo, named: str) -> Callable[[], BinaryIO]:
    def opened() -> BinaryIO:
        if member.file_size > max(_FREE_BYTES, _MAX_EXPANSION * member.compress_size):
            raise LogError(f"{named}: a member of this ZIP expands more than {_MAX_EXPANSION}-fold: no log does")
        try:
            return _ZipStream(archive.open(member), named)
        except (*_DAMAGE, RuntimeError, NotImplementedError) as error:
            raise LogError(f"{named}: a member of this ZIP cannot be read ({error})") from None

    return opened


class _ZipStream(io.RawIOBase, BinaryIO):
    """One ZIP member as a sequential stream; its archive stays open for the others."""

    def __init__(self, member: IO[bytes], named: str) -> None:
        self._member, self._named = member, named

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._member.read(size)
        except _DAMAGE as error:
            raise LogError(f"{self._named}: a member of this ZIP is damaged ({error})") from None

    def close(self) -> None:
        if not self.closed:
            self._member.close()
        super().close()
