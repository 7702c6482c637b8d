"""Where sessions lie, what lies beside them, and what children have of their parents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.log.strays import find_strays, project_key, session_segment
from tests.cli import run
from tests.lint_sessions import KEY, at, copied, end_step, locked, one_turn, toy_of
from tests.toy_session import ToySession

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def findings(command: str = "lint", **more: Any) -> list[tuple[str, str]]:
    report = json.loads(run(command, "home", "--format", "json").stdout)
    Draft202012Validator(json.loads((ROOT / "schemas" / f"{command}.schema.json").read_bytes())).validate(report)
    every = [*report["findings"], *(found for one in report.get("sessions", ()) for found in one.get("findings", ()))]
    return [(found["code"], found["message"]) for found in every]


@pytest.mark.parametrize(
    ("cwd", "key"),
    [
        ("/srv/toy", "--srv-toy--"), ("D:\\work\\proj 测", "--D-work-proj~0020~6D4B--"), ("/", "--root--"),
        ("//a::b\\/c", "--a-b-c--"), (None, "_no-cwd"), ("/" + "x" * 300, f"--{'x' * 251}--"),
        ("/😀", "--~D83D~DE00--"), ("/a~b", "--a~007Eb--"),
    ],
)  # fmt: skip
def test_key_of_a_cwd(cwd: str | None, key: str) -> None:
    assert project_key(cwd) == key


@pytest.mark.parametrize(("ident", "name"), [("a.b-c_1", "a.b-c_1"), ("a b", "a~0020b"), ("..", "~002E~002E")])
def test_segment_of_an_id(ident: str, name: str) -> None:
    assert session_segment(ident) == name


def test_a_home_in_order_has_no_finding() -> None:
    at(f"{KEY}/toy", one_turn)
    at("_no-cwd/other", one_turn, id="other", cwd="")
    path = Path("home/sessions/_no-cwd/other/session.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"cwd":"",', b""))
    assert findings() == []


def test_misplaced_and_duplicate() -> None:
    at(f"{KEY}/toy", one_turn)
    at("--Srv-toy--/toy", lambda toy: (toy.ask("one"), toy.ask("two")))
    found = dict(findings())
    assert set(found) == {"lint/misplaced", "log/duplicate-session"}
    assert "its cwd /srv/toy has the key --srv-toy--, it lies under --Srv-toy--" in found["lint/misplaced"]
    assert found["log/duplicate-session"].endswith("this copy goes on for 8 more events, through seq 17")


def test_the_same_id_in_two_homes_is_no_duplicate() -> None:
    at(f"{KEY}/toy", one_turn)
    Path("home/other").mkdir()
    Path("home/sessions").rename("home/other/sessions")
    at(f"{KEY}/toy", one_turn)
    assert findings() == []


def test_copies_beside_a_stale_log() -> None:
    at(f"{KEY}/toy", one_turn)
    copied()
    folder = Path("home/sessions", KEY, "toy")
    (folder / "session (conflicted copy).jsonl").write_bytes((folder / "session.jsonl").read_bytes())
    (folder / ".session.jsonl.icloud").write_bytes(b"bplist00\xd4\1")
    other = toy_of(lambda toy: (toy.ask("one"), toy.ask("two")))
    for row in other.rows[1:]:
        row["time"] += 5
    (folder / "session~1.jsonl").write_bytes(other.plain())
    assert [message for _, message in findings()] == [
        ".session.jsonl.icloud is no log: it holds no complete row: 10 bytes after the last complete row are not used",
        "session (conflicted copy).jsonl: a copy of session toy holds nothing more",
        "session.jsonl 2: a copy of session toy goes on for 8 more events, through seq 17",
        "session~1.jsonl: a copy of session toy is another history, of 18 events",
    ]
    assert b"notes: lint/copy" in run("sessions", "home").stdout


def test_folders_without_a_log() -> None:
    at(f"{KEY}/toy", one_turn)
    locked()
    assert findings() == [("lint/no-log", "no log lies here: only a lock")]
    assert [stray.folder for stray in find_strays(["home"])] == [f"home/sessions/{KEY}/gone"]


def test_a_marked_file_in_the_wrong_folder() -> None:
    path = at(f"{KEY}/other", one_turn)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    done = run("lint", "home")
    assert done.returncode == 2 and b"of session toy" in done.stderr and b"hint: misplaced: its id toy" in done.stderr
    at(f"{KEY}/toy", one_turn)
    assert [code for code, _ in findings()] == ["log/unreadable", "lint/misplaced"]


def child(toy: ToySession) -> None:
    """A fork made while the second turn of its parent ran."""
    toy.ask("one")
    toy.add("session/end-seed", {"inherited": True})
    toy.ask("mine")


def test_children_and_their_parents() -> None:
    lead = at(f"{KEY}/toy", lambda toy: (toy.ask("one"), toy.ask("two")), 4)
    start = [json.loads(row) for row in lead.read_bytes().splitlines() if b'"turn/start"' in row][1]["time"]
    header = {"parentSession": "toy", "isSeeded": True, "origin": "subagent", "agentPreset": "scout"}
    at(f"{KEY}/kid", child, 4, id="kid", createdAt=start + 1, delegationDepth=1, **header)
    report = json.loads(run("sessions", "home", "--format", "json").stdout)
    kid = next(one for one in report["sessions"] if one["session_id"] == "kid")
    assert kid["inherited"] == {"events": 9, "through_turn": 1, "parent_turn": 2}
    assert (kid["parent_session"], kid["agent_preset"]) == ("toy", "scout")
    text = run("sessions", "home").stdout.decode()
    assert "kid inherits 9 events, through turn 1, while the parent was in turn 2" in text
    assert "toy (subagent)" in text and "scout" in text
    assert findings() == []
    assert b"inherits  9 events, through turn 1\n" in run("inspect", f"home/sessions/{KEY}/kid").stdout
    assert run("lint", f"home/sessions/{KEY}/kid").stdout.startswith(b"1 session, 1 clean")
    lead.unlink()
    lead.parent.rmdir()
    assert findings() == [("lint/no-parent", "the parent toy is not here; origin subagent")]


def test_behind_damage_counts_are_lower_bounds() -> None:
    path = at(f"{KEY}/toy", lambda toy: (toy.ask("one"), toy.ask("two"), toy.ask("three")))
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows[:14] + rows[16:]))
    out = run("inspect", "home").stdout.decode().splitlines()
    assert [line.split(" ")[0] for line in out if "at least" in line] == ["events", "turns", "requests"]
    assert "turns     at least 2" in out


def shown(toy: ToySession) -> None:
    """An image in the history."""
    toy.begin("Look")
    facts = {"mediaType": "image/png", "width": 2, "height": 2, "bytes": 70}
    image = {"type": "image", "attachment": {"attachmentId": "sha256:" + "a" * 64, **facts}}
    toy.rows[toy.surface[-1] + 1]["data"]["content"].append(image)
    toy.answer("A well.")
    end_step(toy)


def test_images_whose_objects_are_gone() -> None:
    at(f"{KEY}/toy", shown, 4)
    assert findings() == []
    objects = Path("home/attachments/v1/objects")
    objects.mkdir(parents=True)
    text = "a request that needs its bytes fails as TRANSPORT and nothing is sent"
    assert findings() == [("attachments/missing", f"object sha256:{'a' * 64} is missing: {text}")]
    (objects / "aa").mkdir()
    (objects / "aa" / ("a" * 64)).write_bytes(b"other")
    assert [code for code, _ in findings()] == ["attachments/altered"]
    assert findings("sessions") == []
