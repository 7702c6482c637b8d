"""Reading files of a capture: regular files only, bounded, compressed ones undone."""

from __future__ import annotations

import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from dsh_audit.capture.coding import ContentCodingError, decode_content, sniff_coding
from dsh_audit.errors import CaptureError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET, BudgetError


def read_regular(path: Path, limit: int) -> bytes | None:
    """The bytes of a regular file that is not a link; None when it is anything else or larger than limit.

    Raises:
        OSError: it cannot be read.
    """
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
        return None
    with path.open("rb", buffering=0) as file:
        return file.read(status.st_size) if status.st_size else b""


def read_head(path: Path, size_bytes: int = 1 << 18) -> bytes:
    """The first bytes of a file, decompressed where they are gzip or zstd; empty for a directory.

    Raises:
        CaptureError: missing, unreadable, or neither a regular file nor a directory.
    """
    try:
        if path.is_dir():
            return b""
        if not path.is_file():
            what = "not a regular file" if path.exists() else "no such file or directory"
            raise CaptureError(f"{path}: {what}")
        with path.open("rb") as file:
            return to_utf8(_plain_head(file.read(size_bytes), size_bytes))
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or 'cannot be read'}") from None


def _plain_head(head: bytes, size_bytes: int) -> bytes:
    coding = sniff_coding(head)
    if coding is None:
        return head
    inflater = zlib.decompressobj(31) if coding == "gzip" else None
    try:
        if inflater is not None:
            return inflater.decompress(head, size_bytes)
        return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(head).read(size_bytes)
    except (zlib.error, zstandard.ZstdError):
        return b""


def _utf16_of(head: bytes) -> str | None:
    """The codec of text that PowerShell and Notepad write; told by its mark, or a brace of two bytes."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if head[:2] in (b"{\0", b"[\0"):
        return "utf-16-le"
    return "utf-16-be" if head[:2] in (b"\0{", b"\0[") else None


def to_utf8(data: bytes) -> bytes:
    """UTF-16 as UTF-8, unpaired surrogates replaced; anything else as it is."""
    codec = _utf16_of(data[:2])
    return data if codec is None else data.decode(codec, "replace").encode("utf-8", "replace")


def read_whole(path: Path) -> bytes:
    """A whole file, decompressed where it is gzip or zstd; held in memory once.

    Raises:
        CaptureError: unreadable, damaged, or larger than the budget admits.
    """
    limit = BUDGET.get().held_bytes
    try:
        if path.stat().st_size > limit:
            raise CaptureError(f"{path}: larger than {limit} bytes: {BUDGET.get().text}", hint="Split the capture.")
        data = path.read_bytes()
        coding = sniff_coding(data)
        return to_utf8(data if coding is None else decode_content(data, coding, limit=limit))
    except ContentCodingError as error:
        raise CaptureError(f"{path}: {error}") from None
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or 'cannot be read'}") from None


def parse_whole(path: Path, data: bytes) -> Json:
    """The JSON value of a whole file.

    Raises:
        EcmaSyntaxError: it is not JSON.
        CaptureError: the budget does not admit it.
    """
    try:
        return ecma.parse(data)
    except BudgetError as error:
        raise CaptureError(f"{path}: {error}", hint="Split the capture.") from None


@dataclass(frozen=True, slots=True)
class Source:
    """The decompressed bytes of one file: a plain file that is read again for each body, or data in memory."""

    path: Path
    data: bytes | None

    @classmethod
    def of(cls, path: Path) -> Source:
        """A file, held in memory where it is compressed.

        Raises:
            CaptureError: unreadable, or damaged.
        """
        try:
            with path.open("rb") as file:
                head = file.read(4)
        except OSError as error:
            raise CaptureError(f"{path}: {error.strerror or 'cannot be read'}") from None
        return cls(path, read_whole(path) if sniff_coding(head) or _utf16_of(head) else None)

    def read_all(self) -> bytes:
        """Every byte.

        Raises:
            CaptureError: unreadable, or larger than the budget admits.
        """
        return self.data if self.data is not None else read_whole(self.path)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """A stream at the first byte."""
        with io.BytesIO(self.data) if self.data is not None else self.path.open("rb") as file:
            yield file

    def read_at(self, at: int, size_bytes: int) -> bytes | None:
        """Bytes at an offset; None when they can no longer be read."""
        try:
            with self.open() as file:
                file.seek(at)
                data = file.read(size_bytes)
        except OSError:
            return None
        return data if len(data) == size_bytes else None
