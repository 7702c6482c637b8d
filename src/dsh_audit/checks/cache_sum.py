"""The sum of the rows of a cache check, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, get_args

from dsh_audit.checks.cache_model import CacheRow, CaptureRun, Money
from dsh_audit.checks.causes import Cause
from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.checks.gates import Comparison, Measure, flatten, measured
from dsh_audit.checks.provider_rules import CacheRules
from dsh_audit.deployment import Used
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import SessionLog
from dsh_audit.record import dataclass

METRICS = (
    "requests",
    "steps",
    "busts",
    "unexplained",
    "hit_rate",
    "predicted_hit_rate",
    "cost",
    "bust_cost",
    "cost_per_request",
    "cost_per_step",
    "unpriced",
    "no_data",
    "compared",
    "reported_requests",
    *(f"tokens.{name}" for name in ("prompt", "cached", "uncached", "written", "output", "lost")),
    *(f"busts.{cause}" for cause in get_args(Cause)),
)
"""Names of the numbers of a summary, as limits know them."""

COUNTS = ("requests", "steps", "compared", "reported_requests")
"""Those that are known even where nothing was sent."""

_FROM_BODIES = ("busts", "unexplained", "predicted_hit_rate", "bust_cost", "tokens.lost")
_FROM_USAGE = ("hit_rate", "unpriced", "no_data", "tokens")
_MONEY = ("cost", "cost_per_request", "cost_per_step", "bust_cost")


def measure_summary(summary: Mapping[str, Any]) -> dict[str, Measure]:
    """The numbers of a summary as limits see them: what nothing in the run gave is unknown, whatever the sum says.

    Args:
        summary: as JSON, of this release or an older one.
    """
    numbers = {name: 0 for name in METRICS if name.startswith("busts.")} | flatten(summary)
    return {name: _measure(name, number, summary) for name, number in numbers.items()}


def _measure(name: str, number: float | None, summary: Mapping[str, Any]) -> Measure:
    requests, unpriced, family = summary["requests"], summary["unpriced"], name.partition(".")[0]
    if name in COUNTS:
        return measured(number)
    if not requests:
        return Measure(why="no request was sent")
    if (name in _FROM_BODIES or family == "busts") and not summary.get("compared", requests):
        return Measure(why=f"not one of {requests} requests could be rebuilt")
    if (name in _FROM_USAGE or family == "tokens") and not summary.get("reported_requests", requests):
        return Measure(why=f"not one of {requests} requests has a usage")
    if name in _MONEY and unpriced:
        return measured(number, f"no price is known for {unpriced} of {requests} requests", is_part=True)
    return measured(number)


@dataclass(frozen=True, slots=True)
class CauseSum:
    """All busts of one cause and part; fixing that one thing saves ``cost``.

    Args:
        first: index of the first request it hit.
    """

    cause: str
    part: str | None
    busts: int
    lost_tokens: int
    cost: Decimal | None
    first: int


@dataclass(frozen=True, slots=True)
class CacheSummary:
    """The sum of all rows.

    Args:
        requests, steps: how many, of all kinds and of step requests.
        busts: how many; ``unexplained`` of them nobody asked for.
        hit_rate: cached share of all input tokens, over the requests with cache figures; None without any.
        predicted_hit_rate: reusable share of all input tokens, by the rules of the provider.
        tokens: input tokens: prompt, cached, uncached, written, lost; output.
        cost: of all requests with usage and price; None when there is none.
        bust_cost: what hits would have saved; None when no bust has a price.
        estimated: whether an estimate is part of either sum.
        unpriced: requests with usage but without a price.
        no_data: requests whose provider reports no cache figures.
        compared: requests whose prompt is known.
        reported_requests: requests with usage.
        causes: by cost, then by tokens lost.
    """

    requests: int
    steps: int
    busts: int
    unexplained: int
    hit_rate: float | None
    predicted_hit_rate: float | None
    tokens: dict[str, int]
    cost: Decimal | None
    bust_cost: Decimal | None
    currency: str
    estimated: bool
    unpriced: int
    no_data: int
    compared: int
    reported_requests: int
    causes: tuple[CauseSum, ...]

    JSON: ClassVar = (
        "requests steps busts unexplained hit_rate predicted_hit_rate tokens cost bust_cost currency estimated "
        "cost_per_request cost_per_step unpriced no_data compared reported_requests causes"
    )

    @property
    def cost_per_request(self) -> Decimal | None:
        """None without a cost."""
        return self.cost / self.requests if self.cost is not None and self.requests else None

    @property
    def cost_per_step(self) -> Decimal | None:
        """None without a cost."""
        return self.cost / self.steps if self.cost is not None and self.steps else None


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The cache check of one session.

    Args:
        log: the current generation, or what stands for it.
        log_json: its identity, the ``log`` member of reports.
        rules: the cache rules that were used.
        rows: one a request.
        changes: header changes, as in the drift report.
        summary: their sum.
        findings: sorted.
        digests: of the header's parts where they changed, to compare reports.
        comparison: with a baseline.
        unlogged: values that are not in the log and went into the bodies compared, by name and value.
    """

    log: SessionLog | CaptureRun
    log_json: dict[str, Any]
    rules: tuple[CacheRules, ...]
    rows: tuple[CacheRow, ...]
    changes: tuple[HeaderChange, ...]
    summary: CacheSummary
    findings: tuple[Finding, ...]
    digests: tuple[dict[str, Any], ...] = ()
    comparison: Comparison | None = None
    unlogged: tuple[Used, ...] = ()

    SCHEMA: ClassVar = "dsh-audit/cache/1"
    JSON: ClassVar = (
        "schema=SCHEMA log=log_json rules requests=rows summary first_drift header_digests=digests comparison "
        "findings"
    )

    @property
    def first_drift(self) -> dict[str, Any] | None:
        """The first header change at the head of the prompt that nobody asked for."""
        for change in self.changes:
            if not change.declared and change.placement == "head":
                return {"request": change.request, "seq": change.seq, "parts": list(change.parts)}
        return None


