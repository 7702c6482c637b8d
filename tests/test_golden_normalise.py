"""Normalisers: what each replaces, and that bodies and values agree about it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from dsh_audit.errors import UsageError
from dsh_audit.events import SessionHeader
from dsh_audit.golden.normalise import BUILT_IN, Normaliser, Normalising, parse_normaliser
from dsh_audit.text import ecma
from dsh_audit.wire.captured import parse_parts
from tests.cli import run
from tests.golden_logs import TOOLS_LOG, Rows, edited, header_of

HEADER = SessionHeader(0, "sess-77", 0, "/srv/toy/ws", "parent-9", None, None, None, 0, None, {})
UUID = "0b0e7a7e-5a5c-4f7e-9d56-0a1b2c3d4e5f"


def normalising(*declared: str) -> Normalising:
    return Normalising(map(parse_normaliser, declared), HEADER)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("uuids", f"a {UUID} b", "a <uuid> b"),
        ("uuids", f"\\n{UUID}", "\\n<uuid>"),
        ("uuids", f"{UUID}0", f"{UUID}0"),
        ("times", "at 2026-01-02T03:04:05.678Z.", "at <time>."),
        ("times", "at 2026-01-02 03:04:05+01:00", "at <time>"),
        ("times", "on 2026-01-02", "on <time>"),
        ("times", "03:04 and 23:59:59", "<time> and <time>"),
        ("times", "since 1796053553329", "since <time>"),
        ("times", "2026-13-02, 25:00, 1.2026-01", "2026-13-02, 25:00, 1.2026-01"),
        ("times", "port 8080, 12345678", "port 8080, 12345678"),
        ("temp-paths", "in /tmp/abc/x.txt, and", "in <temp>, and"),
        ("temp-paths", "/private/var/folders/q1/T/x", "<temp>"),
        ("temp-paths", 'C:\\Users\\me\\AppData\\Local\\Temp\\x1 "', '<temp> "'),
        ("temp-paths", "/srv/tmpfile", "/srv/tmpfile"),
        ("ids", "call_00_a1B2 toolu_01XY call-by-value", "<id> <id> call-by-value"),
        ("homes", "/home/ann/x /Users/bob", "<home>/x <home>"),
        ("ports", "http://localhost:8123/ 127.0.0.1:9 host:80", "http://localhost:<port>/ 127.0.0.1:9 host:80"),
        ("durations", "took 12ms, 1.5 s; 3 cats", "took <duration>, <duration>; 3 cats"),
        ("session-ids", "sess-77 of parent-9", "<session> of <session>"),
        ("session-ids", "xsess-77 sess-770", "xsess-77 sess-770"),
        ("cwd", "in /srv/toy/ws/a, /srv/toy/ws2", "in <cwd>/a, /srv/toy/ws2"),
        ("own=ab+c", "abbbc", "<own>"),
    ],
)
def test_what_is_replaced(name: str, text: str, expected: str) -> None:
    assert normalising(name).text(text) == expected


def test_every_built_in_is_tested_and_placeholders_are_stable() -> None:
    marks = next(mark for mark in test_what_is_replaced.pytestmark)  # type: ignore[attr-defined]
    assert {case[0] for case in marks.args[1]} >= set(BUILT_IN)
    for name in BUILT_IN:
        every = normalising(name)
        once = every.text(f"{UUID} 2026-01-02 /tmp/x1 call_12 /home/a localhost:99 5ms sess-77 /srv/toy/ws")
        assert every.text(once) == once


BAD = ["nothing", "own=(", "=x", "a b=x", "own =x", "own=a{99999999999}", "own=" + "(" * 9999]


@pytest.mark.parametrize("text", BAD)
def test_bad_normalisers_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_normaliser(text)
    with pytest.raises(UsageError):
        Normaliser("unknown")


TEXTS = [f"line\n{UUID} end", '2026-01-02 \\ "quoted" 2026-01-03', "é😀 2026-01-02", "plain", "\ud800 2026-01-02"]


def test_a_body_is_normalised_as_its_values_are() -> None:
    value = {"messages": [{"role": "user", "content": text} for text in TEXTS], "n": 20260102}
    both = normalising("uuids", "times")
    expected = ecma.stringify(both.value(value))
    normalised = both.body(parse_parts(ecma.stringify(value)))
    assert normalised.to_bytes() == expected
    assert normalised.sha256() == hashlib.sha256(expected).hexdigest()


def test_texts_are_counted_once() -> None:
    counted = normalising("times")
    counted.text("2026-01-02 2026-01-03")
    counted.body(parse_parts(b'"2026-01-02"'))
    assert counted.replaced["times"] == 2


def test_a_case_with_normalisers_ignores_and_shows_what_varies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    def stamp(text: str) -> object:
        def edit(rows: Rows) -> None:
            header_of(rows)["system"] += f"\nNow: {text}."

        return edit

    log, cases = tmp_path / "session.jsonl", tmp_path / "cases"
    edited(TOOLS_LOG, log, stamp("2026-01-02 03:04:05"))  # type: ignore[arg-type]
    assert run("golden", "record", log, "-o", cases, "--full", "--normalise", "times").returncode == 0
    assert b"2026" not in next(cases.iterdir()).read_bytes()
    edited(TOOLS_LOG, log, stamp("2027-11-12 13:14:15"))  # type: ignore[arg-type]
    done = run("golden", "check", cases, "--format", "json")
    assert done.returncode == 0
    (case,) = json.loads(done.stdout)["cases"]
    assert case["normalisers"] == [{"name": "times", "placeholder": "<time>", "replaced": 1}]
    assert b"times" in run("golden", "check", cases).stdout
    edited(TOOLS_LOG, log, stamp("2027-11-12 13:14:15, friends"))  # type: ignore[arg-type]
    done = run("golden", "check", cases)
    assert done.returncode == 1
    assert b"Now: <time>, friends." in done.stdout
