"""Every recorded case prints what ``golden/<case>/expected/`` holds, byte for byte; see ``tests/expected.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import expected

HINT = "if this is meant: python -m tests.expected --update {}, and give the reason in the commit"


@pytest.mark.parametrize("case", expected.CASES, ids=lambda path: path.name)
def test_prints_what_is_expected(case: Path) -> None:
    now, kept = expected.outputs_of(case), expected.kept(case)
    assert sorted(now) == sorted(kept), f"missing or left-over files; {HINT.format(case.name)}"
    for name, output in now.items():
        assert output.decode() == kept[name].decode(), f"{case.name}/expected/{name}: {HINT.format(case.name)}"


def test_a_missing_a_changed_and_a_left_over_file_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = tmp_path / "toy"
    (case / "expected").mkdir(parents=True)
    (case / "expected" / "left.json").write_text("{}", "utf-8")
    (case / "expected" / "old.json").write_text("1", "utf-8")
    monkeypatch.setattr(expected, "GOLDEN", tmp_path)
    monkeypatch.setattr(expected, "outputs_of", lambda _: {"new.json": b"2", "old.json": b"3"})
    expected.update([case])
    assert expected.kept(case) == {"new.json": b"2", "old.json": b"3"}
    assert capsys.readouterr().out.split() == [f"toy/expected/{name}.json" for name in ("left", "new", "old")]


@pytest.mark.parametrize("arguments", ([], ["--update"], ["--update", "v0-tools"]))
def test_never_in_ci(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(expected, "update", lambda _: pytest.fail("updated"))
    with pytest.raises(SystemExit, match="2"):
        expected.main(arguments)
