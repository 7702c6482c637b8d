from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from importlib import resources
from typing import Any

import pytest

from dsh_audit.cli.common import read_schema
from dsh_audit.errors import UsageError
from dsh_audit.pricing import PriceTable, Rates, Usage, parse_prices, parse_usage
from tests.test_checks_cache import cache_of
from tests.toy_session import ToySession, usage


def table() -> PriceTable:
    data = (resources.files("dsh_audit") / "data" / "prices.json").read_bytes()
    return parse_prices(data, name="built-in", schema=read_schema("prices"))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("when", "model", "hit", "miss", "output", "peak"),
    [
        ("2026-08-16T15:59:59Z", "deepseek-flash", "0.0028", "0.14", "0.28", None),
        ("2026-08-16T15:59:59Z", "deepseek-v4-pro", "0.003625", "0.435", "0.87", None),
        ("2026-08-16T16:00:00Z", "deepseek-flash", "0.007", "0.22", "0.66", False),
        ("2026-11-30T00:59:59Z", "deepseek-flash", "0.003", "0.15", "0.60", False),
        ("2026-11-30T01:00:00Z", "deepseek-flash", "0.006", "0.30", "1.20", True),
        ("2026-11-30T04:00:00Z", "deepseek-flash", "0.003", "0.15", "0.60", False),
        ("2026-11-30T06:00:00Z", "deepseek-v4-pro", "0.044", "1.32", "3.96", True),
        ("2026-11-30T10:00:00Z", "deepseek-v4-pro", "0.022", "0.66", "1.98", False),
        ("2026-11-28T02:00:00Z", "deepseek-flash", "0.003", "0.15", "0.60", False),  # a Saturday
        ("2026-10-01T02:00:00Z", "deepseek-flash", "0.003", "0.15", "0.60", False),  # a holiday
        ("2026-11-30T02:00:00Z", "deepseek-v4-flash", "0.006", "0.30", "1.20", True),  # an alias
    ],
)
def test_prices_in_force(when: str, model: str, hit: str, miss: str, output: str, peak: bool | None) -> None:
    rates = table().rates("deepseek-official", model, at(when))
    assert rates is not None
    assert (rates.hit, rates.miss, rates.output, rates.peak) == (Decimal(hit), Decimal(miss), Decimal(output), peak)


def test_what_has_no_price_has_none() -> None:
    now = at("2026-11-30T02:00:00Z")
    assert table().rates("deepseek-official", "toy-1", now) is None
    assert table().rates("my-own-server", "deepseek-flash", now) is None
    assert table().rates("deepseek-official", "deepseek-flash", None) is None
    assert table().rates("deepseek-official", "deepseek-flash", 0) is None
    assert table().rates("deepseek-official", "deepseek-flash", now, "EUR") is None
    assert table().rates("deepseek-official", "deepseek-flash", now, "CNY") is not None


@pytest.mark.parametrize(
    ("when", "tokens", "model", "dollars"),
    [
        ("2026-11-30T12:00:00Z", 122_558, "deepseek-flash", "0.018"),
        ("2026-11-30T02:00:00Z", 122_558, "deepseek-flash", "0.036"),
        ("2026-11-30T12:00:00Z", 512_000, "deepseek-v4-pro", "0.327"),
        ("2026-11-30T02:00:00Z", 512_000, "deepseek-v4-pro", "0.653"),
        ("2026-11-30T02:00:00Z", 400_000, "deepseek-v4-pro", "0.510"),
    ],
)
def test_extra_cost_of_a_full_bust(when: str, tokens: int, model: str, dollars: str) -> None:
    rates = table().rates("deepseek-official", model, at(when))
    assert rates is not None
    assert round(rates.lost(tokens), 3) == Decimal(dollars)


def session_at(when: str, model: str, counts: list[tuple[int, int, int]]) -> ToySession:
    session = ToySession(0, model=model)
    session.time_ms = at(when)
    for number, (uncached, cached, output) in enumerate(counts):
        session.ask(f"turn {number}", counts=usage(uncached, cached, output))
    return session


# By hand, in dollars per million tokens:
# off-peak flash: (60000+9000) x 0.15 + 58000 x 0.003 + 3000 x 0.60 = 10350 + 174 + 1800 = 12324 -> 0.012324
# peak pro: (400000+500) x 1.32 + 399000 x 0.044 + 7000 x 3.96 = 528660 + 17556 + 27720 = 573936 -> 0.573936
# before the change, flat flash: 1000000 x 0.14 + 2000000 x 0.0028 + 50000 x 0.28 = 140000 + 5600 + 14000 -> 0.1596
HAND = [
    ("2026-11-30T12:00:00Z", "deepseek-flash", [(60_000, 0, 1_000), (9_000, 58_000, 2_000)], "0.012324"),
    ("2026-11-30T02:00:00Z", "deepseek-v4-pro", [(400_000, 0, 3_000), (500, 399_000, 4_000)], "0.573936"),
    ("2026-08-16T15:00:00Z", "deepseek-flash", [(1_000_000, 0, 50_000), (0, 2_000_000, 0)], "0.1596"),
]


