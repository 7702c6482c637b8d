"""Files that people take for captures: named for what they are, with what to do."""

from __future__ import annotations

_UNPACK = "Unpack it, and give the capture file or directory that is in it."
_TAP = "claude-tap keeps its traces there: claude-tap export SESSION -o trace.ctap.json, and give that file."
_SQL = "Export its requests: sqlite3 -json FILE 'select …' > requests.json, with method, url, headers and body of each."
_PACKETS = "It holds packets, mostly encrypted ones: capture with mitmdump -w instead."

_MAGIC: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"SQLite format 3\0", "an SQLite database", _SQL),
    (8, b"DUCK", "a DuckDB database", "Export its requests as JSON or JSONL."),
    (257, b"ustar", "a tar archive", _UNPACK),
    (0, b"PK\x03\x04", "a ZIP archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!", "a RAR archive", _UNPACK),
    (0, b"BZh", "compressed by bzip2", "Decompress it."),
    (0, b"\xfd7zXZ\0", "compressed by xz", "Decompress it."),
    (0, b"PAR1", "a Parquet table", "Export it as JSONL."),
    (0, b"\xd4\xc3\xb2\xa1", "a packet capture", _PACKETS),
    (0, b"\xa1\xb2\xc3\xd4", "a packet capture", _PACKETS),
    (0, b"\x0a\x0d\x0d\x0a", "a packet capture", _PACKETS),
    (0, b"%PDF", "a PDF", ""),
    (0, b"<!DOCTYPE", "an HTML page", "Export the trace as JSONL or HAR."),
    (0, b"<html", "an HTML page", "Export the trace as JSONL or HAR."),
    (0, b"<?xml", "XML", "Export the trace as HAR; Charles and Fiddler can."),
)
_LIKE_FLOWS = (".mitm", ".flow", ".flows", ".har", ".jsonl", ".ndjson", ".log", ".yaml", ".ctap.json")


def name_foreign(head: bytes) -> tuple[str, str] | None:
    """What a file of another kind is, and what to do with it; None when that cannot be told."""
    for at, magic, what, hint in _MAGIC:
        if head[at : at + len(magic)].lower() == magic.lower():
            is_tap = magic[:6] == b"SQLite" and b"CREATE TABLE record_blobs" in head
            return what, _TAP if is_tap else hint
    return None


def hint_at_files(names: list[str]) -> str | None:
    """Which of the files of a directory may be the capture that was meant."""
    found = sorted(name for name in names if name.endswith(_LIKE_FLOWS))
    return f"Did you mean {', '.join(found[:3])} in it?" if found else None


def hint_at_log(name: str, head: bytes) -> str | None:
    """For a session log given as a capture."""
    if head.lstrip()[:1] == b"{" and b'"cwd"' in head[:4096] and name.startswith("session"):
        return "This is a session log: give it as LOG, and the captured requests with --capture."
    return None
