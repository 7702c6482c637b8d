"""What tokens cost: dated price tables with peak hours, and exact decimal sums.

A model without an entry has no price: its cost is unknown, never 0. Source: caching 4a, 4e; users 0 (F9).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, ClassVar

from dsh_audit.errors import UsageError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text.budget import check_admitted

MILLION = Decimal(1_000_000)
_EARLIEST_MS = 1_000_000_000_000
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage of one request as the provider reported it: disjoint counts.

    Args:
        uncached: input tokens that were neither read from nor written to the cache.
        cached: input tokens read from the cache; None when the provider reports no cache figures.
        written: input tokens written to the cache, where the provider bills that apart.
        output: output tokens, reasoning included.
        reasoning: of the output; None where not reported.
    """

    uncached: int
    cached: int | None
    written: int
    output: int
    reasoning: int | None = None

    JSON: ClassVar = (
        "prompt_tokens=prompt uncached_tokens=uncached cache_read_tokens=cached cache_write_tokens=written "
        "output_tokens=output reasoning_tokens=reasoning"
    )

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.uncached + (self.cached or 0) + self.written


def parse_usage(value: Json) -> Usage | None:
    """Usage as logged; None when there is none or it is not made of counts. Source: users 0 (F9)."""
    if not isinstance(value, dict):
        return None
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens", "reasoningTokens")
    counts = [value.get(name) for name in names]
    # In Python a boolean is an int.
    if any(not isinstance(count, int) or isinstance(count, bool) or count < 0 for count in counts if count is not None):
        return None
    uncached, cached, written, output, reasoning = counts
    if uncached is None or output is None:
        return None
    return Usage(uncached, cached, written or 0, output, reasoning)


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices in force for one request, per million tokens.

    Args:
        hit, miss, output: of cached input, other input, output.
        write: of input written to the cache; the miss price unless the table has one.
        peak: whether the peak price applies; None without peak hours.
        source: address of the table.
        inferred: what in this entry no page states; None when all is stated.
    """

    hit: Decimal
    miss: Decimal
    output: Decimal
    write: Decimal
    currency: str
    peak: bool | None
    source: str
    inferred: str | None = None

    def cost(self, usage: Usage) -> Decimal:
        """What a request cost."""
        total = usage.uncached * self.miss + (usage.cached or 0) * self.hit
        return (total + usage.written * self.write + usage.output * self.output) / MILLION

    def lost(self, tokens: int, written: int = 0) -> Decimal:
        """What tokens cost more because they missed the cache.

        Args:
            written: how many the request was billed for writing: those that missed are among them first.
        """
        again = min(tokens, written)
        return (again * (self.write - self.hit) + (tokens - again) * (self.miss - self.hit)) / MILLION


@dataclass(frozen=True, slots=True)
class Calendar:
    """When peak prices apply.

    Args:
        zone: of the provider.
        weekdays: ISO weekdays, 1 is Monday.
        hours: (start, end) in minutes of the day, end excluded.
        holidays: days without peak hours.
        working_days: days with peak hours whatever their weekday.
    """

    zone: timezone
    weekdays: frozenset[int]
    hours: tuple[tuple[int, int], ...]
    holidays: frozenset[date]
    working_days: frozenset[date]

    def is_peak(self, time_ms: int | float) -> bool:
        """Whether a moment lies in peak hours."""
        local = datetime.fromtimestamp(time_ms // 1000, UTC).astimezone(self.zone)
        day, minute = local.date(), local.hour * 60 + local.minute
        if day not in self.working_days and (day.isoweekday() not in self.weekdays or day in self.holidays):
            return False
        return any(start <= minute < end for start, end in self.hours)


@dataclass(frozen=True, slots=True)
class _Entry:
    from_ms: int
    calendar: Calendar | None
    prices: Mapping[str, Mapping[str, Decimal]]
    source: str
    inferred: str | None


class PriceTable:
    """A parsed price file (schemas/prices.schema.json)."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        calendars = {name: _parse_calendar(value) for name, value in raw.get("calendars", {}).items()}
        self._models: dict[tuple[str, str, str], list[_Entry]] = {}
        for model in raw["models"]:
            for price in sorted(model["prices"], key=lambda price: _time_ms(price.get("from"))):
                entry = _parse_entry(price, calendars)
                for ident in (model["id"], *model.get("aliases", ())):
                    for provider in model.get("providers", ("*",)):
                        key = (provider, ident, price["currency"])
                        self._models.setdefault(key, []).append(entry)

    def rates(self, provider: str, model: str, time_ms: int | float | None, currency: str = "USD") -> Rates | None:
        """Prices of a model on a provider route at a moment; None when the table has none.

        Args:
            time_ms: when the request was sent; without a plausible time there is no price.
        """
        if time_ms is None or not _EARLIEST_MS < time_ms < 253_402_300_800_000:
            return None
        entries = self._models.get((provider, model, currency)) or self._models.get(("*", model, currency))
        at = bisect_right(entries, time_ms, key=lambda entry: entry.from_ms) if entries else 0
        if not entries or not at:
            return None
        return _rates(entries[at - 1], currency, time_ms)