@pytest.mark.parametrize(("when", "model", "counts", "dollars"), HAND)
def test_sessions_cost_what_a_hand_computes(
    when: str, model: str, counts: list[tuple[int, int, int]], dollars: str
) -> None:
    assert cache_of(session_at(when, model, counts)).summary.cost == Decimal(dollars)


def test_a_session_across_a_price_change_pays_both_prices() -> None:
    session = ToySession(0)
    session.time_ms = at("2026-08-16T15:59:00Z")
    session.ask("one", counts=usage(1_000_000, 0, 0))
    session.time_ms = at("2026-08-16T16:00:00Z")
    session.ask("two", counts=usage(1_000_000, 0, 0))
    report = cache_of(session)
    assert report.summary.cost == Decimal("0.14") + Decimal("0.22")
    assert [row.cost.basis if row.cost else None for row in report.rows] == ["usage", "estimate"]


def test_a_bust_costs_what_a_hit_would_have_saved() -> None:
    session = ToySession(0)
    session.time_ms = at("2026-11-30T02:00:00Z")
    session.ask("word " * 20_000, counts=usage(50_000, 0))
    session.tools = session.tools[:1]
    session.ask("two", counts=usage(50_000, 0))
    report = cache_of(session)
    bust = report.rows[1].bust
    assert bust is not None and bust.cost is not None
    assert 49_800 < bust.lost_tokens < 50_000
    assert bust.cost.amount == bust.lost_tokens * (Decimal("0.30") - Decimal("0.006")) / 1_000_000
    assert report.summary.bust_cost == bust.cost.amount


def test_usage_is_made_of_disjoint_counts() -> None:
    assert parse_usage({"inputTokens": 5, "outputTokens": 2}) == Usage(5, None, 0, 2)
    counts = {"inputTokens": 5, "cacheReadTokens": 7, "cacheWriteTokens": 3, "outputTokens": 2, "reasoningTokens": 1}
    parsed = parse_usage(counts)
    assert parsed == Usage(5, 7, 3, 2, 1) and parsed.prompt == 15
    broken: list[Any] = [None, [], {"inputTokens": -1, "outputTokens": 1}, {"inputTokens": 1.5, "outputTokens": 1}, {}]
    broken += [{"inputTokens": True, "outputTokens": 1}]
    broken += [{"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": False}]
    assert not any(map(parse_usage, broken))


def test_own_price_files_win_and_broken_ones_are_told() -> None:
    own = {
        "schema": "dsh-audit/prices/1",
        "models": [
            {
                "id": "toy",
                "prices": [{"currency": "EUR", "flat": {"hit": 1, "miss": "2.5", "output": 3}, "source": "me"}],
            }
        ],
    }
    rates = parse_prices(json.dumps(own).encode(), name="own", schema=read_schema("prices")).rates(
        "any", "toy", at("2026-11-30T02:00:00Z"), "EUR"
    )
    assert rates is not None and rates.cost(Usage(1_000_000, 0, 0, 0)) == Decimal("2.5")
    for broken in (b"{", b"[]", b'{"schema":"dsh-audit/prices/1","models":[{"id":"a","prices":[{"currency":"EUR"}]}]}'):
        with pytest.raises(UsageError):
            parse_prices(broken, name="own", schema=read_schema("prices"))
    lost = {**own, "models": [{"id": "a", "prices": [{"currency": "EUR", "calendar": "x", "source": "me"}]}]}
    with pytest.raises(UsageError):
        parse_prices(json.dumps(lost).encode(), name="own", schema=read_schema("prices"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.5", "NaN"),
        ("2.5", "-Infinity"),
        ("2.5", "1e300"),
        ('"2.5"', '"' + "9" * 400 + '"'),
        ("09:00", "25:99"),
        ("12:00", "02:00"),
    ],
)
def test_price_files_that_cannot_be_reckoned_with_are_refused(old: str, new: str) -> None:
    calendar = {"utc_offset_minutes": 480, "weekdays": [1], "hours": [["09:00", "12:00"]]}
    band = {"hit": 1, "miss": 2.5, "output": "2.5"}
    price = {"currency": "EUR", "calendar": "c", "peak": band, "off_peak": band, "source": "me"}
    own = {"schema": "dsh-audit/prices/1", "calendars": {"c": calendar}, "models": [{"id": "a", "prices": [price]}]}
    text = json.dumps(own)
    parse_prices(text.encode(), name="own", schema=read_schema("prices"))
    with pytest.raises(UsageError):
        parse_prices(text.replace(old, new).encode(), name="own", schema=read_schema("prices"))


def test_tokens_that_missed_are_priced_as_they_were_billed() -> None:
    rates = Rates(Decimal("0.3"), Decimal(3), Decimal(15), Decimal("3.75"), "USD", None, "-")
    assert rates.lost(100_000, written=40_000) == Decimal("0.138") + Decimal("0.162")
    assert rates.lost(100_000, written=200_000) == Decimal("0.345")
