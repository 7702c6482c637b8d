"""Damaged logs are named for what happened to them, with what is readable behind it and what is lost."""

from __future__ import annotations

import pytest

from dsh_audit.errors import LogError
from dsh_audit.log.damage import find_sound_frames, read_identity, split_at_blanks
from tests.logs import frame, log_of, source_of, two_turns

ROWS = two_turns().plain().splitlines(keepends=True)
FRAMES = [frame(row) for row in ROWS]
PLAIN, ZSTD = "session.jsonl", "session.jsonl.zstd"
COMPLETE = len(ROWS) - 1


def spoilt(data: bytes) -> bytes:
    """A frame whose checksum does not fit."""
    return data[:-1] + bytes([data[-1] ^ 1])


TABLE = [
    ("two writers", [*ROWS[:20], *ROWS[17:]], PLAIN,
     "log/damaged", "start a second chain at seq 16: two processes wrote the session; nothing is missing"),
    ("gap", [*ROWS[:4], *ROWS[6:]], PLAIN, "log/damaged", "hold turn 2, seq 5 to 28; the events seq 3 to 4 are lost"),
    ("torn append", [*ROWS[:5], ROWS[5][:20], *ROWS[6:]], PLAIN,
     "log/damaged", "a torn row and a whole one share line 6: a write failed there"),
    ("garbage at the end", [*ROWS, b"\0\1\n"], PLAIN, "log/dropped-tail", "1 row from line 31 on: none is readable"),
    ("zeros", [*ROWS, bytes(99)], PLAIN, "log/zero-tail", "99 zero bytes follow the last row; no event is lost"),
    ("zeros behind frames", [*FRAMES, bytes(99)], ZSTD,
     "log/zero-tail", "99 zero bytes follow the last frame; no event is lost"),
    ("frame", [*FRAMES[:9], spoilt(FRAMES[9]), *FRAMES[10:]], ZSTD,
     "log/bad-frame", "20 sound frames hold 20 rows, 20 events, seq 9 to 28; the event seq 8 is lost"),
    ("last frame", [*FRAMES[:-1], spoilt(FRAMES[-1])], ZSTD, "log/bad-frame", "no sound frame is behind it"),
    ("no last newline", [*ROWS[:-1], ROWS[-1][:-1]], PLAIN,
     "log/no-newline", "the last row is whole but not ended by a newline; no event is lost"),
    ("blank at the end", [*ROWS, b"\n", b"\r\n"], PLAIN,
     "log/blank-line", "2 lines are blank, at the end; no event is lost"),
    ("blank in the middle", [*ROWS[:7], b"\r\n", *ROWS[7:]], PLAIN,
     "log/blank-line", "line 8 is blank, the harness refuses the log there; no event is lost"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "name", "code", "text"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_is_said(parts: list[bytes], name: str, code: str, text: str) -> None:
    reader = log_of(b"".join(parts), name).events()
    events = sum(1 for _ in reader)
    (finding,) = reader.findings
    assert finding.code == code and text in finding.message
    if "no event is lost" in text:
        assert (events, reader.stopped_at) == (COMPLETE, None)


def test_the_harness_is_quoted_where_it_refuses() -> None:
    reader = log_of(b"".join([*ROWS[:20], *ROWS[17:]])).events()
    assert sum(1 for _ in reader) == 19
    (finding,) = reader.findings
    assert finding.details == {
        "rows": 13, "readable_rows": 13, "readable_events": 13, "first_seq": 16, "last_seq": 28, "turns": [2],
        "lost_events": 0, "harness": "row 19 has seq gap (expected 19, got 16)",
    }  # fmt: skip


HEADS = [
    (bytes(500), PLAIN, "all 500 bytes are zero, nothing of it is left"),
    (b"\xef\xbb\xbf" + b"".join(ROWS), PLAIN,
     "a UTF-8 byte order mark, which the harness refuses; 30 of 30 rows are readable, of session toy-1; save it"),
    (b"\xff\xfe" + b"".join(ROWS).decode().encode("utf-16-le"), PLAIN, "a UTF-16 byte order mark"),
    (b"\xfe\xff" + b"".join(ROWS).decode().encode("utf-16-be"), PLAIN, "30 of 30 rows are readable"),
    (bytes(4) + b"".join(FRAMES)[4:], ZSTD,
     "wrong magic number (00 00 00 00, not 28 b5 2f fd) at byte 0; from byte"),
    (spoilt(FRAMES[0]) + b"".join(FRAMES[1:]), ZSTD,
     "29 sound frames hold 29 rows, 29 events, seq 0 to 28; no event is missing"),
    (b"PK\3\4 and more", ZSTD, "wrong magic number (50 4b 03 04, not 28 b5 2f fd) at byte 0; no sound frame"),
    (b"hello\n", PLAIN, "line 1 is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "name", "text"), HEADS, ids=[row[2][:30] for row in HEADS])
def test_a_file_that_does_not_begin_as_a_log(data: bytes, name: str, text: str) -> None:
    with pytest.raises(LogError) as error:
        log_of(data, name)
    assert text in error.value.message


def test_false_magic_numbers_are_no_frames() -> None:
    data = b"x" + b"\x28\xb5\x2f\xfd" * 5000 + FRAMES[4]
    with source_of(data).open() as stream:
        assert find_sound_frames(stream, 0) is None  # too many of them
    with source_of(data[-(len(FRAMES[4]) + 400) :]).open() as stream:
        found = find_sound_frames(stream, 0)
    assert found is not None and (found.frames, found.suffix.rows) == (1, 1)


def test_blank_lines_part_the_rows() -> None:
    assert list(split_at_blanks(b"\na\nb\n\nc\n", 7)) == [(b"", 7), (b"a\nb\n", 8), (b"", 10), (b"c\n", 11)]


@pytest.mark.parametrize(
    ("head", "identity"),
    [
        (ROWS[0], ("toy-1", "/srv/toy")),
        (b"\xef\xbb\xbf" + ROWS[0], ("toy-1", "/srv/toy")),
        (b"\xff\xfe" + ROWS[0].decode().encode("utf-16-le"), ("toy-1", "/srv/toy")),
        (ROWS[1], None),
        (b"{", None),
    ],
)
def test_identity(head: bytes, identity: tuple[str, str] | None) -> None:
    assert read_identity(head) == identity
