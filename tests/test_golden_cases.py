"""Every recorded harness run in golden/: each captured request is the one its log stands for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.glob("*/case.json"))
PLUGIN_PACKAGES = "dsh_plugin_packages"


def verify(case: Path, *options: str) -> tuple[int, dict[str, Any]]:
    home = ("--home", str(case / "home")) if (case / "home").is_dir() else ()
    done = run("verify", case / "sessions", "--capture", case / "captures", "--format", "json", *home, *options)
    assert done.stdout, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, value


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_every_captured_request_is_explained(case: Path) -> None:
    known = case / "deployment.json"
    status, value = verify(case, *(("--deployment", str(known)) if known.is_file() else ()))
    verdicts = {pair["verdict"] for pair in value["pairs"]}
    allowed = {"identical", "identical-except-unlogged", "not-checked", "not-captured", "other"}
    assert verdicts <= allowed
    assert {item["name"] for pair in value["pairs"] for item in pair["unlogged"]} <= {PLUGIN_PACKAGES}
    errors = {finding["code"] for finding in value["findings"] if finding["severity"] == "error"}
    if case.name.endswith("-pi-protocols"):
        assert errors == {"wire/nothing-compared"}, "its profiles are not given"
    else:
        assert errors <= {"log/unknown-event", "log/torn-tail"}, "cases of a required plugin event and of cut files"
    assert status == bool(errors)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_naming_the_packages_explains_them_too(case: Path, tmp_path: Path) -> None:
    packages = captured_packages(case)
    if packages is None:
        return
    deployment = tmp_path / "deployment.json"
    deployment.write_text(json.dumps({"extensions": {"plugin_packages": packages}}), "utf-8")
    _, value = verify(case, "--deployment", str(deployment))
    assert value["summary"]["identical_except_unlogged"] == 0
    assert value["summary"]["different"] == 0


def captured_packages(case: Path) -> list[Any] | None:
    """The packages that every model request of a case names; None when they name none or not the same."""
    found = []
    for body in sorted(case.glob("captures/*.body")):
        data = body.read_bytes()
        if data.startswith(b'{"model"'):
            found.append(json.loads(data).get(PLUGIN_PACKAGES))
    if not found or found[0] is None or any(item != found[0] for item in found):
        return None
    packages: list[Any] = found[0]["packages"]
    return packages
