"""What the real runtimes send today is what their logs say: every scripted case, run afresh and verified."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.cases import CASES
from tests.harness.drive import run_case

Json = Any

PACKAGES = "dsh_plugin_packages"
STOPS = {"plugin-events": "log/unknown-event"}
"""Kinds whose log ends being reconstructible with a finding of this code."""
TORN = {"log/torn-tail"}


def _kind(name: str) -> str:
    return name.split("-", 1)[1]


@pytest.mark.parametrize("name", CASES)
def test_fresh_run_is_verified(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    outcome = run_case(case, tmp_path)
    assert outcome.failures == []

    deployment = tmp_path / "deployment.json"
    deployment.write_text(json.dumps(case.get("deployment", {})))
    captures = ("--capture", tmp_path / "captures", "--deployment", deployment)
    home = ("--home", tmp_path / "home") if (tmp_path / "home").is_dir() else ()
    code, report = _run("verify", tmp_path / "sessions", *captures, *home)

    summary = report["summary"]
    assert summary["captured"] == len(list(tmp_path.glob("captures/*.body"))) > 0
    assert (summary["different"], summary["unexplained"]) == (0, 0), _bad(report)
    if stop := STOPS.get(_kind(name)):
        assert (code, _errors(report)) == (1, {stop})
        return
    assert code == bool(_errors(report))
    assert _errors(report) <= (TORN if _kind(name).startswith("left-") else set())
    allowed = set() if case["runtime"] == "0.1.1rc1" else {PACKAGES}
    assert {field["name"] for pair in report["pairs"] for field in pair["unlogged"]} <= allowed, _bad(report)
    uploads = [pair for pair in report["pairs"] if pair["verdict"] == "other" and pair.get("upload")]
    assert summary["captured"] == summary["identical"] + summary["identical_except_unlogged"] + len(uploads)
    assert summary["not_captured"] == 0


@pytest.mark.parametrize("name", ["v0late-tools", "v3-upload", "v4-tools"])
def test_nothing_is_unlogged_once_the_packages_are_named(name: str, tmp_path: Path) -> None:
    run_case(CASES[name], tmp_path)
    body = json.loads((tmp_path / "captures" / "0000.body").read_bytes())
    deployment = tmp_path / "deployment.json"
    deployment.write_text(json.dumps({"extensions": {"plugin_packages": body[PACKAGES]["packages"]}}))

    captures = ("--capture", tmp_path / "captures", "--deployment", deployment)
    code, report = _run("verify", tmp_path / "sessions", *captures)

    assert code == 0
    assert report["summary"]["identical"] == report["summary"]["captured"] > 0, _bad(report)


@pytest.mark.parametrize("name", ["v0-json", "v0-tools"])
def test_render_gives_the_captured_bytes(name: str, tmp_path: Path) -> None:
    run_case(CASES[name], tmp_path)
    captures = tmp_path / "captures"
    _, report = _run("verify", tmp_path / "sessions", "--capture", captures)
    for pair in report["pairs"]:
        (log,) = tmp_path.glob(f"sessions/*/{pair['session_id']}")
        rendered = _command("render", log, "--request", pair["request"])
        assert rendered.stdout == (captures / f"{pair['captured']}.body").read_bytes()


def _run(name: str, *arguments: object) -> tuple[int, Json]:
    done = _command(name, *arguments, "--format", "json")
    return done.returncode, json.loads(done.stdout)


def _command(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dsh_audit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)


def _errors(report: Json) -> set[str]:
    return {finding["code"] for finding in report["findings"] if finding["severity"] == "error"}


def _bad(report: Json) -> str:
    return json.dumps([p for p in report["pairs"] if p["verdict"] != "identical"][:4], indent=1)[:4000]
