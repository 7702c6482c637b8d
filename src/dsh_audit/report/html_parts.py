"""The sections of the HTML report but the ledger. Every text that comes from a log goes through ``esc``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.drift import describe
from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.checks.lineage import STEPS
from dsh_audit.deployment import Used
from dsh_audit.events import Json
from dsh_audit.finding import Finding
from dsh_audit.replay.inspection import format_time
from dsh_audit.report import text
from dsh_audit.report.html_chart import is_known, render_chart
from dsh_audit.report.html_text import esc, heads
from dsh_audit.text.ecma import stringify_text

_MOST = 200
"""Header changes and findings that are shown."""

_SWATCH = '<svg viewBox="0 0 14 12" aria-hidden="true">'


def render_summary(report: CacheReport) -> str:
    """Title, verdict and the cards."""
    header = report.log.session_header
    session = esc(report.log.session_id or "unnamed session")
    kind, verdict = _verdict(report)
    cards = _cards(report)
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>" for name, value, note in cards)
    facts = f"format {report.log.version}, created {format_time(header.created_at)}, {esc(report.log.source.label)}"
    return (
        f'<header><h1>Session {session}</h1><p class="soft">{facts}</p>'
        f'<p class="verdict {kind}">{verdict}</p>{_navigation()}<dl class="cards">{shown}</dl></header>'
    )


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
    busts = f'<span class="{_verdict(report)[0]}">{summary.busts:,}</span>'
    yield "Busts", busts, f"{summary.tokens['lost']:,} input tokens lost"
    basis = "partly estimated" if summary.estimated else "from logged usage"
    currency = esc(summary.currency)
    yield f"Cost of busts, {currency}", _money(summary.bust_cost), basis if summary.bust_cost is not None else ""
    priced = f"{text.plural(summary.unpriced, 'request')} without a price" if summary.unpriced else basis
    yield f"Cost of all, {currency}", _money(summary.cost), priced if summary.cost or summary.unpriced else ""
    yield "Input tokens", f"{summary.tokens['prompt']:,}", f"{summary.tokens['cached']:,} read from the cache"


def _money(amount: Decimal | None) -> str:
    return "–" if amount is None else text.amount(amount)


def _navigation() -> str:
    places = ("Timeline", "Causes", "Headers", "Requests", "Findings")
    items = "".join(f'<li><a href="#{name.lower()}">{name}</a></li>' for name in places)
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def render_timeline(report: CacheReport) -> str:
    """Chart, legend, and the place where the script reads out."""
    if not report.rows:
        return '<section id="timeline"><h2>Timeline</h2><p>No requests.</p></section>'
    entries = "".join(f"<li>{_SWATCH}{mark}</svg>{label}</li>" for mark, label in _legend(report))
    return (
        f'<section id="timeline"><h2>Timeline</h2><div class="wide chart">{render_chart(report.rows)}</div>'
        f'<ul class="legend">{entries}</ul><p class="readout" id="readout" aria-live="polite"></p></section>'
    )


def _legend(report: CacheReport) -> Iterator[tuple[str, str]]:
    """Swatch and words, for what the chart shows."""
    box = '<path class="{}" d="M0 0h14v12H0z"/>'
    yield box.format("reused"), "reused: an earlier request of its lineage began with it"
    yield box.format("resent"), "re-sent: was sent before, behind the first difference"
    yield box.format("new"), "new"
    rows = report.rows
    if any(row.usage is not None and row.usage.cached is not None for row in rows):
        yield '<path class="cached" d="M0 6h14"/>', "tokens the provider read from its cache"
    marks = (
        (False, "bust", "bust nobody asked for"),
        (True, "bust expected", "expected bust: a switch, a compaction, a prune, time"),
    )
    for declared, name, label in marks:
        if any(row.bust is not None and row.bust.declared is declared for row in rows):
            yield f'<path class="{name}" d="M7 11l-5-9h10z"/>', label
    if any(row.lineage != STEPS for row in rows):
        yield '<path class="side" d="M0 4h14v6H0z"/>', "side request: title, compaction, search"
    if not all(map(is_known, rows)):
        yield '<path class="unknown" d="M1 2h12v9H1z"/>', "never sent, or without a body to show"


def render_causes(report: CacheReport) -> str:
    """What broke prefixes, by cost; fixing one saves its row."""
    causes = report.summary.causes
    if not causes:
        compared = "Every request that can be compared went on where its predecessor ended."
        line = compared if report.rows else "No requests."
        return f'<section id="causes"><h2>Causes</h2><p>{line}</p></section>'
    rows = "".join(
        f'<tr><td>{esc(item.cause)}</td><td>{esc(item.part or "–")}</td><td class="n">{item.busts}</td>'
        f'<td class="n">{item.lost_tokens:,}</td>'
        f'<td class="n">{_money(item.cost)}</td>'
        f'<td class="n"><a href="#r{item.first}">#{item.first}</a></td></tr>'
        for item in causes
    )
    columns = heads(("cause", "part"), ("busts", "tokens lost", f"cost, {report.summary.currency}", "first"))
    return (
        '<section id="causes"><h2>Causes</h2><p class="soft">Fixing one row would have saved its cost.</p>'
        f'<div class="wide" tabindex="0" role="region" aria-label="Causes"><table><thead><tr>{columns}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def render_headers(report: CacheReport) -> str:
    """Every request-header change, with its diff folded away."""
    body = "".join(map(_change, report.changes[:_MOST]))
    if not body:
        body = "<p>The request header never changed between step requests.</p>"
    body += _rest(len(report.changes), "change", "<code>dsh-audit drift</code> lists them all")
    return f'<section id="headers"><h2>Request headers</h2>{body}</section>'


def _rest(count: int, noun: str, where: str) -> str:
    return f'<p class="soft">… and {text.plural(count - _MOST, f"more {noun}")}; {where}.</p>' if count > _MOST else ""


def _change(change: HeaderChange) -> str:
    if change.declared:
        why, kind = "declared: " + ", ".join(change.declared_by), "soft"
    else:
        why, kind = "unexplained", "bad"
    placed = "" if change.placement == "head" else ' <span class="tag good">in the history</span>'
    volatile = "".join(f' <span class="tag warn">{esc(name)}</span>' for name in change.volatile)
    line = (
        f'<a href="#r{change.request}">Request {change.request}</a>, seq {change.seq}, {esc(change.reason)}: '
        f'{esc(describe(change), 300)} <span class="tag {kind}">{esc(why)}</span>{placed}{volatile}'
    )
    return f"<details><summary>{line}</summary><div>{''.join(_details(change))}</div></details>"


def _details(change: HeaderChange) -> Iterator[str]:
    if change.config:
        rows = "".join(
            f'<tr><td class="wrap mono">{esc(item.name)}</td><td class="wrap mono">{_setting(item.before)}</td>'
            f'<td class="wrap mono">{_setting(item.after)}</td></tr>'
            for item in change.config
        )
        columns = heads(("setting", "before", "after"), ())
        yield f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>"
    tools = change.tools
    for name in ("added", "removed", "reordered", "changed"):
        names = getattr(tools, name)
        if names:
            yield f"<p>tools {name}: {', '.join(f'<code>{esc(item)}</code>' for item in names)}</p>"
    for pointer in tools.pointers:
        place = f"{esc(pointer.tool)}{esc(pointer.pointer)}"
        before, after = esc(pointer.before or "(absent)"), esc(pointer.after or "(absent)")
        yield f'<p><code>{place}</code></p><pre class="diff"><del>-{before}</del><ins>+{after}</ins></pre>'
    if change.system is not None:
        yield f'<pre class="diff">{"".join(map(_diff_line, change.system.diff))}</pre>'
        if change.system.is_truncated:
            yield '<p class="soft">more lines differ</p>'


def _setting(value: Json) -> str:
    return "(absent)" if value is None else esc(stringify_text(value))


def _diff_line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{esc(line)}</{tag}>" if tag else f"{esc(line)}\n"


def render_findings(findings: Sequence[Finding]) -> str:
    """Findings with code, place and advice."""
    if not findings:
        return '<section id="findings"><h2>Findings</h2><p class="good">None.</p></section>'
    items = "".join(
        f'<li class="{finding.severity}"><span class="soft">{finding.severity}</span> '
        f"<strong>{esc(finding.message)}</strong> <code>{esc(finding.code)}</code>"
        f'<br><span class="soft">{esc(text.place(finding))}</span><br>{esc(finding.rule.advice)}</li>'
        for finding in findings[:_MOST]
    )
    rest = _rest(len(findings), "finding", "<code>dsh-audit cache --format json</code> lists them all")
    return f'<section id="findings"><h2>Findings</h2><ul class="findings">{items}</ul>{rest}</section>'


def render_assumed(unlogged: Sequence[Used]) -> str:
    """What the bodies needed that no log holds; empty when nothing was."""
    if not unlogged:
        return ""
    items = "".join(
        f'<tr><td class="wrap mono">{esc(used.name)}</td><td class="wrap mono">{_setting(used.value)}</td>'
        f"<td>{esc(used.source)}</td></tr>"
        for used in unlogged
    )
    columns = heads(("value", "taken as", "from"), ())
    return (
        '<section id="assumed"><h2>Not in the log</h2><p class="soft">The bodies were rebuilt with these; '
        "<code>--deployment FILE</code> sets them.</p>"
        '<div class="wide" tabindex="0" role="region" aria-label="Not in the log">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{items}</tbody></table></div></section>"
    )
