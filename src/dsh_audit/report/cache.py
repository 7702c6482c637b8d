"""``cache`` as text, and ledgers for those who only want the numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from dsh_audit.checks.cache_model import Bust, CacheRow
from dsh_audit.checks.cache_sum import CacheReport, CacheSummary, CauseSum
from dsh_audit.checks.gates import Comparison
from dsh_audit.finding import Finding
from dsh_audit.report import text
from dsh_audit.text.to_json import pick_members

_HEADINGS = ("#", "kind", "turn.step", "prompt", "reused", "re-sent", "new", "cached", "of", "cost", "bust")
_MAX_ROWS = 40

_LEDGER = """
index kind lineage turn step attempt time_ms seq provider model outcome previous=compared.previous
wire_shared_bytes=compared.wire_shared wire_body_bytes=compared.wire_bytes best=compared.best
prompt_shared_bytes=compared.shared prompt_body_bytes=compared.prompt_bytes resent_bytes=compared.resent_bytes
new_bytes=compared.new predicted_tokens=predicted.reused predicted_basis=predicted.basis prompt_tokens=usage.prompt
uncached_tokens=usage.uncached cache_read_tokens=usage.cached cache_write_tokens=usage.written
output_tokens=usage.output cost=cost.amount cost_basis=cost.basis currency=cost.currency peak=cost.peak
bust_cause=bust.why.cause bust_part=bust.why.part bust_seq=bust.why.seq bust_pointer=bust.why.pointer
bust_lost_tokens=bust.lost_tokens bust_cost=bust.cost.amount bust_basis=bust.basis declared=bust.declared remark
"""
"""The columns of ledgers, as :mod:`~dsh_audit.text.to_json` lists members."""


def render_cache(report: CacheReport, *, every_row: bool = False) -> str:
    """Verdict, causes, table of requests, comparison, other findings.

    Args:
        every_row: list all requests, not only the busts of a long session.
    """
    lines = [_verdict(report), *_facts(report.summary)]
    if report.summary.causes:
        lines += [
            "",
            text.table(
                ("cause", "part", "busts", "tokens", "cost", "first"), _causes(report.summary), right=(2, 3, 4, 5)
            ),
        ]
    rows = list(report.rows)
    if len(rows) > _MAX_ROWS and not every_row:
        rows = [row for row in rows if row.bust]
        lines += (
            ["", text.dim(f"{len(report.rows)} requests; those with a bust (--all lists every one):")] if rows else []
        )
    if rows:
        lines += ["", text.table(_HEADINGS, map(_row, rows), right=(0, 3, 4, 5, 6, 7, 8, 9))]
    if report.comparison is not None:
        lines += ["", *_comparison(report.comparison)]
    rest = [finding for finding in report.findings if not _is_shown(finding)]
    if rest:
        lines += ["", *text.findings_block(rest)]
    return "\n".join(lines).rstrip() + "\n"


def _is_shown(finding: Finding) -> bool:
    shown = ("cache/threshold", "cache/not-append-only", "cache/wire-rewrite")
    return finding.code.startswith("cache/") and finding.code not in shown


def _verdict(report: CacheReport) -> str:
    summary, session = report.summary, text.clean(report.log.session_id or "?")
    requests = text.plural(summary.requests, "request")
    blind = sum(row.remark == "no-body" for row in report.rows)
    if blind and blind == summary.requests:
        why = "none could be rebuilt (dsh-audit requests says why)"
        return f"{text.warn('not compared')}: session {session}, {requests}; {why}"
    left_out = f"; {blind} could not be rebuilt and compared" if blind else ""
    if not summary.busts:
        return f"{text.good('no busts')}: session {session}, {requests}{left_out}"
    noun = text.plural(summary.busts, "bust")
    shown = text.bad(noun) if summary.unexplained else text.warn(noun)
    return f"{shown}: session {session}, {requests}; {summary.unexplained} nobody asked for{left_out}"


def _facts(summary: CacheSummary) -> Iterator[str]:
    rate = (
        "the provider reports no cache figures"
        if summary.hit_rate is None
        else f"{summary.hit_rate:.1%} by the provider"
    )
    predicted = "" if summary.predicted_hit_rate is None else f", {summary.predicted_hit_rate:.1%} predicted"
    yield f"hit rate    {rate}{predicted}"
    if summary.cost is None:
        yield (
            f"cost        no price for {text.plural(summary.unpriced, 'request')}"
            if summary.unpriced
            else "cost        not known"
        )
        return
    parts = [f"{text.amount(summary.cost)} {summary.currency}"]
    if summary.bust_cost:
        parts.append(f"{text.amount(summary.bust_cost)} of it because of busts")
    if summary.unpriced:
        parts.append(f"{text.plural(summary.unpriced, 'request')} without a price")
    if summary.estimated:
        parts.append("part of it estimated")
    yield f"cost        {', '.join(parts)}"


def _causes(summary: CacheSummary) -> Iterator[tuple[Any, ...]]:
    for cause in summary.causes:
        yield cause.cause, cause.part or "-", cause.busts, cause.lost_tokens, _cause_cost(cause), f"#{cause.first}"


def _cause_cost(cause: CauseSum) -> str:
    return "-" if cause.cost is None else text.amount(cause.cost)


def _row(row: CacheRow) -> tuple[Any, ...]:
    found, usage = row.compared, row.usage
    place = "-" if row.step is None else f"{row.turn}.{row.step}"
    cached = "-" if usage is None or usage.cached is None else usage.cached
    return (
        row.index,
        row.kind,
        place,
        text.size(found.prompt_bytes),
        text.size(found.shared),
        text.size(found.resent) if found.resent else "-",
        text.size(found.new),
        cached,
        usage.prompt if usage else "-",
        text.amount(row.cost.amount) + ("?" if row.cost.basis == "estimate" else "") if row.cost else "-",
        _bust(row.bust) if row.bust else text.dim(row.remark or ""),
    )


def _bust(bust: Bust) -> str:
    why = bust.why
    what = why.cause if why.part in (None, "messages") else f"{why.cause} {why.part}"
    place = f" at seq {why.seq}" if why.seq is not None else ""
    pointer = f" {text.clean(why.pointer)}" if why.pointer else ""
    pointer += f", {text.clean(why.what)}" if why.what else ""
    shown = text.warn(what) if bust.declared else text.bad(what)
    return f"{shown}{place}{pointer}"


def _comparison(comparison: Comparison) -> Iterator[str]:
    if not comparison.differences and comparison.first_header is None:
        yield text.good("same numbers as the baseline")
        return
    rows = [(item.metric, _cell(item.before), _cell(item.after)) for item in comparison.differences]
    yield text.table(("against the baseline", "before", "now"), rows, right=(1, 2))
    header = comparison.first_header
    if header is not None:
        yield f"first header difference: step request {header['step_request']}, {', '.join(header['parts'])}"


def _cell(value: int | float | None) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def ledger_rows(report: CacheReport) -> list[dict[str, Any]]:
    """One flat record a request."""
    return [pick_members(row, _LEDGER) for row in report.rows]


def render_csv(report: CacheReport) -> str:
    """The ledger as CSV: a heading, then one line a request; absent values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [item.partition("=")[0] for item in _LEDGER.split()], lineterminator="\n")
    writer.writeheader()
    for row in ledger_rows(report):
        writer.writerow({name: _csv_cell(value) for name, value in row.items()})
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    value = text.clean(value)
    return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value  # else a spreadsheet takes it for a formula


