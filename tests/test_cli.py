"""The commands as a user runs them: output, exit status, and bad input of every kind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.deployment import Deployment
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Replay
from dsh_audit.text import ecma
from tests.captures import write_bundle
from tests.cli import Done, run
from tests.logs import SessionV0, frame, two_turns

SCHEMAS = Path(__file__).parent.parent / "schemas"
GOLDEN = Path(__file__).parent.parent / "golden"


def run_json(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.returncode == status, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    name = value["schema"].split("/")[1]
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))).validate(value)
    return value


def bodies_of(session: SessionV0) -> list[bytes]:
    encoded = (rebuilt.encoded.body for rebuilt in Replay(build_history(session.log()), Deployment()))
    return [body.to_bytes() for body in encoded if body is not None]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(two_turns().plain())
    return path


def test_requests_lists_every_request(log: Path) -> None:
    value = run_json("requests", log)
    assert [(row["kind"], row["turn"], row["step"], row["claim"]) for row in value["requests"]] == [
        ("step", 1, 1, "bytes"),
        ("step", 1, 2, "bytes"),
        ("step", 2, 1, "bytes"),
    ]
    assert value["log"]["session_id"] == "toy-1"
    text = run("requests", log)
    assert text.returncode == 0
    assert b"3 rebuilt to the byte" in text.stdout


def test_render_gives_exact_bytes(log: Path) -> None:
    for index, body in enumerate(bodies_of(two_turns())):
        done = run("render", log, "--request", str(index))
        assert (done.returncode, done.stdout) == (0, body)
    messages = json.loads(run("render", log, "--request", "0", "--part", "messages").stdout)
    assert [message["role"] for message in messages] == ["system", "user"]
    missing = run("render", log, "--request", "9")
    assert missing.returncode == 2
    assert b"there is no request 9" in missing.stderr


def test_verify_counts_and_exit_status(log: Path, tmp_path: Path) -> None:
    bodies = bodies_of(two_turns())
    capture = write_bundle(tmp_path / "captures", bodies)
    assert run_json("verify", log, "--capture", capture)["summary"]["identical"] == 3
    write_bundle(tmp_path / "captures", [bodies[0], bodies[1].replace(b"Three", b"Trees").replace(b'"3"', b'"4"')])
    value = run_json("verify", log, "--capture", capture, status=1)
    (pair,) = [pair for pair in value["pairs"] if pair["verdict"] == "different"]
    assert pair["first_difference"]["pointer"] == "/messages/3/content"
    assert pair["first_difference"]["seq"] == next(r["seq"] for r in two_turns().rows if r["type"] == "tool/result")


def test_extra_members_of_a_capture_are_named(log: Path, tmp_path: Path) -> None:
    bodies = [body[:-1] + b',"dsh_plugin_packages":{"version":1,"packages":[]}}' for body in bodies_of(two_turns())]
    value = run_json("verify", log, "--capture", write_bundle(tmp_path / "c", bodies))
    assert value["summary"]["identical_except_unlogged"] == 3
    assert [item["name"] for item in value["pairs"][0]["unlogged"]] == ["dsh_plugin_packages"]


def test_a_verification_that_compared_nothing_is_not_clean() -> None:
    case = GOLDEN / "v4-pi-completions"
    arguments = ("verify", case / "sessions", "--capture", case / "captures")
    value = run_json(*arguments, status=1)
    assert [item["code"] for item in value["findings"] if item["severity"] == "error"] == ["wire/nothing-compared"]
    text = run(*arguments).stdout
    assert text.startswith(b"FAIL 6 captured")
    assert b'the deployment has no profile for provider "toy"' in text
    assert b"6 other captured requests not shown: names no session" in text
    done = run(*arguments, "--deployment", case / "deployment.json")
    assert (done.returncode, done.stdout[:3]) == (0, b"OK ")


def test_a_partial_verification_says_so(log: Path, tmp_path: Path) -> None:
    capture = write_bundle(tmp_path / "some", bodies_of(two_turns())[:2])
    done = run("verify", log, "--capture", capture)
    assert done.returncode == 0
    assert done.stdout.startswith(b"INCOMPLETE 2 captured requests: 2 identical; 1 not captured")


@pytest.mark.parametrize("group", [(), ("golden",), ("deployment",)])
def test_no_summary_of_a_command_is_cut_off_on_80_columns(group: tuple[str, ...]) -> None:
    text = run(*group, "--help", env={"COLUMNS": "80"}).stdout.decode()
    listed = text.partition("Commands:\n")[2].splitlines()
    assert listed
    assert all(line.endswith(".") and not line.endswith("...") and len(line) <= 80 for line in listed)


def test_no_secret_reaches_any_output(log: Path, tmp_path: Path) -> None:
    capture = write_bundle(tmp_path / "c", bodies_of(two_turns()))
    for output_format in ("text", "json"):
        done = run("verify", log, "--capture", capture, "--format", output_format)
        assert b"sk-secret" not in done.stdout + done.stderr


def test_export_is_jsonl_that_reads_the_same(log: Path, tmp_path: Path) -> None:
    done = run("export", log)
    assert done.returncode == 0
    again = tmp_path / "again" / "session.jsonl"
    again.parent.mkdir()
    again.write_bytes(done.stdout)
    assert run("export", again).stdout == done.stdout
    assert run_json("requests", again)["requests"] == run_json("requests", log)["requests"]


def test_sessions_and_inspect(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "sessions" / "--srv-toy--" / "toy-2" / "session.jsonl.zstd"
    other.parent.mkdir(parents=True)
    other.write_bytes(SessionV0("toy-2").zstd())
    value = run_json("sessions", tmp_path)
    assert [row["session_id"] for row in value["sessions"]] == ["toy-2", "toy-1"] or len(value["sessions"]) == 2
    assert run_json("inspect", log)["logs"][0]["health"] == "ok"
    assert run_json("inspect", log, "--schema")["logs"][0]["findings"] == []


def test_a_session_id_or_prefix_in_the_default_home(tmp_path: Path) -> None:
    for ident in ("abc-1", "abd-2"):
        path = tmp_path / "sessions" / "--srv--" / ident / "session.jsonl"
        path.parent.mkdir(parents=True)
        session = two_turns()
        session.rows[0]["id"] = ident
        path.write_bytes(session.plain())
    env = {"DSH_HOME": str(tmp_path)}
    assert run("requests", "abc", env=env).returncode == 0
    ambiguous = run("requests", "ab", env=env)
    assert ambiguous.returncode == 2
    assert run("requests", tmp_path, "--session", "abd-2").returncode == 0


def test_one_bad_log_never_stops_the_others(log: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad" / "session.jsonl"
    bad.parent.mkdir()
    bad.write_bytes(b"")
    value = run_json("inspect", log, bad, status=1)
    assert [entry["session_id"] for entry in value["logs"]] == ["toy-1"]
    assert [finding["code"] for finding in value["findings"]] == ["log/unreadable"]


def test_the_input_is_never_overwritten(log: Path) -> None:
    before = log.read_bytes()
    done = run("requests", log, "-o", log)
    assert done.returncode == 2
    assert log.read_bytes() == before


@pytest.mark.parametrize("link", ["hardlink_to", "symlink_to"])
def test_the_input_is_not_overwritten_through_a_link(link: str, log: Path) -> None:
    before, other = log.read_bytes(), log.parent / "out.txt"
    getattr(other, link)(log)
    assert_clean(run("requests", log, "-o", other), 2)
    assert log.read_bytes() == before


def test_an_output_that_cannot_exist_is_one_error_line(log: Path) -> None:
    assert_clean(run("requests", log, "-o", log.parent / ("a" * 300)), 2)


PLAIN = two_turns().plain()
ROWS = PLAIN.splitlines(keepends=True)


def unknown(ignorable: bool) -> bytes:
    session = two_turns()
    session.add("acme/x", {}, **({"ignorable": True} if ignorable else {}))
    return session.plain()


BAD_LOGS: list[tuple[str, bytes, int]] = [
    ("empty file", b"", 2),
    ("not zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 50, 2),
    ("single frame", frame(PLAIN), 1),
    ("wrong magic mid-file", frame(ROWS[0]) + frame(ROWS[1]) + b"nope" + frame(ROWS[2]), 1),
    ("seq gap", b"".join(ROWS[:4] + ROWS[5:]), 1),
    ("seq rewind", b"".join(ROWS[:6] + ROWS[3:]), 1),
    ("duplicate seq", b"".join(ROWS[:5] + ROWS[4:]), 1),
    ("unknown required event", unknown(False), 1),
    ("unknown ignorable event", unknown(True), 0),
    ("invalid UTF-8", b"".join([*ROWS[:3], b'{"type":"\xff"}\n', *ROWS[3:]]), 1),
    ("100 MB line", ROWS[0] + b'"' + b"x" * 100_000_000 + b'"\n', 1),
    ("100 MB of open brackets", ROWS[0] + b"[" * 100_000_000 + b"\n", 1),
    ("10,000-deep JSON", ROWS[0] + b"[" * 10_000 + b"]" * 10_000 + b"\n", 1),
    ("a binary file", bytes(range(256)) * 40, 2),
    ("a huge number as seq", ROWS[0] + b'{"type":"x","seq":' + b"9" * 100_000 + b',"time":1,"data":0}\n', 1),
]


@pytest.mark.parametrize(("what", "data", "status"), BAD_LOGS, ids=[case[0] for case in BAD_LOGS])
def test_bad_logs(what: str, data: bytes, status: int, tmp_path: Path) -> None:
    path = tmp_path / ("session.jsonl.zstd" if data[:4] == b"\x28\xb5\x2f\xfd" else "session.jsonl")
    path.write_bytes(data)
    for command in ("inspect", "requests"):
        assert_clean(run(command, path), status)


def assert_clean(done: Done, status: int) -> None:
    output = done.stdout + done.stderr
    assert done.returncode == status, output[-2000:]
    assert b"Traceback" not in output
    assert b"internal error" not in output
    if status == 2:
        assert done.stderr.startswith(b"error: ")
        assert len(done.stderr.splitlines()) <= 2


def traversal_zip(path: Path) -> Path:
    target = path / "evil.zip"
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("../../escaped/session.jsonl", two_turns().plain())
    return target


def truncated_har(path: Path) -> Path:
    target = path / "x.har"
    target.write_bytes(b'{"log":{"version":"1.2","entries":[{"request":{"method":"POST"')
    return target


def test_a_zip_with_traversal_names_is_read_and_nothing_is_extracted(tmp_path: Path) -> None:
    done = run("requests", traversal_zip(tmp_path))
    assert_clean(done, 1)
    assert b"log/unsafe-member" in done.stdout
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["evil.zip"]


BAD_CAPTURES: list[tuple[str, Callable[[Path], Path], int]] = [
    ("truncated HAR", truncated_har, 2),
    ("missing", lambda path: path / "nothing", 2),
    ("empty directory", lambda path: path, 2),
]


@pytest.mark.parametrize(("what", "make", "status"), BAD_CAPTURES, ids=[case[0] for case in BAD_CAPTURES])
def test_bad_captures(what: str, make: Callable[[Path], Path], status: int, log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    folder.mkdir()
    assert_clean(run("verify", log, "--capture", make(folder)), status)


def test_captures_without_bodies_are_findings(log: Path, tmp_path: Path) -> None:
    capture = write_bundle(tmp_path / "c", bodies_of(two_turns()))
    for body in capture.glob("*.body"):
        body.unlink()
    assert_clean(run("verify", log, "--capture", capture), 1)


def test_a_directory_without_sessions(tmp_path: Path) -> None:
    assert_clean(run("inspect", tmp_path), 2)
    assert_clean(run("requests", tmp_path / "missing"), 2)


def test_same_input_same_output_in_every_process(log: Path) -> None:
    outputs = set()
    for seed in "12":
        command = [sys.executable, "-m", "dsh_audit", "requests", str(log), "--format", "json"]
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        outputs.add(done.stdout)
    assert outputs == {run("requests", log, "--format", "json").stdout}


def test_lone_surrogates_survive_every_report(tmp_path: Path) -> None:
    session = SessionV0()
    session.simple_turn("half \ud83d", "ok \udc00")
    path = tmp_path / "session.jsonl"
    path.write_bytes(session.plain())
    assert ecma.parse(path.read_bytes().splitlines()[3])
    bodies = bodies_of(session)
    assert rb"half \ud83d" in bodies[0]
    capture = write_bundle(tmp_path / "c", [bodies[0].replace(rb"\ud83d", b"x")])
    for output_format in ("text", "json"):
        assert_clean(run("verify", path, "--capture", capture, "--format", output_format), 1)


def test_a_newer_format_is_refused_and_the_older_generation_stays_readable(tmp_path: Path) -> None:
    folder = tmp_path / "toy-1"
    folder.mkdir()
    (folder / "session.jsonl").write_bytes(two_turns().plain())
    (folder / "session.v5.jsonl").write_bytes(b'{"type":"session","version":5,"id":"toy-1"}\n')
    refused = run("requests", folder)
    assert_clean(refused, 2)
    assert b"format 5 is not supported" in refused.stderr
    assert b"--generation 0" in refused.stderr
    assert len(run_json("requests", folder, "--generation", "0")["requests"]) == 3


@pytest.mark.parametrize("named", ["a" * 300, "a/" * 3000 + "a", "nul\0byte"])
def test_a_path_that_cannot_exist_is_one_error_line(named: str) -> None:
    done = run("inspect", named)
    assert_clean(done, 2)
    assert b"no such file" in done.stderr


@pytest.mark.usefixtures("log")
def test_a_folder_that_cannot_be_listed_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()
    real = os.scandir

    def scandir(path: Path) -> Any:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = run_json("inspect", tmp_path, status=1)
    assert [finding["code"] for finding in report["findings"]] == ["log/unreadable"]
    assert_clean(run("inspect", tmp_path / "locked"), 2)


@pytest.mark.parametrize("command", ["export", "requests"])
def test_a_closed_pipe_and_a_full_disk_are_no_findings(command: str, tmp_path: Path) -> None:
    session = two_turns()
    for turn in range(300):
        session.simple_turn("Again " + "x" * 1000, str(turn))
    (tmp_path / "session.jsonl").write_bytes(session.plain())
    words = [sys.executable, "-m", "dsh_audit", command, str(tmp_path)]
    reader, writer = os.pipe()
    os.close(reader)
    closed = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (closed.returncode, closed.stderr) == (2, b"")
    full = Path("/dev/full")
    if full.exists():
        with full.open("wb") as stream:
            done = subprocess.run(words, stdout=stream, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(b"error: reading or writing failed: No space")


PLANTED = """
import dsh_audit.replay.session_replay as module
def broken(*_args, **_kwargs):
    raise TypeError("planted")
