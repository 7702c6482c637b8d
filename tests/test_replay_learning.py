"""Sessions over llm-pi-ai, recorded from four releases: verified with their configuration, or with one learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.cli.common import read_schema
from tests.cli import run

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(GOLDEN.glob("*-pi-protocols"))
APIS = {"anthropic-messages", "openai-completions", "openai-responses"}


def configured(case: Path) -> dict[str, Any]:
    """The deployment file that says what the case was configured with."""
    deployment: dict[str, Any] = json.loads((case / "case.json").read_bytes())["deployment"]
    return deployment


def verify(case: Path, deployment: Path) -> dict[str, Any]:
    options = ["--deployment", str(deployment), "--format", "json"]
    done = run("verify", case / "sessions", "--capture", case / "captures", *options)
    assert done.returncode == 0, done.stdout
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_there_is_a_case_of_each_release() -> None:
    assert [case.name for case in CASES] == [f"{era}-pi-protocols" for era in ("v0", "v0late", "v3", "v4")]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_configuration_explains_every_body(case: Path, tmp_path: Path) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(configured(case)), "utf-8")
    value = verify(case, file)
    assert value["summary"]["identical"] == value["summary"]["captured"] == 7
    names = {used["name"] for used in value["assumed"]}
    assert {"pi_ai.version", "pi_ai.routes", "providers.toy-claude.credential"} <= names
    listed = json.loads(run("requests", case / "sessions", "--deployment", file, "--format", "json").stdout)
    assert {request["protocol"] for request in listed["requests"]} == APIS


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_learning_finds_a_deployment_that_explains_every_body(case: Path, tmp_path: Path) -> None:
    file = tmp_path / "learned.json"
    named = ("--capture", case / "captures", "-o", file)
    done = run("deployment", "learn", case / "sessions", *named, "--format", "json")
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    Draft202012Validator(read_schema("deployment-learn")).validate(report)
    assert report["routes"] == ["toy-chat", "toy-claude", "toy-responses"]
    assert report["summary"]["identical"] == 7
    settings = {setting["name"]: setting for setting in report["settings"]}
    assert settings["providers.toy-claude.profile.cacheRetention"]["status"] == "fixed"
    assert settings["providers.toy-claude.profile.cacheRetention"]["value"] == "long"
    assert settings["providers.toy-chat.profile.compat.supportsLongCacheRetention"]["status"] == "open"
    assert verify(case, file)["summary"]["identical"] == 7


def test_without_a_profile_nothing_is_claimed() -> None:
    done = run("verify", CASES[0] / "sessions", "--capture", CASES[0] / "captures", "--format", "json")
    value = json.loads(done.stdout)
    assert value["summary"]["different"] == value["summary"]["identical"] == 0


def test_the_proposed_file_is_json(tmp_path: Path) -> None:
    case = CASES[0]
    done = run("deployment", "learn", case / "sessions", "--capture", case / "captures", "-o", tmp_path / "a.toml")
    assert (done.returncode, done.stderr.splitlines()[-1][:5]) == (2, b"hint:")


def test_the_report_for_people(tmp_path: Path) -> None:
    case = CASES[-1]
    done = run("deployment", "learn", case / "sessions", "--capture", case / "captures", "-o", tmp_path / "a.json")
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "routes of llm-pi-ai: toy-chat, toy-claude, toy-responses"
    assert lines[1] == "with the proposed file: 7 captured, 7 identical"
    assert any(line.startswith("fixed  providers.toy-responses.profile.api") for line in lines)
