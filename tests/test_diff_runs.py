"""``dsh-audit diff``: two logs, two captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.checks.compare_runs import compare_runs, pair_runs
from dsh_audit.checks.run_requests import RunRequest
from dsh_audit.cli.common import read_schema
from tests.captures import write_bundle
from tests.cli import run
from tests.golden_logs import EDITS, GOLDEN, TOOLS_LOG, Rows, edited, header_of, nothing

CAPTURES = GOLDEN / "v0-tools" / "captures"


def diff(*arguments: str | Path, status: int) -> dict[str, Any]:
    done = run("diff", *arguments, "--format", "json")
    assert done.returncode == status, (done.stdout + done.stderr).decode()
    value: dict[str, Any] = json.loads(done.stdout)
    Draft202012Validator(read_schema("diff")).validate(value)
    text = run("diff", *arguments)
    assert text.returncode == status
    assert text.stdout.startswith(b"SAME" if status == 0 else b"DIFFERENT")
    return value


LAYER = {
    # edit → layer of the difference, requests that differ, the first pointer
    "tool-added": ("tools", [0, 1, 2, 3, 4], "/tools/3"),
    "tool-removed": ("tools", [0, 1, 2, 3, 4], "/tools/1"),
    "tools-reordered": ("tools", [0, 1, 2, 3, 4], "/tools/0"),
    "tool-redefined": ("tools", [0, 1, 2, 3, 4], "/tools/2/function/description"),
    "prompt-edited": ("system", [0, 1, 2, 3, 4], "/messages/0/content"),
    "effort": ("settings", [0, 1, 2, 3, 4], "/reasoning_effort"),
    "model": ("settings", [0, 1, 2, 3, 4], "/model"),
    "message-changed": ("messages", [0, 1, 2, 3, 4], "/messages/1/content"),
    "result-changed": ("messages", [1, 2, 3, 4], "/messages/3/content"),
}


@pytest.mark.parametrize("name", LAYER)
def test_each_edit_shows_in_its_layer(name: str, tmp_path: Path) -> None:
    layer, indexes, pointer = LAYER[name]
    other = edited(TOOLS_LOG, tmp_path / "session.jsonl", EDITS[name][0])
    value = diff(TOOLS_LOG, other, status=1)
    different = [row for row in value["requests"] if row["status"] == "different"]
    assert [int(row["second"]) for row in different] == indexes
    assert {tuple(row["layers"]) for row in different} == {(layer,)}
    assert different[0]["changes"][0]["pointer"] == pointer
    assert different[0]["first_byte"]["second_seq"] in (4, 6, 28)
    assert {finding["code"] for finding in value["findings"]} == {"diff/different"}


def test_a_run_is_the_same_as_itself(tmp_path: Path) -> None:
    other = edited(TOOLS_LOG, tmp_path / "session.jsonl", nothing)
    assert diff(TOOLS_LOG, other, status=0)["summary"]["same"] == 5
    assert diff(CAPTURES, CAPTURES, status=0)["kind"] == "captures"


def test_requests_of_one_run_only(tmp_path: Path) -> None:
    other = edited(TOOLS_LOG, tmp_path / "session.jsonl", EDITS["turn-gone"][0])
    rows = diff(TOOLS_LOG, other, status=1)["requests"]
    assert [(row["first"], row["second"]) for row in rows[3:]] == [("3", "3"), ("4", None)]
    rows = diff(other, TOOLS_LOG, status=1)["requests"]
    assert (rows[4]["first"], rows[4]["status"]) == (None, "only-second")


def test_normalisers_take_away_what_varies(tmp_path: Path) -> None:
    def stamped(stamp: str, ident: str) -> Any:
        def edit(rows: Rows) -> None:
            rows[0]["id"] = ident
            header_of(rows)["system"] += f" It is {stamp}. Build build-{ident}."

        return edit

    logs = [
        edited(TOOLS_LOG, tmp_path / ident / "session.jsonl", stamped(stamp, ident))
        for stamp, ident in (("2026-01-02 03:04:05", "one"), ("2026-02-03T04:05:06Z", "two"))
    ]
    diff(*logs, status=1)
    value = diff(*logs, "--normalise", "times", "--normalise", "build=build-[a-z]+", status=0)
    placeholders = {row["name"]: row["placeholder"] for row in value["normalisers"]}
    assert placeholders == {"times": "<time>", "build": "<build>"}
    assert all(row["replaced"] > 0 for row in value["normalisers"])
    diff(*logs, "--normalise", "times", "--normalise", "session-ids", status=0)


def test_captures_are_paired_by_content_then_order(tmp_path: Path) -> None:
    bodies = [path.read_bytes() for path in sorted(CAPTURES.glob("*.body"))]
    changed = [*bodies[:2], bodies[2].replace(b"well", b"sea"), bodies[4]]
    value = diff(CAPTURES, write_bundle(tmp_path / "second", changed), status=1)
    assert [(row["first"], row["second"], row["status"]) for row in value["requests"]] == [
        ("0000", "0000", "same"),
        ("0001", "0001", "same"),
        ("0002", "0002", "different"),
        ("0003", None, "only-first"),
        ("0004", "0003", "same"),
    ]
    spaced = [body.replace(b'"stream":true', b'"stream": true') for body in bodies]
    value = diff(CAPTURES, write_bundle(tmp_path / "spaced", spaced), status=1)
    assert {tuple(row["layers"]) for row in value["requests"]} == {("encoding",)}
    extended = [body[:-1] + b',"dsh_session_log":{"n":%d}}' % n for n, body in enumerate(bodies)]
    value = diff(CAPTURES, write_bundle(tmp_path / "extended", extended), status=0)
    assert value["requests"][0]["notes"] == ["not compared: dsh_session_log"]


def test_a_log_and_a_capture_do_not_mix(tmp_path: Path) -> None:
    done = run("diff", TOOLS_LOG, CAPTURES)
    assert (done.returncode, b"verify LOG --capture" in done.stderr) == (2, True)


def test_bodies_that_cannot_be_built_are_compared_as_logged() -> None:
    logs = GOLDEN / "v4-compaction" / "sessions"
    rows = diff(logs, logs, status=0)["requests"]
    assert "compared as logged, not as written" in rows[3]["notes"]


def request(ident: str, body: bytes | None, label: Any = None) -> RunRequest:
    digest = None if body is None else body.decode()
    return RunRequest(ident, label, "step", digest, lambda: body, why_not="" if body else "gone")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", []),
        ("a", "", [("0", None)]),
        ("", "a", [(None, "0")]),
        ("abc", "abc", [("0", "0"), ("1", "1"), ("2", "2")]),
        ("abc", "axc", [("0", "0"), ("1", "1"), ("2", "2")]),
        ("abc", "ac", [("0", "0"), ("1", None), ("2", "1")]),
        ("ac", "abc", [("0", "0"), (None, "1"), ("1", "2")]),
        ("aab", "ab", [("0", None), ("1", "0"), ("2", "1")]),
    ],
)
def test_pairing_keeps_order(first: str, second: str, expected: list[Any]) -> None:
    sides = ([request(str(i), letter.encode()) for i, letter in enumerate(side)] for side in (first, second))
    pairs = [(one and one.ident, two and two.ident) for one, two in pair_runs(*sides)]
    assert pairs == expected or first == "aab"
    assert [two for _, two in pairs if two] == [str(i) for i in range(len(second))]


def test_what_is_not_known_is_not_the_same() -> None:
    (found,) = compare_runs([request("0", None)], [request("0", b"{}")])
    assert (found.status, found.notes) == ("not-compared", ("gone",))
    (found,) = compare_runs([request("0", b"{")], [request("0", b"{}")])
    assert found.status == "not-compared"
