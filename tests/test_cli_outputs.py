"""The guard of outputs: whatever an output is called or linked to, inputs stay as they are."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dsh_audit import testing
from dsh_audit.cli.outputs import GuardedFiles, guard_output
from dsh_audit.errors import UsageError
from dsh_audit.golden.store import case_file
from tests.captures import write_bundle
from tests.cli import Done, run
from tests.logs import two_turns

SESSION = "home/sessions/--srv--/toy-1"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A harness home with one session, a capture, a price file, cases and a few links, in a working directory."""
    for folder in (SESSION, "home/attachments/v1/objects/ab", "home/cache", "out"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / SESSION / "session.jsonl").write_bytes(two_turns().plain())
    (tmp_path / "home/attachments/v1/objects/ab/abcd").write_bytes(b"image")
    write_bundle(tmp_path / "sent", [b"{}"])
    (tmp_path / "prices.json").write_text('{"schema": "dsh-audit/prices/1", "models": []}', "utf-8")
    (tmp_path / "instruction").write_text("Summarise.", "utf-8")
    (tmp_path / "deployment.toml").write_text('[constants]\nx = "instruction"\n', "utf-8")
    (tmp_path / "to-log").symlink_to(tmp_path / SESSION / "session.jsonl")
    (tmp_path / "to-body").symlink_to("sent/0000.body")
    (tmp_path / "to-session").symlink_to(SESSION)
    (tmp_path / "to-object").symlink_to("home/attachments/v1/objects/ab/abcd")
    (tmp_path / "to-nothing").symlink_to(Path(SESSION) / "new.json")
    (tmp_path / "hard").hardlink_to(tmp_path / SESSION / "session.jsonl")
    (tmp_path / "to-prices").symlink_to("prices.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


REFUSED = [
    "to-log",
    "to-body",
    "hard",
    "to-object",
    "to-nothing",
    "to-session/session.jsonl",
    "to-session/new.json",
    "to-session/../toy-1/session.jsonl",
    "out/../" + SESSION + "/session.jsonl",
    SESSION + "/new.json",
    "home/sessions/new.json",
    "home/sessions/--srv--/new/x.json",
    "home/attachments/v1/objects/ab/new",
    "home/attachments/new",
    "home/cache/new",
    "sent/new.json",
    "sent/0001.body",
    "to-prices",
    "home/session.jsonl",
    "home/session.v4.jsonl.zstd",
]
COMMANDS = [
    ("cache", "-o", "{}"),
    ("cache", "--report", "json={}"),
    ("cache", "--report", "markdown={}"),
]


@pytest.mark.parametrize("options", COMMANDS, ids=lambda options: options[-1])
@pytest.mark.parametrize("output", REFUSED)
def test_nothing_is_written_where_inputs_are(output: str, options: tuple[str, ...], place: Path) -> None:
    before = files_in(place)
    command, *rest = (item.format(output) for item in options)
    env = {"GITHUB_STEP_SUMMARY": output} if "markdown={}" in options else {}
    done = run(command, "home", "--prices", "prices.json", "--capture", "sent", *rest, env=env)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith(f"error: {output}: ".encode()), done.stderr
    assert files_in(place) == before


EVERY_COMMAND = [
    *[
        (name, "home", "-o", "{}")
        for name in ("sessions", "inspect", "export", "requests", "drift", "uploads", "report")
    ],
    ("render", "home", "--request", "0", "-o", "{}"),
    ("verify", "home", "--capture", "sent", "-o", "{}"),
    ("diff", "home", "home", "-o", "{}"),
    ("encode", "prices.json", "-o", "{}"),
    ("rules", "-o", "{}"),
    ("explain", "log/torn-tail", "-o", "{}"),
    ("golden", "list", "out", "-o", "{}"),
    ("golden", "check", "out", "--log", "home", "-o", "{}"),
    ("golden", "record", "home", "-o", "{}", "--force"),
    ("deployment", "learn", "home", "--capture", "sent", "-o", "{}/x.json"),
]


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=lambda command: " ".join(command[:2]))
def test_every_command_asks_the_guard(command: tuple[str, ...], place: Path) -> None:
    before = files_in(place)
    for output in ("to-session", "to-log") if "{}" in command else ("to-session",):
        target = output if output == "to-log" or "record" in command or "learn" in command else f"{output}/x"
        done = run(*(item.format(target) for item in command), env={"CI": ""})
        assert done.returncode == 2, done.stdout
        assert files_in(place) == before


