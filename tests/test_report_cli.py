"""``--format``, ``--report``, ``-o``, ``--exit-zero``: what is written where, and that the exit status stays."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.cli.reporting import disarm
from dsh_audit.deployment import Deployment
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Replay
from dsh_audit.report.renderers import FORMATS
from tests.captures import write_bundle
from tests.cli import run
from tests.logs import SessionV0, two_turns
from tests.test_report_sarif import VALIDATOR

SCHEMAS = Path(__file__).parent.parent / "schemas"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to run in: ``log``, ``good`` and ``bad`` captures of it, ``broken`` as a log."""
    rebuilt = Replay(build_history(two_turns().log()), Deployment())
    bodies = [body.to_bytes() for item in rebuilt if (body := item.encoded.body) is not None]
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "session.jsonl").write_bytes(two_turns().plain())
    (tmp_path / "broken").mkdir()
    rows = two_turns().plain().splitlines(keepends=True)
    (tmp_path / "broken" / "session.jsonl").write_bytes(b"".join(rows[:4] + rows[5:]))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "session.jsonl").write_bytes(SessionV0("toy-2").plain())
    write_bundle(tmp_path / "good", bodies)
    field = b',"dsh_session_log":{"afterSeq":-1,"throughSeq":2,"events":[]}}'
    write_bundle(tmp_path / "sent", [bodies[0][:-1] + field])
    write_bundle(tmp_path / "bad", [bodies[0], bodies[1].replace(b'"3"', b'"4"'), b"{}"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNS: list[tuple[list[str], int]] = [
    (["verify", "log", "--capture", "good"], 0),
    (["verify", "log", "--capture", "bad"], 1),
    (["verify", "log", "--capture", "missing"], 2),
    (["inspect", "log"], 0),
    (["inspect", "broken", "log"], 1),
    (["inspect", "missing"], 2),
    (["sessions", "log"], 0),
    (["sessions", "."], 1),
    (["requests", "log"], 0),
    (["requests", "broken"], 1),
    (["drift", "log"], 0),
    (["cache", "log"], 0),
    (["cache", "log", "--fail-on", "busts>5", "--fail-on", "requests>1"], 1),
    (["cache", "log", "other", "--fail-on", "requests<3"], 1),
    (["uploads", "log"], 0),
    (["uploads", "log", "--capture", "sent", "--fail-on-upload"], 1),
]


@pytest.mark.parametrize(("command", "status"), RUNS, ids=[" ".join(command) for command, _ in RUNS])
def test_no_format_changes_the_verdict(command: list[str], status: int, place: Path) -> None:
    assert run(*command).returncode == status
    for name in FORMATS:
        assert run(*command, "--format", name).returncode == status
        assert run(*command, "--report", f"{name}=-").returncode == status
    reports = [item for name in FORMATS for item in ("--report", f"{name}=out/{name}")]
    assert run(*command, *reports).returncode == status
    assert run(*command, "--exit-zero").returncode == (2 if status == 2 else 0)
    assert_consistent(place / "out", status)


def assert_consistent(out: Path, status: int) -> None:
    """Every file is well-formed and says what the exit status says."""
    assert {path.name for path in out.iterdir()} == set(FORMATS)
    verdict = ("passed", "failed", "error")[status]
    suites = ElementTree.fromstring((out / "junit").read_bytes())
    assert (int(suites.get("failures", "")) > 0) == (status == 1)
    assert (int(suites.get("errors", "")) > 0) == (status == 2)
    assert int(suites.get("tests", "")) == len(suites.findall(".//testcase"))
    sarif = json.loads((out / "sarif").read_bytes())
    VALIDATOR.validate(sarif)
    assert sarif["runs"][0]["invocations"][0]["exitCode"] == status
    assert f": {verdict}" in (out / "markdown").read_text("utf-8").splitlines()[0]
    assert (out / "github").read_text("utf-8").startswith("::notice" if status == 0 else "::error")
    payload = json.loads((out / "json").read_bytes())
    schema = SCHEMAS / f"{payload['schema'].split('/')[1]}.schema.json"
    Draft202012Validator(json.loads(schema.read_bytes())).validate(payload)


def test_a_report_on_stdout_moves_the_text_to_stderr(place: Path) -> None:
    done = run("inspect", "log", "--report", "json=-")
    assert json.loads(done.stdout)["schema"] == "dsh-audit/inspect/1"
    assert done.stderr == run("inspect", "log").stdout
    done = run("inspect", "log", "-o", "text.txt", "--report", "github=-")
    assert done.stdout.startswith(b"::notice ")
    assert b"health" in (place / "text.txt").read_bytes()


def test_reports_equal_the_main_format(place: Path) -> None:
    for name in FORMATS:
        direct = run("verify", "log", "--capture", "bad", "--format", name).stdout
        run("verify", "log", "--capture", "bad", "--report", f"{name}=x")
        assert (place / "x").read_bytes() == direct


def test_no_colour_reaches_a_file(place: Path) -> None:
    env = {"NO_COLOR": "", "FORCE_COLOR": "1"}
    done = run("verify", "log", "--capture", "bad", "--report", "text=x", env=env)
    assert b"\x1b[" in done.stdout
    assert b"\x1b" not in (place / "x").read_bytes()


REFUSED = [
    ["--report", "junit"],
    ["--report", "junit="],
    ["--report", "html5=x"],
    ["--report", "json=-", "--report", "sarif=-"],
    ["--report", "json=-", "--format", "json"],
    ["--report", "json=x", "--report", "sarif=./x"],
    ["--report", "json=x", "-o", "x"],
    ["--report", "json=log/session.jsonl"],
    ["--report", "json=good/0000.body"],
    ["--report", "json=good/0000.meta.json"],
    ["--report", "json=good.har", "--capture", "good.har"],
    ["--report", "json=instruction", "--constant", "compaction-instruction=instruction"],
    ["--report", "json=log"],
    ["--report", "json=a.golden.json"],
    ["--report", "json=good.har/x"],
]


@pytest.mark.parametrize("options", REFUSED, ids=[" ".join(options) for options in REFUSED])
def test_refused_destinations(options: list[str], place: Path) -> None:
    (place / "good.har").write_bytes(b'{"log":{"entries":[]}}')
    (place / "instruction").write_bytes(b"Summarise.")
    (place / "a.golden.json").write_bytes(b"{}")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    done = run("verify", "log", "--capture", "good", *options)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith(b"error: ")
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_the_step_summary_of_github_is_appended_to(place: Path) -> None:
    env = {"GITHUB_STEP_SUMMARY": str(place / "summary")}
    for _ in range(2):
        run("inspect", "log", "--report", f"markdown={place / 'summary'}", env=env)
    assert (place / "summary").read_text("utf-8").count("## dsh-audit inspect") == 2


def test_text_cannot_steer_a_github_job(place: Path) -> None:
    hostile = two_turns()
    hostile.rows[0] |= {"id": "::error::owned ##[add-mask]e"}
    (place / "log" / "session.jsonl").write_bytes(hostile.plain())
    plain = run("sessions", "log").stdout.decode()
    assert "\n::error::owned ##[" in plain
    guarded = run("sessions", "log", env={"GITHUB_ACTIONS": "true"}).stdout.decode()
    assert "\n:\\u003aerror::owned ##\\u005badd-mask]e" in guarded
    assert disarm("  \x1b[31m::x") == "  \x1b[31m:\\u003ax"
    assert disarm("a ::x") == "a ::x"


def outcomes(place: Path, capture: str) -> list[tuple[str, str]]:
    """(verdict, tag of the case's result) a pair."""
    run("verify", "log", "--capture", capture, "--report", "junit=x", "--report", "json=y")
    cases = ElementTree.fromstring((place / "x").read_bytes()).findall(".//testcase")
    tags = [case[0].tag if len(case) else "" for case in cases]
    verdicts = [pair["verdict"] for pair in json.loads((place / "y").read_bytes())["pairs"]]
    return list(zip(verdicts, tags, strict=True))


def test_verdicts_of_pairs_are_outcomes_of_cases(place: Path) -> None:
    good = [(place / "good" / f"{number:04}.body").read_bytes() for number in range(3)]
    write_bundle(place / "few", good[:1])
    write_bundle(place / "many", [*good[:2], b"{}", b"{}"])
    assert outcomes(place, "few") == [("identical", ""), ("not-captured", "skipped"), ("not-captured", "skipped")]
    assert sorted(outcomes(place, "many")) == [
        ("different", "failure"),
        ("identical", ""),
        ("identical", ""),
        ("unexplained", "failure"),
    ]
