"""Malformed data is never an error of ours, and an error of ours is never told as malformed data."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.audit import audit_cache, audit_drift, audit_requests
from dsh_audit.capture import read_capture
from dsh_audit.checks.lint import Facts, LintPass
from dsh_audit.cli.main import main
from dsh_audit.deployment import Deployment
from dsh_audit.errors import AuditError
from dsh_audit.log.generations import build_history
from dsh_audit.log.session_log import LogSource, open_log
from dsh_audit.replay.inspection import inspect_log
from dsh_audit.replay.verification import verify
from dsh_audit.session import read_cache_options

GOLDEN = Path(__file__).parent.parent / "golden"
LOGS = sorted(path for path in GOLDEN.glob("v*/sessions/**/session*.jsonl") if path.stat().st_size < 100_000)
VALUES: list[Any] = [None, 3, 1.5, "x", "", [], {}, [1], [None], {"a": 1}, True, -1, 2**60, [{}], [[]], {"type": 5}]

DEEP = [
    ("requests", "v0-tools", "projection.surface.rules", "check_op"),
    ("requests", "v0-tools", "projection.messages", "message_of"),
    ("requests", "v0-retries", "dispatch.wire_count", "count_failure"),
    ("requests", "v0-compaction", "dispatch.compaction_range", "price_message"),
    ("requests", "v4-compaction", "dispatch.oneshots", "_compaction_wire"),
    ("requests", "v0-tools", "request.neutral", "_settings"),
    ("requests", "v4-compaction", "request.neutral", "_compaction_over"),
    ("requests", "v0-tools", "wire.deepseek_chat", "_encode_assistant"),
    ("requests", "v4-tools", "wire.messages_fold", "encode_assistant"),
    ("requests", "v4-pi-completions", "wire.pi.context", "flat_text"),
    ("requests", "v4-pi-anthropic", "wire.pi.replay", "parse_arguments"),
    ("requests", "v4-tools", "wire.session_log_field", "_session"),
    ("verify", "v0-tools", "replay.pairing.order", "pair_equal"),
    ("verify", "v0-tools", "replay.judge", "diff_rest"),
    ("verify", "v4-tools", "replay.body_diff", "_read_tail"),
]


@pytest.mark.parametrize(("command", "case", "module", "function"), DEEP)
def test_an_error_of_ours_is_told_as_one(
    command: str,
    case: str,
    module: str,
    function: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_args: object, **_kwargs: object) -> None:
        raise TypeError("a typo")

    monkeypatch.setattr(f"dsh_audit.{module}.{function}", broken)
    folder = GOLDEN / case
    deployment = folder / "deployment.json"
    options = ["--deployment", str(deployment)] if deployment.is_file() else []
    captured = ["--capture", str(folder / "captures")] if command == "verify" else []
    with pytest.raises(SystemExit) as stopped:
        main([command, str(next(folder.glob("sessions/*/*"))), *captured, *options])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("error: internal error: TypeError")


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*path, name))


def mutated(row: dict[str, Any], rng: random.Random) -> None:
    """Another value, or none, at some place of a row; its place in the log stays."""
    path = rng.choice([path for path in places(row) if path and path[0] not in ("type", "seq", "seq0", "time")])
    holder: Any = row
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.25 and isinstance(holder, dict):
        del holder[path[-1]]
    else:
        holder[path[-1]] = json.loads(json.dumps(rng.choice(VALUES)))


@pytest.mark.parametrize("seed", range(150))
def test_odd_rows_give_findings_or_weaker_claims(seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(LOGS)
    lines = [line for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
    rows = [json.loads(line) for line in lines]
    for row in rng.choices(rows[1:] or [{"type": "none", "data": 1}], k=rng.choice((1, 1, 2, 4))):
        mutated(row, rng)
    data = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
    case = next(folder for folder in path.parents if (folder / "case.json").is_file())
    profile = case / "deployment.json"
    deployment = Deployment(json.loads(profile.read_text("utf-8")) if profile.is_file() else {})
    log = open_log(LogSource(path.name, path.name, len(data), lambda: io.BytesIO(data)))
    history = build_history(log)
    audit_requests(history, deployment, None)
    inspect_log(log, observer=LintPass(Facts(log, deployment), frozenset({"pass", "bodies"})))
    audit_drift(history, deployment)
    audit_cache(history, deployment, read_cache_options("USD", None))
    try:
        verify([history], [read_capture(case / "captures")], deployment)
    except AuditError as error:
        assert "no captured requests" in error.message