def test_what_a_deployment_file_names_is_an_input_too(place: Path) -> None:
    done = run("requests", "home", "--deployment", "deployment.toml", "-o", "instruction")
    assert done.returncode == 2
    assert (place / "instruction").read_text("utf-8") == "Summarise."


@pytest.mark.parametrize("output", ["home/report.json", "out/a.json", "home/new", "sent.json"])
def test_elsewhere_is_allowed_and_no_input_afterwards(output: str, place: Path) -> None:
    for _ in range(2):
        done = run("inspect", "home", "--format", "json", "-o", output)
        assert (done.returncode, done.stderr) == (0, b"")
    assert len(json.loads((place / output).read_bytes())["logs"]) == 1
    assert [path.name for path in (place / output).parent.iterdir() if path.name.endswith(".tmp")] == []


def test_a_loose_log_has_no_directory_of_its_own(place: Path) -> None:
    shutil.copy(place / SESSION / "session.jsonl", place / "out")
    assert run("inspect", "out/session.jsonl", "-o", "out/x").returncode == 0
    assert run("inspect", "out", "-o", "out/x").returncode == 2


def test_a_file_is_replaced_in_one_step_with_its_mode_and_links(place: Path) -> None:
    old = place / "out" / "old"
    old.write_bytes(b"old")
    old.chmod(0o640)
    (place / "link").symlink_to("out/old")
    inode = old.stat().st_ino
    assert run("rules", "-o", "link").returncode == 0
    assert (place / "link").is_symlink()
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert old.stat().st_ino != inode and old.read_bytes().startswith(b"log\n")


def test_a_run_that_fails_leaves_the_old_file(place: Path) -> None:
    (place / "out" / "old").write_bytes(b"old")
    rows = two_turns().plain().splitlines(keepends=True)
    (place / SESSION / "session.jsonl").write_bytes(b"".join(rows[:4]) + b"?\n")
    assert run("export", "home", "--generation", "7", "-o", "out/old").returncode == 2
    assert (place / "out" / "old").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_pipes_and_devices_are_written_directly(place: Path) -> None:
    pipe, got = place / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    assert run("rules", "-o", pipe).returncode == 0
    reader.join(10)
    assert got and got[0].startswith(b"log\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert run("rules", "-o", "/dev/null").returncode == 0
    if Path("/dev/full").exists():
        assert b"No space left" in run("rules", "-o", "/dev/full").stderr


@pytest.mark.parametrize("name", ["", "a\0b", "none/x", "out"])
def test_a_place_that_cannot_be_written_is_one_error(name: str, place: Path) -> None:
    done: Done = run("requests", "home", "-o", name)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") <= 4 and b"Traceback" not in done.stderr


CHANGES: list[Callable[[GuardedFiles, Path], None]] = [
    lambda files, path: files.write(path, b"x"),
    lambda files, path: files.remove(path),
]


@pytest.mark.parametrize("change", CHANGES, ids=["write", "remove"])
@pytest.mark.parametrize("name", ["to-log", "to-session/session.jsonl", "hard"])
def test_golden_files_go_through_the_guard(
    name: str, change: Callable[[GuardedFiles, Path], None], place: Path
) -> None:
    before = files_in(place)
    with pytest.raises(UsageError):
        change(GuardedFiles("home"), place / name)
    assert files_in(place) == before


def test_a_golden_check_writes_nothing_through_a_link(place: Path) -> None:
    (place / "hard").unlink()
    case = case_file(Path("out"), "a")
    case.pending.symlink_to(place / SESSION / "session.jsonl")
    before = files_in(place)
    result = testing.check_golden("home", "a", testing.GoldenCheck(Path("out"), may_write=True))
    assert result.state == "missing" and "nothing is written inside a session directory" in result.reason
    assert files_in(place) == before


def test_two_outputs_at_one_place_are_told_apart_by_what_they_are(place: Path) -> None:
    (place / "also").symlink_to("out")
    done = run("inspect", "home", "--report", "json=out/x", "--report", "junit=also/x")
    assert b"two reports go to the same place" in done.stderr


def test_the_inputs_of_a_tool_author_can_be_given(place: Path) -> None:
    assert guard_output("out/x", [place / "prices.json"]) == (place / "out" / "x").resolve()
    with pytest.raises(UsageError, match="overwrite an input"):
        guard_output("to-prices", [place / "prices.json"])
