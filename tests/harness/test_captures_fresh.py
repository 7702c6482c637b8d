"""Captures made by the real tools with the real harness behind them are what the logs say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import samples, tools
from tests.harness.cases import CASES
from tests.harness.drive import run_case

STREAMED = ("--set", "stream_large_bodies=1", "--set", "store_streamed_bodies=true")


def verify(folder: Path, capture: Path) -> tuple[int, dict[str, int]]:
    argv = [sys.executable, "-m", "dsh_audit", "verify", str(folder / "sessions"), "--capture", str(capture)]
    done = subprocess.run([*argv, "--format", "json"], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    counts: dict[str, Any] = json.loads(done.stdout)["summary"]
    return done.returncode, {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize("name", ["v0late-tools", "v4-tools"])
def test_mitmproxy_before_the_real_harness(name: str, tmp_path: Path) -> None:
    flows, har = tmp_path / "flows.mitm", tmp_path / "flows.har"
    case = {**CASES[name], "base_url_from_env": True}
    outcome = run_case(case, tmp_path, through=lambda port: tools.mitmdump(port, flows, "--set", f"hardump={har}"))
    assert outcome.failures == []
    expected = {"captured": 5, "identical_except_unlogged": 5}  # dsh_plugin_packages is in no log
    assert [verify(tmp_path, capture) for capture in (tmp_path / "captures", flows, har)] == [(0, expected)] * 3


def test_streamed_bodies_that_mitmproxy_11_loses_are_not_checked(tmp_path: Path) -> None:
    flows = tmp_path / "flows.mitm"
    run_case(CASES["v4-tools"], tmp_path, through=lambda port: tools.mitmdump(port, flows, *STREAMED))
    code, counts = verify(tmp_path, flows)
    is_lost = tools.MITMPROXY.startswith("mitmproxy==11.")
    assert (code, counts) == ((1, {"captured": 5, "not_checked": 5}) if is_lost else
                              (0, {"captured": 5, "identical_except_unlogged": 5}))  # fmt: skip


def test_samples_can_be_made_again(tmp_path: Path) -> None:
    """Cassettes of vcrpy and a trace of claude-tap, from bodies of golden cases."""
    samples.record_cassettes(tmp_path, tmp_path / "b1", "a.yaml", "a.json")
    samples.record_trace(tmp_path / "a.ctap.json", tmp_path / "b2", case="v0-json")
    found = {name: verify(samples.GOLDEN / samples.CASE, tmp_path / name) for name in ("a.yaml", "a.json")}
    assert found == dict.fromkeys(found, (0, {"captured": 5, "identical": 5}))
    assert verify(samples.GOLDEN / "v0-json", tmp_path / "a.ctap.json") == (0, {"captured": 3, "same_json": 3})