def rank(reports: Sequence[CacheReport]) -> list[CacheReport]:
    """By what busts cost, then by tokens lost, then by label."""

    def key(report: CacheReport) -> tuple[Any, ...]:
        summary = report.summary
        return (-(summary.bust_cost or 0), -summary.tokens["lost"], -summary.busts, report.log.source.label)

    return sorted(reports, key=key)


def render_ranking(reports: Sequence[CacheReport], findings: Sequence[Finding]) -> str:
    """One row a session, the most wasteful first."""
    columns = ("session", "requests", "busts", "hit rate", "cost", "wasted", "tokens lost", "top cause")
    lines = [text.bold(text.plural(len(reports), "session")), ""]
    ids = [report.log.session_id for report in reports]
    unique = len(set(ids)) == len(ids) and all(ids)
    rows = [_ranked(report, unique) for report in rank(reports)]
    lines.append(text.table(columns, rows, right=(1, 2, 3, 4, 5, 6)))
    if findings:
        lines += ["", *text.findings_block(findings)]
    return "\n".join(lines).rstrip() + "\n"


def _ranked(report: CacheReport, by_id: bool) -> tuple[Any, ...]:
    summary = report.summary
    top = summary.causes[0] if summary.causes else None
    return (
        text.clean((report.log.session_id if by_id else None) or report.log.source.label),
        summary.requests,
        summary.busts,
        "-" if summary.hit_rate is None else f"{summary.hit_rate:.1%}",
        "-" if summary.cost is None else text.amount(summary.cost),
        "-" if summary.bust_cost is None else text.amount(summary.bust_cost),
        summary.tokens["lost"],
        "-" if top is None else f"{top.cause} {top.part or ''}".rstrip(),
    )