def summarise(rows: Iterable[CacheRow], currency: str) -> CacheSummary:
    """Add the rows up."""
    listed = [row for row in rows if row.remark != "unsent"]
    busts = [row for row in listed if row.bust]
    told = [row.usage for row in listed if row.usage and row.usage.cached is not None]
    used = [row.usage for row in listed if row.usage]
    guessed = [row.predicted for row in listed if row.predicted]
    costs = [row.cost for row in listed if row.cost]
    bust_costs = [row.bust.cost for row in busts if row.bust and row.bust.cost]
    prompt = sum(usage.prompt for usage in told)
    guessed_prompt = sum(item.prompt for item in guessed)
    return CacheSummary(
        requests=len(listed),
        steps=sum(row.kind == "step" for row in listed),
        busts=len(busts),
        unexplained=sum(not row.bust.declared for row in busts if row.bust),
        hit_rate=_ratio(sum(usage.cached or 0 for usage in told), prompt),
        predicted_hit_rate=_ratio(sum(item.reused for item in guessed), guessed_prompt),
        tokens={
            "prompt": sum(usage.prompt for usage in used),
            "cached": sum(usage.cached or 0 for usage in used),
            "uncached": sum(usage.uncached for usage in used),
            "written": sum(usage.written for usage in used),
            "output": sum(usage.output for usage in used),
            "lost": sum(row.bust.lost_tokens for row in busts if row.bust),
        },
        cost=sum((money.amount for money in costs), Decimal(0)) if costs else None,
        bust_cost=_bust_cost(busts, bust_costs, costs),
        currency=currency,
        estimated=any(money.basis == "estimate" for money in (*costs, *bust_costs)),
        unpriced=sum(row.usage is not None and row.cost is None for row in listed),
        no_data=sum(usage.cached is None for usage in used),
        compared=sum(row.compared.prompt_bytes is not None for row in listed),
        reported_requests=len(used),
        causes=_causes(busts),
    )


def _bust_cost(busts: list[CacheRow], bust_costs: list[Money], costs: list[Money]) -> Decimal | None:
    """None when there are busts but none has a price, or when nothing has one."""
    if bust_costs or (not busts and costs):
        return sum((money.amount for money in bust_costs), Decimal(0))
    return None


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _causes(busts: Iterable[CacheRow]) -> tuple[CauseSum, ...]:
    groups: dict[tuple[str, str | None], list[CacheRow]] = {}
    for row in busts:
        assert row.bust is not None
        groups.setdefault((row.bust.why.cause, row.bust.why.part), []).append(row)
    sums = [_cause_sum(key, rows) for key, rows in groups.items()]
    return tuple(sorted(sums, key=lambda item: (-(item.cost or 0), -item.lost_tokens, item.first)))


def _cause_sum(key: tuple[str, str | None], rows: list[CacheRow]) -> CauseSum:
    priced = [row.bust.cost.amount for row in rows if row.bust and row.bust.cost]
    return CauseSum(
        cause=key[0],
        part=key[1],
        busts=len(rows),
        lost_tokens=sum(row.bust.lost_tokens for row in rows if row.bust),
        cost=sum(priced, Decimal(0)) if priced else None,
        first=rows[0].index,
    )
