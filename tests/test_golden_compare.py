"""What a pinned case says about each kind of change that no edit of a log can bring about alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.golden.case import parse_case
from dsh_audit.golden.compare import compare_cases
from tests.cli import run
from tests.golden_logs import TOOLS_LOG

Json = Any
DIGEST = "0" * 64


def request(**members: Json) -> Callable[[Json], Any]:
    """Other members of the second request."""
    return lambda case: case["requests"][1].update(members)


CASES = {
    "encoding-changed": (request(body={"size": 1, "sha256": DIGEST}), "wire", "written differently", (1,)),
    "not-rebuilt": (request(body=None, claim="none"), "wire", "claim bytes → none", (1,)),
    "claim-changed": (request(claim="json"), "wire", "claim bytes → json", (1,)),
    "constant-changed": (request(constant="text", body=None), "messages", "last message absent → text", (1,)),
    "normalisers-changed": (
        lambda case: case.update(normalisers=[{"name": "uuids"}]),
        "log",
        "normalisers none → uuids",
        (),
    ),
    "log-findings": (lambda case: case.update(findings={"log/refused": 2}), "log", "2 of log/refused, 0", ()),
}


@pytest.mark.parametrize("cause", CASES)
def test_each_change_is_told_once_with_its_layer(cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit, layer, message, requests = CASES[cause]
    monkeypatch.delenv("CI", raising=False)
    done = run("golden", "record", TOOLS_LOG, "-o", tmp_path, "--name", "tools")
    assert done.returncode == 0, done.stderr
    raw = json.loads((tmp_path / "tools.golden.json").read_bytes())
    expected = parse_case(json.dumps(raw).encode(), name="tools")
    edit(raw)
    (change,) = compare_cases(expected, parse_case(json.dumps(raw).encode(), name="tools"))
    assert (change.cause, change.layer, change.requests) == (cause, layer, requests)
    assert message in change.message
    assert compare_cases(expected, expected) == []
