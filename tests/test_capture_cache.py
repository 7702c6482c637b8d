"""``cache --capture-only``: neighbouring captured calls, compared without a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsh_audit.checks.capture_cache import usage_of
from dsh_audit.pricing import Usage
from tests.cli import run

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "schemas" / "capture-cache.schema.json").read_text())
SYSTEM = "You are careful. " * 600
NAMES = ("echo", "list", "say")
TOOLS = [{"name": name, "description": name * 40, "input_schema": {"type": "object"}} for name in NAMES]
START_MS = 1_796_000_000_000


def turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text * 300}]}


def body(count: int, **changes: Any) -> dict[str, Any]:
    talk = [turn(("user", "assistant")[index % 2], f"message {index} ") for index in range(count)]
    return {"model": "deepseek-flash", "system": SYSTEM, "tools": TOOLS, "messages": talk} | changes


def record(value: Any, cached: int, at_s: int = 60, session: str = "s", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 8000 - cached, "cache_read_input_tokens": cached, "output_tokens": 10}
    return {
        "timestamp": START_MS + at_s * 1000,
        "request": {
            "method": "POST",
            "url": "https://api.deepseek.com/anthropic/v1/messages",
            "headers": {"x-deepseek-harness-session-id": session},
            "body": json.dumps(value, separators=(",", ":")),
        },
        "response": {"status": 200, "body": {"id": "m", "usage": usage, **more}},
    }


def audit(folder: Path, records: list[Any], *options: str) -> tuple[int, Any]:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in records))
    done = run("cache", "--capture-only", path, *options, "--format", "json")
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    return done.returncode, report


FIRST = record(body(1), 0)
CHANGED = body(3, messages=[turn("user", "message 9 "), *body(3)["messages"][1:]])


@pytest.mark.parametrize(
    ("second", "cause", "part", "pointer"),
    [
        (record(body(3), 5000, 120), None, None, None),
        (record(body(3, tools=TOOLS[:2]), 0, 120), "header-change", "tools", "/tools"),
        (record(body(3, tools=[TOOLS[0], TOOLS[2], TOOLS[1]]), 0, 120), "header-change", "tools", "/tools/1/name"),
        (record(body(3, system=SYSTEM.upper()), 0, 120), "header-change", "system", "/system"),
        (record(body(3, model="deepseek-pro"), 0, 120), "model-switch", "config", "/model"),
        (record(CHANGED, 0, 120), "rewrite", "messages", "/messages/0/content/0/text"),
        (record(body(3), 0, 120), "provider-miss", None, None),
        (record(body(3), 0, 62), "too-soon", None, None),
        (record(body(3), 0, 9000), "idle-expiry", None, None),
    ],
)
def test_causes(tmp_path: Path, second: Any, cause: str | None, part: str | None, pointer: str | None) -> None:
    _, report = audit(tmp_path, [FIRST, second])
    bust = report["requests"][1]["bust"]
    found = (None, None, None) if bust is None else (bust["cause"], bust["part"], bust["pointer"])
    assert found == (cause, part, pointer)
    assert {row["seq"] for row in report["requests"]} == {None}
    if bust is not None:
        assert bust["lost_tokens"] > 0 and (bust["cost"] or cause == "model-switch")


def test_side_requests_and_other_sessions_do_not_disturb(tmp_path: Path) -> None:
    title = {"model": "deepseek-flash", "system": "Give a title.", "messages": [turn("user", "a title ")]}
    records = [FIRST, record(title, 0, 61), record(body(1), 0, 62, "t"), record(body(3), 5000, 120)]
    _, report = audit(tmp_path, records)
    assert [row["wire"]["previous"] for row in report["requests"]] == [None, None, None, 0]
    assert report["summary"]["busts"] == 0
    assert report["captures"]["sessions"] == ["s", "t"]


def test_the_providers_word_stands_beside_the_cause(tmp_path: Path) -> None:
    told = {"cache_miss_reason": {"type": "tools_changed"}}
    _, report = audit(tmp_path, [FIRST, record(body(3, tools=TOOLS[:2]), 0, 120, diagnostics=told)])
    assert "tools_changed" in report["requests"][1]["bust"]["detail"]


@pytest.mark.parametrize(
    ("limit", "records", "code"),
    [
        ("busts>0", [FIRST, record(body(3), 5000, 120)], 0),
        ("busts>0", [FIRST, record(body(3), 0, 120)], 1),
        ("cost>1", [FIRST], 0),
        ("hit_rate<0.99", [FIRST], 1),
    ],
)
def test_gates(tmp_path: Path, limit: str, records: list[Any], code: int) -> None:
    assert audit(tmp_path, records, "--fail-on", limit)[0] == code


def test_text_and_usage_errors(tmp_path: Path) -> None:
    audit(tmp_path, [FIRST, record(body(3), 0, 120)])
    shown = run("cache", "--capture-only", tmp_path / "a.jsonl").stdout.decode()
    assert "1 bust: session s, 2 requests" in shown and "provider-miss" in shown
    assert run("cache").returncode == 2
    assert run("cache", "log", "--capture-only", tmp_path / "a.jsonl").returncode == 2


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(5, 4, 0, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
         Usage(5, 4, 0, 2)),
        ({"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}, Usage(5, 4, 0, 2)),
        ({"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3},
         Usage(5, 4, 3, 2)),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, None, 0, 2)),
        ({"input_tokens": 5}, None),
        ({"prompt_tokens": 3, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, None),
        ({"input_tokens": True, "output_tokens": 2}, None),
        (None, None),
    ],
)  # fmt: skip
def test_usage_of_each_protocol(value: Any, usage: Usage | None) -> None:
    assert usage_of(value) == usage
