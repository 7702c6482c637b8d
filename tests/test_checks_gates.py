from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from dsh_audit.checks.cache_sum import COUNTS, METRICS, measure_summary
from dsh_audit.checks.gates import Measure, check_limits, compare_reports, flatten, measured, parse_limit
from dsh_audit.errors import UsageError
from dsh_audit.finding import Where
from dsh_audit.rules.cache import THRESHOLD
from dsh_audit.text.to_json import to_json
from tests.test_checks_cache import cache_of
from tests.toy_session import ToySession, tool, usage

NOW = {"hit_rate": 0.9, "busts": 2, "busts.compaction": 1, "busts.prune": 0, "cost_per_step": 0.011, "cost": None}
OLD = {"hit_rate": 0.95, "busts": 2, "busts.compaction": 0, "cost_per_step": 0.01}


def outcome(text: str, baseline: Any = None) -> list[str]:
    now, before = ({name: measured(number) for name, number in (side or {}).items()} for side in (NOW, baseline))
    limit = parse_limit(text, METRICS)
    return [f.message for f in check_limits([limit], now, before if baseline else None, THRESHOLD, Where())]


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
        parse_limit(text, METRICS)


def test_a_relative_threshold_needs_a_baseline() -> None:
    with pytest.raises(UsageError, match="relative to a baseline"):
        outcome("busts>+0")


@pytest.mark.parametrize(
    ("low", "high", "fails"),
    [
        (3, 3, "> 2, >= 3, < 4, <= 3, == 3, != 2"),
        (3, None, "> 2, > 9, >= 9, < 4, <= 3, == 3, == 9, != 3, != 2"),
        (3, 5, "> 4, >= 5, < 4, <= 3, == 4, != 3, != 4"),
        (None, None, "> 9, >= 9, < 9, <= 9, == 9, != 9"),
    ],
)
def test_a_limit_passes_only_where_no_number_that_may_be_true_crosses_it(
    low: int | None, high: int | None, fails: str
) -> None:
    least, most = (Decimal(sign if one is None else one) for one, sign in ((low, "-Infinity"), (high, "Infinity")))
    measure = Measure(least, most)
    tried = {f"{op} {number}" for op in ("<", "<=", ">", ">=", "==", "!=") for number in (2, 3, 4, 5, 9)}
    crossed = {text for text in tried if measure.can_be(*_split(text))}
    assert set(fails.split(", ")) <= crossed
    if low is not None:
        assert "< 2" not in crossed and "== 2" not in crossed
        assert high is None or not crossed & {"> 5", "> 9", "== 9"}


def _split(text: str) -> tuple[str, Decimal]:
    op, number = text.split()
    return op, Decimal(number)


@pytest.mark.parametrize("metric", METRICS)
def test_a_number_that_nothing_in_the_run_gave_fails_its_limit(metric: str) -> None:
    empty = to_json(cache_of(ToySession(0)).summary)
    blind = {**empty, "requests": 2, "steps": 2}
    assert measure_summary(blind)[metric].is_exact is measure_summary(empty)[metric].is_exact is (metric in COUNTS)


def test_a_sum_over_unpriced_requests_is_a_lower_bound() -> None:
    session = ToySession(0)
    session.ask("one", counts=usage(1000, 0))
    session.provider = "elsewhere"
    session.ask("two", counts=usage(1000, 0))
    summary = to_json(cache_of(session).summary)
    limit = parse_limit("cost>1", METRICS)
    found = check_limits([limit], measure_summary(summary), None, THRESHOLD, Where())
    assert [finding.message.partition(": cost is at least ")[2].partition(": ")[2] for finding in found] == [
        "no price is known for 1 of 2 requests"
    ]


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
