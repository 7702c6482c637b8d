"""Golden cases: what is pinned, what is told when it changes, and when files are written."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.cli.common import read_schema
from dsh_audit.golden.case import GoldenError, parse_case, render_case
from dsh_audit.golden.store import is_ci
from tests.cli import Done, run
from tests.golden_logs import EDITS, GOLDEN, TOOLS_LOG, Edit, add_tool, edited, nothing
from tests.logs import two_turns


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("CI", raising=False)
    yield


def golden(*arguments: str | Path, status: int = 0, ci: str = "") -> Done:
    done = run("golden", *arguments, env={"CI": ci})
    assert done.returncode == status, (done.stdout + done.stderr).decode()
    return done


def check(*arguments: str | Path, status: int = 0, ci: str = "") -> dict[str, Any]:
    value: dict[str, Any] = json.loads(golden("check", *arguments, "--format", "json", status=status, ci=ci).stdout)
    Draft202012Validator(read_schema("golden-check")).validate(value)
    return value


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return edited(TOOLS_LOG, tmp_path / "logs" / "session.jsonl", nothing)


@pytest.fixture
def cases(tmp_path: Path, log: Path) -> Path:
    folder = tmp_path / "cases"
    golden("record", log, "-o", folder, "--name", "tools")
    return folder


def test_a_recorded_case_matches_and_is_valid(cases: Path) -> None:
    (case,) = check(cases)["cases"]
    assert (case["state"], case["requests"], case["changes"]) == ("matched", 5, [])
    value = json.loads((cases / "tools.golden.json").read_bytes())
    Draft202012Validator(read_schema("golden")).validate(value)
    assert value["log"] == {"path": "../logs/session.jsonl", "session_id": "sess-1", "format_version": 0}
    assert [request["messages"]["count"] for request in value["requests"]] == [1, 5, 8, 10, 12]
    assert (len(value["threads"]), len(value["tools"]), len(value["systems"])) == (1, 1, 1)
    assert value["requests"][1]["body"]["size"] == 1363


def test_digests_only_unless_full(cases: Path, log: Path) -> None:
    secrets = (b"village", b"Visit the houses", b"All errands", b"house")
    plain = (cases / "tools.golden.json").read_bytes()
    assert not [secret for secret in secrets if secret in plain]
    golden("record", log, "-o", cases, "--name", "full", "--full")
    full = (cases / "full.golden.json").read_bytes()
    assert all(secret in full for secret in secrets)
    Draft202012Validator(read_schema("golden")).validate(json.loads(full))


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("full", [False, True], ids=["digests", "full"])
def test_every_kind_of_change_is_explained(name: str, full: bool, log: Path, tmp_path: Path) -> None:
    edit, cause, message, pointer = EDITS[name]
    folder = tmp_path / "cases"
    golden("record", log, "-o", folder, "--name", "tools", *(["--full"] if full else []))
    edited(TOOLS_LOG, log, edit)
    value = check(folder, status=1)
    (case,) = value["cases"]
    assert case["state"] == "changed"
    (change,) = case["changes"]
    assert change["cause"] == cause
    assert message in change["message"]
    assert change["pointer"] == pointer
    assert [finding["code"] for finding in value["findings"]] == ["golden/changed"]
    text = golden("check", folder, status=1).stdout.decode()
    assert message in text
    golden("accept", folder)
    assert check(folder)["summary"]["matched"] == 1


def test_a_change_is_told_once_with_all_its_requests(log: Path, cases: Path) -> None:
    edited(TOOLS_LOG, log, EDITS["result-changed"][0])
    (change,) = check(cases, status=1)["cases"][0]["changes"]
    assert change["requests"] == [1, 2, 3, 4]
    assert change["seq"] == 28
    assert change["within"] == ["/content/0/content/0/text"]


def test_full_cases_show_both_sides(log: Path, tmp_path: Path) -> None:
    golden("record", log, "-o", tmp_path / "cases", "--full")
    edited(TOOLS_LOG, log, EDITS["message-changed"][0])
    (change,) = check(tmp_path / "cases", status=1)["cases"][0]["changes"]
    assert (change["expected"], change["actual"]) == ('"Visit the houses"', '"Visit the gardens"')


def test_nothing_is_written_under_ci(log: Path, cases: Path) -> None:
    edited(TOOLS_LOG, log, add_tool)
    before = listing(cases)
    for ci in ("1", "true", "yes"):
        assert check(cases, status=1, ci=ci)["cases"][0]["written"] is False
        assert b"CI is set" in golden("accept", cases, status=2, ci=ci).stderr
        assert b"CI is set" in golden("reject", cases, status=2, ci=ci).stderr
        assert b"CI is set" in golden("record", log, "-o", cases, status=2, ci=ci).stderr
        assert listing(cases) == before
    check(cases, "--force", status=1, ci="1")
    assert listing(cases).keys() - before.keys() == {"tools.golden.json.new"}
    golden("accept", cases, "--force", ci="1")
    assert check(cases, ci="1")["summary"]["matched"] == 1


@pytest.mark.parametrize(
    ("value", "expected"), [("", False), ("0", False), ("false", False), ("1", True), ("true", True), ("x", True)]
)
def test_what_counts_as_ci(value: str, expected: bool) -> None:
    assert is_ci({"CI": value}) is expected
    assert not is_ci({})


def test_the_five_states_are_distinct(log: Path, cases: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    golden("record", log, "-o", other, "--name", "tools")
    golden("record", log, "-o", other, "--name", "changed")
    (other / "gone.golden.json").write_bytes((other / "tools.golden.json").read_bytes().replace(b"sess-1", b"sess-0"))
    data = json.loads((other / "changed.golden.json").read_bytes())
    data["requests"][0]["settings"]["maxTokens"] = 1
    data["requests"][0]["body"]["sha256"] = "0" * 64
    data["log"]["session_id"] = "sess-2"
    (other / "changed.golden.json").write_text(json.dumps(data))
    runs = tmp_path / "runs"
    for ident in ("sess-1", "sess-2", "sess-3"):
        edited(TOOLS_LOG, runs / ident / "session.jsonl", _renamed(ident))
    states = {case["name"]: case["state"] for case in check(other, "--log", runs, status=1, ci="1")["cases"]}
    assert states == {"tools": "matched", "changed": "changed", "sess-3": "missing", "gone": "unused"}
    states = {case["name"]: case["state"] for case in check(other, "--log", runs, status=1)["cases"]}
    assert states == {"tools": "matched", "changed": "changed", "sess-3": "new", "gone": "unused"}
    rows = {row["name"]: row for row in json.loads(golden("list", other, "--format", "json").stdout)["cases"]}
    assert (rows["sess-3"]["recorded"], rows["sess-3"]["pending"]) == (False, True)
    golden("accept", other)
    assert check(other, "--log", runs, "--unused", "warn")["summary"] == {
        "matched": 3, "changed": 0, "missing": 0, "new": 0, "unused": 1,
    }  # fmt: skip


def _renamed(ident: str) -> Edit:
    def edit(rows: list[dict[str, Any]]) -> None:
        rows[0]["id"] = ident

    return edit


def test_a_case_without_its_log_is_missing(cases: Path, log: Path) -> None:
    log.unlink()
    (case,) = check(cases, status=1)["cases"]
    assert case["state"] == "missing"
    assert "no such file" in case["reason"]


def test_a_pending_case_goes_when_the_case_holds_again(cases: Path, log: Path) -> None:
    edited(TOOLS_LOG, log, add_tool)
    check(cases, status=1)
    assert (cases / "tools.golden.json.new").exists()
    edited(TOOLS_LOG, log, nothing)
    check(cases)
    assert not (cases / "tools.golden.json.new").exists()


def test_review_lists_what_waits(cases: Path, log: Path) -> None:
    assert golden("review", cases).stdout == b"nothing waits to be accepted\n"
    edited(TOOLS_LOG, log, add_tool)
    check(cases, status=1)
    text = golden("review", cases, status=1).stdout.decode()
    assert "tool added: weather" in text
    golden("reject", cases, "tools")
    golden("review", cases)
    assert b"nothing waits" in golden("accept", cases, "tools", status=2).stderr
    assert b"no golden case 'x'" in golden("accept", cases, "x", status=2).stderr


def test_record_refuses_to_replace_and_what_was_never_sent(cases: Path, log: Path, tmp_path: Path) -> None:
    assert b"exists" in golden("record", log, "-o", cases, "--name", "tools", status=2).stderr
    captures = GOLDEN / "v0-tools" / "captures"
    golden("record", log, "--capture", captures, "-o", cases, "--name", "captured")
    value = json.loads((cases / "captured.golden.json").read_bytes())
    assert {request["verified"] for request in value["requests"]} == {"identical"}
    edited(TOOLS_LOG, log, add_tool)
    done = golden("record", log, "--capture", captures, "-o", cases, "--name", "false", status=1)
    assert b"golden/not-as-captured" in done.stdout
    assert not (cases / "false.golden.json").exists()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a golden file"),
        (b"<<<<<<< ours\n{}", "not a golden file"),
        (b"[]", "schema None"),
        (b'{"schema":"dsh-audit/golden/2"}', "schema 'dsh-audit/golden/2'"),
        (b'{"schema":"dsh-audit/golden/1"}', "missing or malformed"),
        (b"\xff\xfe", "not a golden file"),
    ],
)
def test_a_broken_golden_file_is_told_and_hides_no_other(data: bytes, why: str, cases: Path) -> None:
    (cases / "broken.golden.json").write_bytes(data)
    found = {case["name"]: case for case in check(cases, status=1)["cases"]}
    assert found["tools"]["state"] == "matched"
    assert found["broken"]["state"] == "missing"
    assert why in found["broken"]["reason"]
    assert why in golden("list", cases).stdout.decode()


@pytest.mark.parametrize("path", ["/dev/zero", "/etc/passwd", "C:/x", "a\0b"])
@pytest.mark.parametrize("member", ["log", "deployment"])
def test_a_case_cannot_name_files_by_absolute_paths(member: str, path: str, cases: Path) -> None:
    content = json.loads((cases / "tools.golden.json").read_bytes())
    if member == "log":
        content["log"]["path"] = path
    else:
        content["deployment"] = path
    (cases / "hostile.golden.json").write_text(json.dumps(content))
    found = {case["name"]: case for case in check(cases, status=1)["cases"]}
    assert found["tools"]["state"] == "matched"
    assert found["hostile"]["state"] == "missing"
    assert "not a path relative to the golden file" in found["hostile"]["reason"]


def test_parse_is_the_inverse_of_render(cases: Path) -> None:
    data = (cases / "tools.golden.json").read_bytes()
    assert render_case(parse_case(data, name="tools")) == data
    for index in (1, 99, -1):
        raw = json.loads(data)
        raw["requests"][0]["messages"]["thread"] = index
        with pytest.raises(GoldenError):
            parse_case(json.dumps(raw).encode(), name="tools")


def test_every_golden_log_records_and_matches(tmp_path: Path) -> None:
    names = sorted(path.parent.name for path in GOLDEN.glob("*/sessions"))
    for name in names[::3]:
        declared = ("--normalise", "uuids", "--normalise", "times")
        golden("record", GOLDEN / name / "sessions", "-o", tmp_path / name, *declared)
    value = check(tmp_path, "--jobs", "1")
    assert value["summary"]["matched"] == len(value["cases"]) >= len(names[::3])
    for path in tmp_path.rglob("*.golden.json"):
        Draft202012Validator(read_schema("golden")).validate(json.loads(path.read_bytes()))


def test_parallel_and_serial_checks_print_the_same(cases: Path, log: Path) -> None:
    for number in range(4):
        golden("record", log, "-o", cases, "--name", f"case-{number}")
    edited(TOOLS_LOG, log, add_tool)
    serial = check(cases, "--jobs", "1", status=1, ci="1")
    assert serial == check(cases, "--jobs", "2", status=1, ci="1")
    assert serial["summary"]["changed"] == 5


def test_a_later_run_is_compared_with_log(cases: Path, tmp_path: Path) -> None:
    again = edited(TOOLS_LOG, tmp_path / "again" / "session.jsonl", _renamed("another"))
    assert check(cases, "--log", again)["summary"]["matched"] == 1
    toy = tmp_path / "toy.jsonl"
    toy.write_bytes(two_turns().plain())
    changes = check(cases, "--log", toy, status=1)["cases"][0]["changes"]
    causes = {change["cause"] for change in changes}
    assert {"request-removed", "tool-added", "tool-removed", "prompt-edited", "route-changed"} <= causes


def test_the_remembered_path_holds_from_any_directory(cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases)
    (case,) = check(".")["cases"]
    assert (case["log"], case["path"]) == (str(Path("..", "logs", "session.jsonl")), "tools.golden.json")


@pytest.mark.parametrize(("answer", "status", "left"), [("a", 0, "accepted"), ("r", 0, "rejected"), ("s", 1, "waits")])
def test_review_on_a_terminal_asks(answer: str, status: int, left: str, cases: Path, log: Path) -> None:
    before = (cases / "tools.golden.json").read_bytes()
    edited(TOOLS_LOG, log, add_tool)
    check(cases, status=1)
    pending = (cases / "tools.golden.json.new").read_bytes()
    main, side = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": str(GOLDEN.parent / "src"), "NO_COLOR": "1", "CI": ""}
    command = [sys.executable, "-m", "dsh_audit", "golden", "review", str(cases)]
    os.write(main, f"{answer}\n".encode())
    done = subprocess.run(command, stdin=side, stdout=side, stderr=subprocess.PIPE, env=environ, check=False)
    text = os.read(main, 100_000).decode() + done.stderr.decode()
    os.close(side)
    os.close(main)
    assert done.returncode == status, text
    assert "tool added: weather" in text
    assert "accept, reject or skip" in text
    assert (cases / "tools.golden.json").read_bytes() == (pending if left == "accepted" else before)
    assert (cases / "tools.golden.json.new").exists() == (left == "waits")


def test_moved_logs_of_one_id_find_their_own_cases(tmp_path: Path) -> None:
    golden_logs = Path(__file__).parent.parent / "golden"
    names = sorted(path.parent.name for path in golden_logs.glob("v4-*/sessions"))[:12]
    for name in names:
        shutil.copytree(golden_logs / name / "sessions", tmp_path / "old" / name)
    golden("record", tmp_path / "old", "-o", tmp_path / "cases")
    (tmp_path / "old").rename(tmp_path / "new")
    found = check(tmp_path / "cases", "--log", tmp_path / "new")["cases"]
    assert len(found) >= len(names) and {case["state"] for case in found} == {"matched"}
