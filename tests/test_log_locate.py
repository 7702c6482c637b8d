from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from dsh_audit.errors import LogError, UsageError
from dsh_audit.log.locate import decode_segment, parse_generation, read_sessions, require_one
from tests.logs import two_turns

NAMES = [
    ("session.jsonl", 0),
    ("session.jsonl.zstd", 0),
    ("session.v1.jsonl", 1),
    ("session.v12.jsonl.zstd", 12),
    ("session.v0.jsonl", None),
    ("session.v01.jsonl", None),
    ("session.V1.jsonl", None),
    ("session.v1.jsonl.tmp", None),
    ("session.jsonl\n", None),
    ("session.v१.jsonl", None),
    ("session.lock", None),
]


@pytest.mark.parametrize(("name", "version"), NAMES)
def test_generation_names(name: str, version: int | None) -> None:
    assert parse_generation(name) == version


SEGMENTS = [("toy-1", "toy-1"), ("a~002Fb", "a/b"), ("~002E~002E", ".."), ("~D83D~DE00", "😀"), ("~D83D", "\ud83d")]


@pytest.mark.parametrize(("segment", "ident"), SEGMENTS)
def test_segments(segment: str, ident: str) -> None:
    assert decode_segment(segment) == ident


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(two_turns().plain())


def test_the_highest_generation_of_a_directory_is_current(tmp_path: Path) -> None:
    make(tmp_path, "s/session.jsonl", "s/session.v3.jsonl", "s/session.v10.jsonl", "s/session.v011.jsonl", "s/note.txt")
    (files,) = read_sessions(str(tmp_path))
    assert [source.file_name for source in files.sources] == ["session.v10.jsonl", "session.v3.jsonl", "session.jsonl"]
    assert files.choose().file_name == "session.v10.jsonl"
    assert files.choose(3).file_name == "session.v3.jsonl"
    assert [source.file_name for source in files.predecessors(files.choose(3))] == ["session.jsonl"]
    with pytest.raises(LogError, match="no generation 4"):
        files.choose(4)


def test_a_named_file_knows_the_older_ones_beside_it(tmp_path: Path) -> None:
    make(tmp_path, "session.jsonl", "session.v3.jsonl", "session.v4.jsonl")
    (files,) = read_sessions(str(tmp_path / "session.v3.jsonl"))
    assert [source.file_name for source in files.sources] == ["session.v3.jsonl", "session.jsonl"]


def test_mixed_encodings_are_reported(tmp_path: Path) -> None:
    make(tmp_path, "session.jsonl", "session.jsonl.zstd")
    (files,) = read_sessions(str(tmp_path))
    assert [finding.code for finding in files.findings] == ["log/mixed-encodings"]


def test_labels_are_as_the_user_named_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "home/sessions/--p--/a/session.jsonl", "home/sessions/--p--/b/session.jsonl")
    monkeypatch.chdir(tmp_path)
    found = read_sessions("home")
    assert [files.label for files in found] == ["home/sessions/--p--/a", "home/sessions/--p--/b"]
    with pytest.raises(UsageError, match="2 sessions here"):
        require_one(found, "home")
    assert read_sessions("home", session="a")[0].label.endswith("/a")


def test_links_to_directories_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "real/session.jsonl")
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    assert len(read_sessions(str(tmp_path))) == 1


def test_members_of_a_zip_are_read_in_place(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy-1/session.jsonl", two_turns().plain())
        archive.writestr("readme.txt", "x")
    (files,) = read_sessions(str(path))
    with files.choose().open() as stream:
        assert stream.read(1 << 20) == two_turns().plain()


MISSING = ["nothing-here", "sub/nothing"]


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there_is_one_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no such file"):
        read_sessions(name, home=tmp_path)


def test_fifos_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.jsonl")
    with pytest.raises(LogError):
        read_sessions(str(tmp_path / "session.jsonl"))
    with pytest.raises(LogError):
        read_sessions(str(tmp_path))


def test_a_member_of_a_zip_that_is_a_bomb_is_not_opened(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("s/session.jsonl", b"\n" * 40_000_000)
    [files] = read_sessions(str(tmp_path / "bomb.zip"))
    with pytest.raises(LogError, match="expands more than"):
        files.choose().open()
