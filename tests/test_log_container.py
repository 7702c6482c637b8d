from __future__ import annotations

import io

import pytest
import zstandard

from dsh_audit.log.container import ContainerStats, Row, iter_rows
from tests.logs import frame, two_turns


def read(data: bytes, size: int | None = None) -> tuple[list[Row], ContainerStats]:
    stats = ContainerStats()
    rows = list(iter_rows(io.BytesIO(data), len(data) if size is None else size, stats))
    return rows, stats


LINES = [b'{"a":1}', "{\"u\":\"\u2028\u0085\"}".encode(), b"", b"x" * 300_000]
TEXT = b"".join(line + b"\n" for line in LINES)


@pytest.mark.parametrize("data", [TEXT, frame(TEXT[:8]) + frame(TEXT[8:])], ids=["plain", "zstd"])
def test_rows_are_cut_at_newline_bytes_only(data: bytes) -> None:
    rows, stats = read(data)
    assert [row.data for row in rows] == LINES
    assert [row.line for row in rows] == [1, 2, 3, 4]
    assert [row.at for row in rows] == [0, 8, 8 + len(LINES[1]) + 1, 8 + len(LINES[1]) + 2]
    assert stats.issues == []


def test_places_of_zstd_rows_name_the_frame() -> None:
    first, second = frame(b"a\n"), frame(b"b\nc\n")
    rows, _ = read(first + second)
    assert [(row.frame, row.frame_at) for row in rows] == [(0, 0), (1, len(first)), (1, len(first))]


def test_magic_bytes_inside_a_block_are_no_frame_border() -> None:
    inner = zstandard.ZstdCompressor(level=-5, write_checksum=True, write_content_size=False)
    hostile = inner.compress(b"\x28\xb5\x2f\xfd" * 3 + b"\n")
    assert hostile.count(b"\x28\xb5\x2f\xfd") > 1
    rows, stats = read(frame(b"h\n") + hostile + frame(b"z\n"))
    assert [row.data for row in rows] == [b"h", b"\x28\xb5\x2f\xfd" * 3, b"z"]
    assert stats.frames == 3


def test_a_growing_file_gives_a_stable_prefix() -> None:
    rows, stats = read(b"a\nb\nc\n", size=4)
    assert [row.data for row in rows] == [b"a", b"b"]
    assert (stats.size_bytes, stats.issues) == (4, [])


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zstd"])
def test_every_cut_keeps_a_prefix_of_the_rows(packed: bool) -> None:
    data = two_turns().zstd() if packed else two_turns().plain()
    whole, _ = read(data)
    for cut in range(len(data)):
        rows, stats = read(data[:cut])
        assert rows == whole[: len(rows)]
        assert [issue.kind for issue in stats.issues] in ([], ["torn"], ["no-newline"])
        dropped = sum(issue.dropped_bytes for issue in stats.issues)
        if not packed:
            ended = [issue.kind for issue in stats.issues] != ["no-newline"]
            assert dropped == cut - sum(len(row.data) + 1 for row in rows) + (not ended)


@pytest.mark.parametrize("keep", range(1, 5))
def test_a_frame_with_a_cut_checksum_is_torn_but_keeps_its_complete_rows(keep: int) -> None:
    data = frame(b"h\n") + frame(b"one\ntwo\n")[:-keep]
    rows, stats = read(data)
    assert [row.data for row in rows] == [b"h", b"one", b"two"]
    assert [issue.kind for issue in stats.issues] == ["torn"]


def test_a_wrong_checksum_is_damage() -> None:
    bad = bytearray(frame(b"one\n"))
    bad[-1] ^= 1
    rows, stats = read(frame(b"h\n") + bytes(bad) + frame(b"two\n"))
    assert [row.data for row in rows] == [b"h"]
    assert [issue.kind for issue in stats.issues] == ["bad-frame"]


ISSUES = [
    ("first-frame", frame(b"h\none\n"), [b"h", b"one"]),
    ("open-row", frame(b"h\n") + frame(b"one\ntw"), [b"h", b"one", b"tw"]),
    ("bad-frame", frame(b"h\n") + b"junk in the middle" + frame(b"one\n"), [b"h"]),
    ("torn", frame(b"h\n") + b"\x28\xb5", [b"h"]),
    ("torn", b"h\none", [b"h"]),
]


@pytest.mark.parametrize(("kind", "data", "kept"), ISSUES)
def test_issues(kind: str, data: bytes, kept: list[bytes]) -> None:
    rows, stats = read(data)
    assert [row.data for row in rows] == kept
    assert [issue.kind for issue in stats.issues] == [kind]


def test_a_zstd_bomb_stops_at_the_row_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsh_audit.log.container.MAX_ROW_BYTES", 1 << 20)
    bomb = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"x" * (1 << 27))
    assert len(bomb) < 20_000
    rows, stats = read(frame(b"h\n") + bomb)
    assert [row.data for row in rows] == [b"h"]
    assert [issue.kind for issue in stats.issues] == ["row-too-large"]


def test_the_digest_covers_the_whole_file_even_after_damage() -> None:
    import hashlib

    data = frame(b"h\n") + b"junk"
    _, stats = read(data)
    assert stats.sha256 == hashlib.sha256(data).hexdigest()


def test_a_bomb_of_empty_rows_stops_early() -> None:
    bomb = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"\n" * 50_000_000)
    rows, stats = read(frame(b"a\n") + bomb)
    assert len(rows) < 200_000
    assert [issue.kind for issue in stats.issues] == ["bad-frame"]
