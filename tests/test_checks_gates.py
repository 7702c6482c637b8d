from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.checks.cache_sum import METRICS
from dsh_audit.checks.gates import check_thresholds, compare_reports, flatten, parse_threshold
from dsh_audit.errors import UsageError
from dsh_audit.finding import Where
from dsh_audit.text.to_json import to_json
from tests.test_checks_cache import cache_of
from tests.toy_session import ToySession, tool

NOW = {"hit_rate": 0.9, "busts": 2, "busts.compaction": 1, "cost_per_step": 0.011, "cost": None}
OLD = {"hit_rate": 0.95, "busts": 2, "cost_per_step": 0.01}


def outcome(text: str, baseline: Any = None) -> list[str]:
    threshold = parse_threshold(text, METRICS)
    return [finding.message for finding in check_thresholds([threshold], NOW, baseline, Where())]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hit_rate<0.95", "hit_rate<0.95: hit_rate is 0.9"),
        ("hit_rate < 95%", "hit_rate < 95%: hit_rate is 0.9"),
        ("hit_rate<0.9", None),
        ("hit_rate<=.9", "hit_rate<=.9: hit_rate is 0.9"),
        ("busts>0", "busts>0: busts is 2"),
        ("busts>=3", None),
        ("busts==2", "busts==2: busts is 2"),
        ("busts!=2", None),
        ("busts.compaction>0", "busts.compaction>0: busts.compaction is 1"),
        ("busts.prune>0", None),
        ("cost>1", "cost>1: cost is not known"),
        ("cost_per_step>+5%", "cost_per_step>+5%: cost_per_step is 0.011 (baseline 0.01, limit 0.0105)"),
        ("cost_per_step>+10%", None),
        ("hit_rate<-0.01", "hit_rate<-0.01: hit_rate is 0.9 (baseline 0.95, limit 0.94)"),
        ("hit_rate<-0.1", None),
        ("busts>+0", None),
        ("busts.compaction>+0", "busts.compaction>+0: busts.compaction is 1 (baseline 0, limit 0)"),
        ("bust_cost>+0", "bust_cost>+0: bust_cost is not known"),
    ],
)
def test_thresholds(text: str, message: str | None) -> None:
    assert outcome(text, OLD) == ([] if message is None else [message])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not of the form"),
        ("busts", "not of the form"),
        ("busts>", "not of the form"),
        (">0", "not of the form"),
        ("busts>a", "not of the form"),
        ("busts=0", "not of the form"),
        ("busts>1e3", "not of the form"),
        ("busts>0 or", "not of the form"),
        ("bust>0", "no number is called bust"),
        ("hit_rate.x>0", "no number is called"),
        ("tokens>0", "no number is called"),
        ("tokens.losst>0", "no number is called tokens.losst"),
        ("busts.compacton>0", "no number is called busts.compacton"),
        ("busts.>0", "no number is called"),
        ("busts>\u0661", "not of the form"),
    ],
)
def test_errors_are_clear(text: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        parse_threshold(text, METRICS)


def test_a_relative_threshold_needs_a_baseline() -> None:
    with pytest.raises(UsageError, match="relative to a baseline"):
        outcome("busts>+0")


def report(*, tools: int = 2, switch: bool = False) -> dict[str, Any]:
    session = ToySession(0, tools=[tool(f"t{n}") for n in range(tools)])
    session.ask("one")
    if switch:
        session.tools = session.tools[:1]
    session.ask("two")
    out: dict[str, Any] = to_json(cache_of(session))
    return out


def test_reports_are_compared_by_numbers_and_first_header() -> None:
    same = compare_reports(report(), report())
    assert (same.differences, same.first_header) == ((), None)
    busted = compare_reports(report(switch=True), report())
    changed = {item.metric: (item.before, item.after) for item in busted.differences}
    assert changed["busts"] == (0, 1) and changed["busts.header-change"] == (None, 1)
    assert busted.first_header == {"step_request": 1, "parts": ["tools"]}
    assert compare_reports(report(tools=3), report()).first_header == {"step_request": 0, "parts": ["tools"]}


def test_metrics_of_the_help_are_those_of_the_report() -> None:
    names = set(flatten(report(switch=True)["summary"]))
    assert names - {"busts.header-change"} == {name for name in METRICS if not name.startswith("busts.")}
    assert names <= set(METRICS)
