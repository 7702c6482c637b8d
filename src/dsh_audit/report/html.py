"""``report``: one self-contained HTML file, for people who would rather look than read.

Nothing in it reaches a network: the content security policy allows exactly the one style and the one script inside,
by digest. Without JavaScript the chart, the tables and the diffs are all there; the script adds reading out, sorting
and filtering, and puts no text into the page but through ``textContent``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from dsh_audit.checks.cache_model import Bust
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.drift import describe
from dsh_audit.checks.lineage import STEPS
from dsh_audit.replay.inspection import format_time
from dsh_audit.report import text
from dsh_audit.report.html_chart import build_chart, is_known
from dsh_audit.report.html_page import render_page
from dsh_audit.text.ecma import stringify_text
from dsh_audit.text.to_json import to_json

_MOST = 200
"""Header changes and findings that are shown."""


def render_html(report: CacheReport) -> str:
    """The report of one session; the same bytes for the same result."""
    return render_page(
        "report",
        _FILTERS,
        report=report,
        most=_MOST,
        verdict=_verdict(report),
        cards=_cards(report),
        chart=build_chart(report.rows),
        legend=_legend(report),
        rules=", ".join(sorted({rule.name for rule in report.rules})),
    )


def _money(amount: Decimal | None) -> str:
    return "–" if amount is None else text.amount(amount)


def _bust_place(bust: Bust) -> str:
    why = bust.why
    told = " – ".join(filter(None, ("", why.what, why.detail)))
    parts = ("" if why.seq is None else f"at seq {why.seq}", why.pointer, told.strip())
    return "".join(f" {part}" for part in parts if part)


_FILTERS: dict[str, Callable[..., Any]] = {
    "bust_place": _bust_place,
    "count": lambda number: "–" if number is None else f"{number:,}",
    "describe": describe,
    "json": to_json,
    "money": _money,
    "place": text.place,
    "plural": text.plural,
    "setting": lambda value: "(absent)" if value is None else stringify_text(value),
    "size": text.size,
    "time": format_time,
}


def _verdict(report: CacheReport) -> tuple[str, str]:
    summary = report.summary
    if summary.requests and all(row.remark in ("no-body", "unsent") for row in report.rows):
        return "warn", "not compared: no request could be rebuilt"
    if not summary.requests:
        return "soft", "no requests"
    if not summary.busts:
        return "good", "no busts"
    asked = f"{summary.unexplained} of them nobody asked for" if summary.unexplained else "expected"
    return "bad" if summary.unexplained else "warn", f"{text.plural(summary.busts, 'bust')}, {asked}"


def _cards(report: CacheReport) -> Iterator[tuple[str, str, str]]:
    """Name, value and note of each card."""
    summary = report.summary
    unsent = sum(row.remark == "unsent" for row in report.rows)
    side = summary.requests - summary.steps
    counts = [text.plural(summary.steps, "step")]
    counts += [text.plural(side, "side request")] if side else []
    counts += [f"{unsent} more never sent"] if unsent else []
    yield "Requests", f"{summary.requests:,}", ", ".join(counts)
    predicted = "" if summary.predicted_hit_rate is None else f", {summary.predicted_hit_rate:.1%} predicted"
    if summary.hit_rate is None:
        yield "Hit rate", "–", f"no figures from the provider{predicted}"
    else:
        yield "Hit rate", f"{summary.hit_rate:.1%}", f"by the provider{predicted}"
    yield "Busts", f"{summary.busts:,}", f"{summary.tokens['lost']:,} input tokens lost"
    basis = "partly estimated" if summary.estimated else "from logged usage"
    yield (
        f"Cost of busts, {summary.currency}",
        _money(summary.bust_cost),
        basis if summary.bust_cost is not None else "",
    )
    priced = f"{text.plural(summary.unpriced, 'request')} without a price" if summary.unpriced else basis
    yield f"Cost of all, {summary.currency}", _money(summary.cost), priced if summary.cost or summary.unpriced else ""
    yield "Input tokens", f"{summary.tokens['prompt']:,}", f"{summary.tokens['cached']:,} read from the cache"


def _legend(report: CacheReport) -> Iterator[tuple[str, str, str]]:
    """Class, shape and words, for what the chart shows."""
    box = "M0 0h14v12H0z"
    yield "reused", box, "reused: an earlier request of its lineage began with it"
    yield "resent", box, "re-sent: was sent before, behind the first difference"
    yield "new", box, "new"
    rows = report.rows
    if any(row.usage is not None and row.usage.cached is not None for row in rows):
        yield "cached", "M0 6h14", "tokens the provider read from its cache"
    marks = (
        (False, "bust", "bust nobody asked for"),
        (True, "bust expected", "expected bust: a switch, a compaction, a prune, time"),
    )
    for declared, name, label in marks:
        if any(row.bust is not None and row.bust.declared is declared for row in rows):
            yield name, "M7 11l-5-9h10z", label
    if any(row.lineage != STEPS for row in rows):
        yield "side", "M0 4h14v6H0z", "side request: title, compaction, search"
    if not all(map(is_known, rows)):
        yield "unknown", "M1 2h12v9H1z", "never sent, or without a body to show"
