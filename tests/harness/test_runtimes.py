"""Each released runtime installs, runs, and writes the log format and protocol it is known for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.cases import CASES
from tests.harness.cases.basic import ERAS
from tests.harness.drive import run_case
from tests.harness.runtimes import RUNTIMES, ensure_runtime, executable

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


@pytest.mark.parametrize("era", ERAS)
def test_runtime_writes_its_format(era: str, tmp_path: Path) -> None:
    runtime = RUNTIMES[ERAS[era]]
    assert executable(ensure_runtime(runtime.version)).is_file()

    outcome = run_case(CASES[f"{era}-multi-turn"], tmp_path)

    assert outcome.failures == []
    suffix = f".v{runtime.log_format}" if runtime.log_format else ""
    logs = sorted(tmp_path.glob("sessions/*/*/*"))
    assert [log.name for log in logs] == [f"session{suffix}.jsonl"] * 2
    assert {json.loads(log.read_bytes().split(b"\n")[0])["version"] for log in logs} == {runtime.log_format}
    metas = [json.loads(meta.read_text()) for meta in sorted(tmp_path.glob("captures/*.meta.json"))]
    assert [meta["path"] for meta in metas] == [PATHS[runtime.protocol]] * 4