def _rates(entry: _Entry, currency: str, time_ms: int | float) -> Rates:
    peak = entry.calendar.is_peak(time_ms) if entry.calendar is not None else None
    prices = entry.prices["flat" if peak is None else "peak" if peak else "off_peak"]
    return Rates(
        hit=prices["hit"],
        miss=prices["miss"],
        output=prices["output"],
        write=prices.get("write", prices["miss"]),
        currency=currency,
        peak=peak,
        source=entry.source,
        inferred=entry.inferred,
    )


def parse_prices(data: bytes, *, name: str, schema: Mapping[str, Json] | None) -> PriceTable:
    """Parse a price file.

    Args:
        data: the file, JSON.
        name: as the user named it.
        schema: schemas/prices.schema.json; None for the built-in file, which a test has checked.

    Raises:
        UsageError: not JSON, or a key or value that the schema does not allow.
    """
    try:
        check_admitted(data)
        raw = json.loads(data.decode("utf-8"), parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not a JSON price file: {error}") from None
    if schema is not None:
        _check_schema(raw, name, schema)
    try:
        return PriceTable(raw)
    except (KeyError, ValueError, ArithmeticError) as error:
        raise UsageError(f"{name}: not a usable price file: {error}") from None


def _check_schema(raw: Json, name: str, schema: Mapping[str, Json]) -> None:
    from jsonschema import Draft202012Validator

    errors = sorted(Draft202012Validator(schema).iter_errors(raw), key=lambda error: list(map(str, error.path)))
    if errors:
        place = "/".join(map(str, errors[0].path)) or "top level"
        raise UsageError(f"{name}: {place}: {errors[0].message[:200]}", hint="see schemas/prices.schema.json")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _parse_entry(price: Mapping[str, Any], calendars: Mapping[str, Calendar]) -> _Entry:
    calendar = calendars[price["calendar"]] if price.get("calendar") else None
    bands = ("peak", "off_peak") if calendar is not None else ("flat",)
    prices = {band: {key: Decimal(str(value)) for key, value in price[band].items()} for band in bands}
    return _Entry(_time_ms(price.get("from")), calendar, prices, price["source"], price.get("inferred"))


def _parse_calendar(value: Mapping[str, Any]) -> Calendar:
    return Calendar(
        zone=timezone(timedelta(minutes=value["utc_offset_minutes"])),
        weekdays=frozenset(value["weekdays"]),
        hours=tuple(_span(start, end) for start, end in value["hours"]),
        holidays=frozenset(map(date.fromisoformat, value.get("holidays", ()))),
        working_days=frozenset(map(date.fromisoformat, value.get("working_days", ()))),
    )


def _minute(text: str) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or hour * 60 + minute > _DAY:
        raise ValueError(f"{text} is no time of day")
    return hour * 60 + minute


def _span(start: str, end: str) -> tuple[int, int]:
    if _minute(start) >= _minute(end):
        raise ValueError(f"peak hours {start} to {end} do not end after they start; split them at midnight")
    return _minute(start), _minute(end)


def _time_ms(text: str | None) -> int:
    return 0 if text is None else int(datetime.fromisoformat(text).timestamp() * 1000)
