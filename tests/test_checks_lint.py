"""``lint``: what a session will be stopped by, on what that rests, and how much it weighs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.checks.lint import Facts, LintPass
from dsh_audit.replay.inspection import inspect_log
from tests.cli import run
from tests.lint_sessions import Build, asked, call, marked, name_of, no_schema, refused, spliced, thought, toy_of
from tests.logs import log_of
from tests.toy_session import ToySession

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden"


def found(build: Build, version: int = 0, **facts: Any) -> list[tuple[str, str, str]]:
    log = log_of(toy_of(build, version).plain(), name_of(version))
    findings = inspect_log(log, observer=LintPass(Facts(log, **facts))).findings
    return [(one.code, str(one.severity), one.details.get("basis", "")) for one in findings]


def compacted(toy: ToySession) -> None:
    """A compaction that takes the call and leaves its result."""
    asked(toy, call("c9"))
    toy.compact(toy.surface[1:3] if toy.version >= 3 else toy.surface[:2])
    toy.ask("more")


def open_call(toy: ToySession) -> Any:
    asked(toy, call("c9"), results=(), answered=False)


def interposed(toy: ToySession) -> None:
    asked(toy, call("c9"), between="Wait", answered=False)


def mid_answer(toy: ToySession) -> None:
    toy.begin("Go")
    toy.answer("", calls=[call("c9")])


TABLE: list[tuple[str, Build, int, dict[str, Any], list[tuple[str, str, str]]]] = [
    ("clean", lambda toy: (toy.ask("one"), asked(toy, call("c9")), asked(toy, call("c8"))), 4, {}, []),
    ("never sent", open_call, 0, {}, [("lint/open-call", "error", "refused-by")]),
    ("a Messages route", open_call, 4, {}, [("lint/open-call", "error", "refused-by")]),
    ("refused", lambda toy: (open_call(toy), refused(toy, "tool_calls need tool messages")), 0, {},
     [("lint/open-call", "error", "refused-in-log")]),
    ("refused in other words", lambda toy: (open_call(toy), refused(toy, "no")), 0, {},
     [("lint/open-call", "error", "refused-in-log")]),
    ("accepted", lambda toy: (open_call(toy), toy.ask("more")), 0, {}, [("lint/open-call", "info", "accepted")]),
    ("accepted, but not elsewhere", lambda toy: (open_call(toy), toy.ask("more")), 0, {"route": "anthropic"},
     [("lint/open-call", "error", "refused-by")]),
    ("a refusal that is about something else", lambda toy: (thought(toy), refused(toy, "no such file")), 3, {},
     [("lint/reasoning-only", "info", "accepted"), ("lint/last-request", "error", "refused-in-log")]),
    ("a message between, asked for a chat route", interposed, 4, {"route": "deepseek/x", "release": "0.1.5-rc.1"},
     [("lint/interposed-message", "error", "refused-by"), ("lint/too-new", "error", "refused-by")]),
    ("busy is no refusal", lambda toy: (open_call(toy), refused(toy, "tool_calls", status=429)), 0, {},
     [("lint/open-call", "error", "refused-by")]),
    ("inside a turn", mid_answer, 0, {},
     [("lint/unfinished-turn", "warning", "log")]),
    ("message between, chat", interposed, 0, {}, [("lint/interposed-message", "error", "refused-by")]),
    ("message between, Messages", interposed, 4, {}, [("lint/interposed-message", "info", "accepted")]),
    ("after a compaction", compacted, 3, {}, [("lint/stray-result", "info", "accepted")]),
    ("reasoning only", thought, 3, {}, [("lint/reasoning-only", "info", "accepted")]),
    ("reasoning only elsewhere", thought, 3, {"route": "moonshot"}, [("lint/reasoning-only", "error", "refused-by")]),
    ("empty arguments", lambda toy: asked(toy, call("c9", arguments=" ")), 0, {}, []),
    ("a lone surrogate", lambda toy: asked(toy, call("c9", arguments='{"a":"\\ud800"}')), 0, {}, []),
    ("NaN", lambda toy: asked(toy, call("c9", arguments="NaN")), 0, {}, [("lint/arguments", "info", "accepted")]),
    ("no schema, accepted", lambda toy: (no_schema(toy), toy.ask("one")), 4, {},
     [("lint/tool-schema", "info", "accepted")]),
    ("inbox", spliced, 4, {}, [("log/reload-refused", "error", "refused-by")]),
    ("inbox, later releases", spliced, 0, {}, [("lint/inbox-splice", "warning", "refused-by")]),
    ("inbox, old release", spliced, 0, {"release": "0.1.2-rc.1"}, []),
    ("marker of format 3", marked, 3, {}, [("lint/foreign-marker", "info", "accepted"),
                                           ("lint/migration", "warning", "refused-by")]),
    ("marker", marked, 4, {"release": "0.2.1-rc.2"}, [("lint/foreign-marker", "error", "refused-by")]),
    ("migration", lambda toy: (toy.ask("one"), toy.add("x/y", {}, ignorable=True)), 0, {"release": "0.1.5-rc.1"},
     [("log/ignored-event", "info", ""), ("lint/migration", "error", "refused-by")]),
    ("no migration", lambda toy: (toy.ask("one"), toy.add("x/y", {}, ignorable=True)), 0, {"release": "0.1.2-rc.1"},
     [("log/ignored-event", "info", "")]),
    ("repeated call in one answer", lambda toy: asked(toy, call("c9"), call("c9"), answered=False), 3,
     {"release": "0.2.1-rc.2"}, [("lint/migration", "error", "refused-by"), ("lint/repeated-call", "info", "accepted"),
                                 ("lint/stray-result", "error", "refused-by")]),
]  # fmt: skip


@pytest.mark.parametrize(("build", "version", "facts", "expected"), [row[1:] for row in TABLE],
                         ids=[row[0] for row in TABLE])
def test_what_is_found(build: Build, version: int, facts: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    assert sorted(found(build, version, **facts)) == sorted(expected)


def test_a_finding_names_request_call_tool_event_and_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def build(toy: ToySession) -> None:
        open_call(toy)
        refused(toy, "tool_calls need tool messages")

    Path("session.jsonl").write_bytes(toy_of(build).plain())
    done = run("lint", "session.jsonl", "--format", "json")
    report = json.loads(done.stdout)
    Draft202012Validator(json.loads((ROOT / "schemas" / "lint.schema.json").read_bytes())).validate(report)
    assert done.returncode == 1
    assert report["sessions"] == [
        {"session_id": "toy", "source": "session.jsonl", "format_version": 0, "requests": 2, "worst": "lint/open-call",
         "releases": ["0.1.1-rc.2", "0.1.2-rc.1", "0.1.3-alpha.2", "0.1.5-rc.1", "0.1.6-alpha.2", "0.2.1-rc.2"]}
    ]  # fmt: skip
    (finding,) = report["findings"]
    details = finding["details"]
    assert (details["call"], details["tool"], details["event"], details["first_request"]) == ("c9", "echo", 7, 1)
    assert details["release"] == "0.1.1-rc.2"
    assert details["error"] == "400 INVALID_REQUEST: tool_calls need tool messages"
    assert finding["message"] == (
        "the call 'c9' of echo has no result: "
        "request 1 refused in this log with 400 INVALID_REQUEST: tool_calls need tool messages"
    )


def test_wrong_options() -> None:
    log = GOLDEN / "v4-tools" / "sessions"
    for options in (("--for", "soon"), ("--route", "moonshot"), ("--route", "/x")):
        done = run("lint", log, *options)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"error: " + options[0].encode())


@pytest.mark.parametrize("case", ["v0-tools", "v0-fork", "v0-children", "v0late-resume", "v3-compaction", "v3-tools",
                                  "v3-children", "v4-tools", "v4-fork", "v4-retries", "v4-drift-tool-added",
                                  "v4-upload-alone"])  # fmt: skip
def test_clean_sessions_have_no_finding(case: str) -> None:
    report = json.loads(run("lint", GOLDEN / case / "sessions", "--format", "json").stdout)
    assert report["sessions"] and report["findings"] == []


def test_sessions_and_inspect_name_the_worst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("session.v4.jsonl").write_bytes(toy_of(marked, 4).plain())
    done = run("sessions", "session.v4.jsonl")
    assert done.returncode == 1 and b"refused: lint/foreign-marker" in done.stdout
    assert b"health    refused: lint/foreign-marker" in run("inspect", "session.v4.jsonl").stdout
    assert b"ok (quick)" in run("inspect", GOLDEN / "v4-tools" / "sessions").stdout
