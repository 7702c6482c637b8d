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
from dsh_audit.text.to_json import to_json

_HEADINGS = ("#", "kind", "turn.step", "prompt", "reused", "re-sent", "new", "cached", "of", "cost", "bust")
_MAX_ROWS = 40

LEDGER_COLUMNS = (
    "index",
    "kind",
    "lineage",
    "turn",
    "step",
    "attempt",
    "time_ms",
    "seq",
    "provider",
    "model",
    "outcome",
    "previous",
    "wire_shared_bytes",
    "wire_body_bytes",
    "best",
    "prompt_shared_bytes",
    "prompt_body_bytes",
    "resent_bytes",
    "new_bytes",
    "predicted_tokens",
    "predicted_basis",
    "prompt_tokens",
    "uncached_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "cost",
    "cost_basis",
    "currency",
    "peak",
    "bust_cause",
    "bust_part",
    "bust_seq",
    "bust_pointer",
    "bust_lost_tokens",
    "bust_cost",
    "bust_basis",
    "declared",
    "remark",
)


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
    """One flat record a request, the columns of ``LEDGER_COLUMNS``."""
    return [_ledger_row(row) for row in report.rows]


def _ledger_row(row: CacheRow) -> dict[str, Any]:
    out = to_json(row)
    wire, prompt = out["wire"], out["prompt"]
    predicted, usage, bust = out["predicted"] or {}, out["usage"] or {}, out["bust"] or {}
    flat = {
        **out,
        **usage,
        "previous": wire["previous"],
        "wire_shared_bytes": wire["shared_bytes"],
        "wire_body_bytes": wire["body_bytes"],
        "best": prompt["best"],
        "prompt_shared_bytes": prompt["shared_bytes"],
        "prompt_body_bytes": prompt["body_bytes"],
        "resent_bytes": prompt["resent_bytes"],
        "new_bytes": prompt["new_bytes"],
        "predicted_tokens": predicted.get("reused_tokens"),
        "predicted_basis": predicted.get("basis"),
        "currency": row.cost.currency if row.cost else None,
        **{
            f"bust_{name}": bust.get(name)
            for name in ("cause", "part", "seq", "pointer", "lost_tokens", "cost", "basis")
        },
        "declared": bust.get("declared"),
    }
    return {name: flat.get(name) for name in LEDGER_COLUMNS}


def render_csv(report: CacheReport) -> str:
    """The ledger as CSV: a heading, then one line a request; absent values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, LEDGER_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in ledger_rows(report):
        writer.writerow({name: _csv_cell(value) for name, value in row.items()})
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    if isinstance(value, bool):
        return "true" if value else "false"
    # A spreadsheet takes a cell that starts so for a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


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
        text.clean(report.log.session_id if by_id else report.log.source.label),
        summary.requests,
        summary.busts,
        "-" if summary.hit_rate is None else f"{summary.hit_rate:.1%}",
        "-" if summary.cost is None else text.amount(summary.cost),
        "-" if summary.bust_cost is None else text.amount(summary.bust_cost),
        summary.tokens["lost"],
        "-" if top is None else f"{top.cause} {top.part or ''}".rstrip(),
    )