module.Replay.__iter__ = broken
from dsh_audit.cli.main import run
run()
"""


@pytest.mark.parametrize("words", [["--debug", "requests"], ["requests", "--debug"], ["requests"]])
def test_a_fault_of_ours_is_one_line_and_its_place_only_when_asked_for(words: list[str], log: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PLANTED, *words, str(log)], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert ("Traceback" in done.stderr and "planted" in done.stderr) == ("--debug" in words)
    assert "error: internal error: TypeError\n" in done.stderr
    assert "--debug" in words or len(done.stderr.splitlines()) == 2


def test_paths_that_begin_with_dashes(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "--srv-toy--"
    folder.mkdir()
    log.rename(folder / "session.jsonl")
    monkeypatch.chdir(tmp_path)
    for words in (
        ["inspect"],
        ["requests"],
        ["cache"],
        ["drift"],
        ["export"],
        ["render", "--request", "0"],
        ["sessions"],
    ):
        assert run(*words, "--", "--srv-toy--").returncode == 0, words
        refused = run(*words, "--srv-toy--")
        assert refused.returncode == 2 and b"hint: a path that begins with -" in refused.stderr
    assert b"hint: a path" not in run("inspect", "--nonsense", ".").stderr


def test_every_command_chooses_a_session_in_the_same_way(log: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "home" / "sessions" / "--srv--" / name).mkdir(parents=True)
        shutil.copy(log, tmp_path / "home" / "sessions" / "--srv--" / name)
    home = tmp_path / "home"
    for words in (["sessions"], ["inspect"], ["requests"], ["cache"], ["drift"], ["export"], ["uploads"]):
        assert run(*words, home, "--session", "tw").returncode == 0, words
        assert b"no session 'three'" in run(*words, home, "--session", "three").stderr
    assert len(run_json("sessions", home)["sessions"]) == 2
