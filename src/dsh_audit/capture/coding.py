"""Content codings of captured bodies, undone within a size bound.

The harness sends bodies without a coding; a proxy between it and the capture may add one.
"""

from __future__ import annotations

import importlib
import zlib
from io import BytesIO
from typing import Any

import zstandard

from dsh_audit.text.budget import BUDGET

MAX_BODY_BYTES = 512 * 1024 * 1024
"""Largest body that is read or decoded, given memory; 260 MiB have been seen (spec users 1, dsh#6754)."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_MEMBERS = 1000
_MAX_WINDOW = 1 << 27
_STEP = 512
_PIECE = 1 << 16


class ContentCodingError(ValueError):
    """The body is not what its coding promises, the coding is unknown, or the result is too large."""


def sniff_coding(data: bytes) -> str | None:
    """``gzip`` or ``zstd`` by the first bytes; None for anything else."""
    if data.startswith(_GZIP):
        return "gzip"
    return "zstd" if data.startswith(_ZSTD) else None


def body_limit() -> int:
    """Most bytes of a body that the budget of this run admits."""
    return min(MAX_BODY_BYTES, BUDGET.get().body_bytes)


def decode_content(data: bytes, coding: str, *, limit: int | None = None) -> bytes:
    """Undo ``content-encoding``.

    Args:
        coding: lower case; several are separated by commas, in the order they were applied.
        limit: most bytes that any step may give; None: ``body_limit``.

    Raises:
        ContentCodingError: see there.
    """
    for name in reversed([part.strip() for part in coding.split(",")]):
        data = _decode_one(data, name, body_limit() if limit is None else limit)
    return data


def _decode_one(data: bytes, coding: str, limit: int) -> bytes:
    if coding in ("identity", ""):
        return data
    if coding in ("gzip", "x-gzip"):
        return _inflate(data, limit)
    if coding == "deflate":
        return _inflate_member(data, 0, zlib.decompressobj(), limit)[0]
    if coding == "zstd":
        return _decode_zstd(data, limit)
    if coding == "br":
        return _decode_brotli(data, limit)
    raise ContentCodingError(f"content coding {coding!r} is not supported")


def _inflate(data: bytes, limit: int) -> bytes:
    out: list[bytes] = []
    at = 0
    for _ in range(_MAX_MEMBERS):
        text, at = _inflate_member(data, at, zlib.decompressobj(31), limit)
        out.append(text)
        limit -= len(text)
        if at == len(data):
            return b"".join(out)
    raise ContentCodingError(f"more than {_MAX_MEMBERS} gzip members")


def _inflate_member(data: bytes, at: int, inflater: zlib._Decompress, limit: int) -> tuple[bytes, int]:
    """The text of one member and where it ends."""
    out = BytesIO()
    while not inflater.eof:
        if at >= len(data):
            raise ContentCodingError("the compressed body is cut")
        piece = data[at : at + _PIECE]
        try:
            out.write(inflater.decompress(piece, limit + 1 - out.tell()))
        except zlib.error as error:
            raise ContentCodingError(f"not a valid compressed body: {error}") from None
        if out.tell() > limit:
            raise _too_large(limit)
        at += len(piece)
    return out.getvalue(), at - len(inflater.unused_data)


def _too_large(limit: int) -> ContentCodingError:
    return ContentCodingError(f"more than {limit} bytes when decompressed: {BUDGET.get().text}")


def _decode_zstd(data: bytes, limit: int) -> bytes:
    out = BytesIO()
    at = 0
    while at < len(data):
        at = _decode_zstd_frame(data, at, out, limit)
    return out.getvalue()


def _decode_brotli(data: bytes, limit: int) -> bytes:
    """In small steps, by the package brotli where it is installed."""
    try:
        brotli: Any = importlib.import_module("brotli")
    except ImportError:
        raise ContentCodingError("content coding 'br' needs the Python package brotli") from None
    out, inflater = BytesIO(), brotli.Decompressor()
    for at in range(0, len(data), _STEP):
        try:
            out.write(inflater.process(data[at : at + _STEP]))
        except brotli.error as error:
            raise ContentCodingError(f"not a valid brotli body: {error}") from None
        if out.tell() > limit:
            raise ContentCodingError("too large when decompressed")
    if not inflater.is_finished():
        raise ContentCodingError("the compressed body is cut")
    return out.getvalue()


def _decode_zstd_frame(data: bytes, at: int, out: BytesIO, limit: int) -> int:
    """Write one frame; returns where it ends. Small steps, so that a bomb is noticed before it is large."""
    inflater = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
    while not inflater.eof:
        if at >= len(data):
            raise ContentCodingError("the compressed body is cut")
        piece = data[at : at + _STEP]
        try:
            out.write(inflater.decompress(piece))
        except zstandard.ZstdError as error:
            raise ContentCodingError(f"not a valid zstd body: {error}") from None
        if out.tell() > limit:
            raise _too_large(limit)
        at += len(piece)
    return at - len(inflater.unused_data)
