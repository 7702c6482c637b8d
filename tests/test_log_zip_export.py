"""ZIP exports: a damaged member hides nothing of the others, and each is opened in one step."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

from tests.cli import run
from tests.logs import SessionV0, two_turns

NAMES = ("alpha", "beta", "gamma")


def session(ident: str, rnd: random.Random) -> bytes:
    toy: SessionV0 = two_turns()
    toy.rows[0]["id"] = ident
    for _ in range(300):
        toy.user("".join(rnd.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=700)))
    return toy.plain()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_damage_in_one_member_is_told_and_the_others_appear(method: int, part: float, tmp_path: Path) -> None:
    rnd = random.Random(3)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        for name in NAMES:
            archive.writestr(f"{name}/session.jsonl", session(name, rnd))
        member = archive.infolist()[1]
    data = bytearray((tmp_path / "a.zip").read_bytes())
    at = member.header_offset + 30 + len(member.filename) + 8 + int(part * (member.compress_size - 40))
    data[at : at + 20] = b"\xff" * 20
    (tmp_path / "a.zip").write_bytes(data)
    for command in ("sessions", "inspect", "cache"):
        done = run(command, tmp_path / "a.zip")
        assert done.returncode == 1, (command, done.stderr)
        assert b"alpha" in done.stdout and b"gamma" in done.stdout and b"beta" in done.stdout


def test_the_directory_of_an_export_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"s{number}/session.jsonl", two_turns().plain())
    opened: list[object] = []
    real = zipfile.ZipFile

    def opening(path: Path) -> zipfile.ZipFile:
        opened.append(path)
        return real(path)

    monkeypatch.setattr("dsh_audit.log.zip_export.zipfile.ZipFile", opening)
    assert run("sessions", tmp_path / "a.zip").returncode == 0
    assert len(opened) == 1
