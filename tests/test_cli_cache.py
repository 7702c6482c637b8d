"""``cache`` and ``drift`` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run
from tests.toy_session import ToySession, usage

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """A stable session and one that loses a tool."""
    paths = []
    for name, changes in (("old", False), ("new", True)):
        session = ToySession(0, ident=name)
        session.ask("word " * 2000, counts=usage(4000, 0))
        if changes:
            session.tools = session.tools[:1]
        session.ask("two", counts=usage(4000, 100) if changes else usage(100, 3900))
        path = tmp_path / name / "session.jsonl"
        path.parent.mkdir()
        path.write_bytes(session.plain())
        paths.append(path)
    return paths[0], paths[1]


def test_busts_alone_do_not_fail(logs: tuple[Path, Path]) -> None:
    done = run("cache", logs[1])
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"1 bust: session new, 2 requests; 1 nobody asked for")


@pytest.mark.parametrize(
    ("limit", "status", "shown"),
    [
        ("busts>0", 1, b"busts>0: busts is 1"),
        ("hit_rate<95%", 1, b"hit_rate<95%: hit_rate is 0.0"),
        ("busts>1", 0, b""),
        ("busts>+0", 1, b"busts>+0: busts is 1 (baseline 0, limit 0)"),
        ("cost_per_step>+10%", 1, b"cost_per_step>+10%: cost_per_step is"),
        ("cost_per_step>+1000%", 0, b""),
    ],
)
def test_limits_decide_the_exit_status(logs: tuple[Path, Path], limit: str, status: int, shown: bytes) -> None:
    done = run("cache", logs[1], "--baseline", logs[0], "--fail-on", limit)
    assert done.returncode == status
    assert shown in done.stdout
    assert b"first header difference: step request 1, tools" in done.stdout


def test_a_saved_report_is_a_baseline_too(logs: tuple[Path, Path], tmp_path: Path) -> None:
    saved = tmp_path / "old.json"
    assert run("cache", logs[0], "--format", "json", "-o", saved).returncode == 0
    by_log = run("cache", logs[1], "--baseline", logs[0], "--format", "json")
    by_report = run("cache", logs[1], "--baseline", saved, "--format", "json")
    assert json.loads(by_log.stdout)["comparison"] == json.loads(by_report.stdout)["comparison"]
    other = tmp_path / "other.json"
    report = json.loads(saved.read_bytes())
    broken_reports: list[Any] = [
        {},
        [],
        {"schema": "dsh-audit/cache/1"},
        {**report, "summary": []},
        {**report, "header_digests": [{}]},
        {**report, "summary": {**report["summary"], "causes": [{}]}},
        {**report, "summary": {**report["summary"], "cost": float("inf")}},
    ]
    for broken in broken_reports:
        other.write_text(json.dumps(broken).replace("Infinity", "1e999"))
        done = run("cache", logs[1], "--baseline", other)
        assert done.returncode == 2 and b"not a report of dsh-audit cache" in done.stderr, broken


def test_bad_limits_and_prices_are_usage_errors(logs: tuple[Path, Path], tmp_path: Path) -> None:
    for options in (
        ("--fail-on", "busts"),
        ("--fail-on", "bust>0"),
        ("--fail-on", "busts>+0"),
        ("--prices", str(tmp_path / "none.json")),
        ("--prices", "/dev/zero"),
        ("--deployment", "/dev/zero"),
        ("--provider-rules", "nobody"),
        ("--capture", str(tmp_path / "none")),
    ):
        done = run("cache", logs[1], *options)
        assert done.returncode == 2, options
        assert done.stderr.startswith(b"error: ")


def test_own_prices(logs: tuple[Path, Path], tmp_path: Path) -> None:
    band = {"hit": "0", "miss": "1000", "output": "0"}
    own = {"id": "deepseek-flash", "prices": [{"currency": "USD", "flat": band, "source": "me"}]}
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"schema": "dsh-audit/prices/1", "models": [own]}))
    report = json.loads(run("cache", logs[0], "--prices", prices, "--format", "json").stdout)
    assert report["summary"]["cost"] == 4.1


def test_ledgers(logs: tuple[Path, Path]) -> None:
    lines = run("cache", logs[1], "--ledger", "csv").stdout.decode().splitlines()
    assert len(lines) == 3 and lines[0].startswith("index,kind,lineage")
    assert [row["bust_cause"] for row in json.loads(run("cache", logs[1], "--ledger", "json").stdout)] == [
        None,
        "header-change",
    ]


def test_several_logs_are_ranked(logs: tuple[Path, Path]) -> None:
    done = run("cache", *logs, "--format", "json")
    sessions = [item["log"]["session_id"] for item in json.loads(done.stdout)["sessions"]]
    assert sessions == ["new", "old"]
    assert run("cache", *logs, "--fail-on", "busts>0").returncode == 1


def test_captured_bodies_are_compared() -> None:
    case = GOLDEN / "v4-tools"
    report = json.loads(run("cache", case / "sessions", "--capture", case / "captures", "--format", "json").stdout)
    assert {row["wire"]["source"] for row in report["requests"]} == {"captured"}
    bodies = [path.read_bytes() for path in sorted(case.glob("captures/*.body"))]
    assert [row["wire"]["body_bytes"] for row in report["requests"]] == list(map(len, bodies))
    assert not [f for f in report["findings"] if f["code"] == "cache/wire-rewrite"]


def test_drift_between_two_logs(logs: tuple[Path, Path]) -> None:
    done = run("drift", *logs)
    assert done.returncode == 0
    assert b"tool removed: walk" in done.stdout


def test_no_verdict_where_no_request_could_be_rebuilt(tmp_path: Path) -> None:
    log = GOLDEN / "v4-pi-completions" / "sessions"
    assert run("cache", log).stdout.startswith(b"not compared: session sess-1, 6 requests; none could be rebuilt")
    page = tmp_path / "page.html"
    assert run("report", log, "-o", page).returncode == 0
    assert "not compared: no request could be rebuilt" in page.read_text("utf-8")
    known = run("cache", log, "--deployment", log.parent / "deployment.json").stdout
    assert known.startswith(b"1 bust: session sess-1, 6 requests; 0 nobody asked for\n")
