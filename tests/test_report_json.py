"""JSON and text reports show nothing that acts on a terminal, an editor or another parser."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import orjson
import pytest

from dsh_audit.report.cache import _csv_cell
from dsh_audit.report.json import render_json
from dsh_audit.report.text import clean
from tests.cli import run
from tests.logs import two_turns


@pytest.mark.parametrize("char", ["\x7f", "\x80", "\x9b", "\u061c", "\u200e", "\u202e", "\u2066", "\u2069", "\x1b"])
@pytest.mark.parametrize("more", [{}, {"wide": 2**70}, {"small": 1e-7}])
def test_json_shows_what_controls_a_display_as_escapes(char: str, more: dict[str, float]) -> None:
    value = {"text": f"a{char}b é 👍", **more}
    text = render_json(value)
    assert char not in text and "é 👍" in text
    assert json.loads(text) == value


def test_half_a_character_is_text_that_other_parsers_take() -> None:
    text = render_json({"a": "x\ud800y"})
    assert orjson.loads(text) == json.loads(text) == {"a": "x\\ud800y"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb", "a\\u200bb"),
        ("\U000e0041", "\\u{e0041}"),
        ("\u2060", "\\u2060"),
        ("\x9b31m", "\\u009b31m"),
        ("é👍", "é👍"),
    ],
)
def test_text_shows_what_has_no_width_as_escapes(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        (-3, -3),
        (1e-7, "0.0000001"),
        ("a\x1b[31m\x9b", "a\\u001b[31m\\u009b"),
        (True, "true"),
    ],
)
def test_cells_of_the_ledger(value: object, cell: object) -> None:
    assert _csv_cell(value) == cell


def test_recording_several_logs_goes_on_behind_one_that_cannot_be_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("alpha", "beta", "gamma"):
            toy = two_turns()
            toy.rows[0]["id"] = name
            archive.writestr(f"{name}/session.jsonl", b"{]\n" if name == "beta" else toy.plain())
    done = run("golden", "record", tmp_path / "a.zip", "-o", tmp_path / "g", env={"CI": ""})
    assert done.returncode == 1, done.stderr
    assert b"log/unreadable" in done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "g").iterdir()) == ["alpha.golden.json", "gamma.golden.json"]
