"""The sections of the HTML report. Every text that comes from a log goes through ``esc``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from dsh_audit.checks.cache_model import CacheRow, Money
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.drift import describe
from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.finding import Finding
from dsh_audit.inspection import format_time
from dsh_audit.report import text
from dsh_audit.report.html_chart import render_chart

_SWATCH = '<svg viewBox="0 0 14 12" aria-hidden="true">'
_LEGEND = (
    ("reused", "reused: an earlier request of its lineage began with it"),
    ("resent", "re-sent: was sent before, behind the first difference"),
    ("new", "new"),
)


def esc(value: object) -> str:
    """Any text, safe in HTML text and in double-quoted attributes, control characters shown."""
    return escape(text.clean(str(value)), quote=True)


def money(amount: Money | None, places: int = 5) -> str:
    """An amount with its currency; ``~`` marks an estimate."""
    if amount is None:
        return "–"
    return f"{'~' if amount.basis == 'estimate' else ''}{amount.amount:.{places}f}"


def render_summary(report: CacheReport) -> str:
    """Title, verdict and the cards."""
    summary, header = report.summary, report.log.session_header
    session = esc(report.log.session_id or "unnamed session")
    if summary.busts:
        kind = "bad" if summary.unexplained else "warn"
        verdict = f"{text.plural(summary.busts, 'bust')}, {summary.unexplained} of them nobody asked for"
    else:
        kind, verdict = "good", "no busts"
    provider = "no figures" if summary.hit_rate is None else f"{summary.hit_rate:.1%}"
    predicted = "" if summary.predicted_hit_rate is None else f"{summary.predicted_hit_rate:.1%} predicted"
    cost = "–" if summary.cost is None else f"{summary.cost:.4f} {esc(summary.currency)}"
    wasted = "–" if summary.bust_cost is None else f"{summary.bust_cost:.4f} {esc(summary.currency)}"
    basis = "partly estimated" if summary.estimated else "from logged usage"
    priced = f"{summary.unpriced} without a price" if summary.unpriced else basis
    cards = (
        ("Requests", str(summary.requests), f"{summary.steps} steps"),
        ("Hit rate by the provider", provider, predicted),
        ("Busts", f'<span class="{kind}">{summary.busts}</span>', f"{summary.tokens['lost']:,} tokens lost"),
        ("Cost of busts", wasted, basis if summary.bust_cost is not None else ""),
        ("Cost of all requests", cost, priced if summary.cost is not None or summary.unpriced else ""),
        ("Input tokens", f"{summary.tokens['prompt']:,}", f"{summary.tokens['cached']:,} read from the cache"),
    )
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>" for name, value, note in cards)
    facts = f"format {report.log.version}, created {format_time(header.created_at)}, {esc(report.log.source.label)}"
    return (
        f'<header><h1>Session {session}</h1><p class="soft">{facts}</p>'
        f'<p class="verdict {kind}">{verdict}</p>{_navigation()}<dl class="cards">{shown}</dl></header>'
    )


def _navigation() -> str:
    places = (("timeline", "Timeline"), ("causes", "Causes"), ("headers", "Request headers"), ("requests", "Requests"))
    items = "".join(f'<li><a href="#{place}">{name}</a></li>' for place, name in (*places, ("findings", "Findings")))
    return f'<nav aria-label="Sections"><ul>{items}</ul></nav>'


def render_timeline(report: CacheReport) -> str:
    """Chart and legend."""
    if not report.rows:
        return '<section id="timeline"><h2>Timeline</h2><p>No requests.</p></section>'
    swatches = "".join(
        f'<li>{_SWATCH}<rect class="{name}" width="14" height="12"/></svg>{label}</li>'
        for name, label in _LEGEND
    )
    swatches += (
        f'<li>{_SWATCH}<path class="cached" d="M0 6h14"/></svg>'
        "tokens the provider read from its cache (right axis)</li>"
        f'<li>{_SWATCH}<path class="bust" d="M7 11l-5 -9h10z"/></svg>bust</li>'
    )
    return (
        '<section id="timeline"><h2>Timeline</h2>'
        f'<div class="wide chart" tabindex="-1">{render_chart(report.rows)}</div>'
        f'<ul class="legend">{swatches}</ul><p class="readout mono" id="readout" aria-live="polite"></p></section>'
    )


def render_causes(report: CacheReport) -> str:
    """What broke prefixes, by cost; fixing one saves its row."""
    causes = report.summary.causes
    if not causes:
        return '<section id="causes"><h2>Causes</h2><p>Every request went on where its predecessor ended.</p></section>'
    rows = "".join(
        f'<tr><td>{esc(item.cause)}</td><td>{esc(item.part or "–")}</td><td class="n">{item.busts}</td>'
        f'<td class="n">{item.lost_tokens:,}</td><td class="n">{"–" if item.cost is None else f"{item.cost:.5f}"}</td>'
        f'<td class="n"><a href="#r{item.first}">#{item.first}</a></td></tr>'
        for item in causes
    )
    heads = _heads(("cause", "part"), ("busts", "tokens lost", f"cost, {report.summary.currency}", "first"))
    return (
        '<section id="causes"><h2>Causes</h2><p class="soft">Fixing one row would have saved its cost.</p>'
        f'<div class="wide" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></section>"
    )


def _heads(words: Iterable[str], numbers: Iterable[str]) -> str:
    left = "".join(f'<th scope="col">{esc(name)}</th>' for name in words)
    return left + "".join(f'<th scope="col" class="n">{esc(name)}</th>' for name in numbers)


def render_headers(report: CacheReport) -> str:
    """Every request-header change, with its diff folded away."""
    if not report.changes:
        body = "<p>The request header never changed between step requests.</p>"
    else:
        body = "".join(_change(change) for change in report.changes)
    return f'<section id="headers"><h2>Request headers</h2>{body}</section>'


def _change(change: HeaderChange) -> str:
    if change.declared:
        why, kind = "declared: " + ", ".join(change.declared_by), "soft"
    else:
        why, kind = "unexplained", "bad"
    placed = "" if change.placement == "head" else '<span class="tag good">in the history</span>'
    volatile = "".join(f'<span class="tag warn">{esc(name)}</span>' for name in change.volatile)
    line = (
        f'<a href="#r{change.request}">Request {change.request}</a>, seq {change.seq}, {esc(change.reason)}: '
        f'{esc(describe(change))} <span class="tag {kind}">{esc(why)}</span>{placed}{volatile}'
    )
    return f"<details><summary>{line}</summary><div>{''.join(_details(change))}</div></details>"


def _details(change: HeaderChange) -> Iterator[str]:
    if change.config:
        rows = "".join(
            f'<tr><td class="mono">{esc(item.name)}</td><td class="wrap mono">{esc(item.before)}</td>'
            f'<td class="wrap mono">{esc(item.after)}</td></tr>'
            for item in change.config
        )
        heads = _heads(("setting", "before", "after"), ())
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    tools = change.tools
    for name in ("added", "removed", "reordered", "changed"):
        names = getattr(tools, name)
        if names:
            yield f"<p>tools {name}: {', '.join(f'<code>{esc(item)}</code>' for item in names)}</p>"
    for pointer in tools.pointers:
        place = f"{esc(pointer.tool)}{esc(pointer.pointer)}"
        before, after = esc(pointer.before or "(absent)"), esc(pointer.after or "(absent)")
        yield f'<p><code>{place}</code></p><pre class="diff"><del>{before}</del><ins>{after}</ins></pre>'
    if change.system is not None:
        yield f'<pre class="diff">{"".join(map(_diff_line, change.system.diff))}</pre>'
        if change.system.is_truncated:
            yield '<p class="soft">more lines differ</p>'


def _diff_line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{esc(line)}</{tag}>" if tag else f"{esc(line)}\n"


_WORDS = ("kind", "turn.step", "bust")
_NUMBERS = ("prompt", "reused", "re-sent", "new", "cached", "input tokens", "cost")


def render_ledger(report: CacheReport) -> str:
    """One row a request; the script adds sorting and filtering."""
    rows = "".join(map(_ledger_row, report.rows))
    heads = '<th scope="col" class="n">#</th>' + _heads(_WORDS, _NUMBERS) + _heads(("model", "time"), ())
    return (
        '<section id="requests"><h2>Requests</h2>'
        '<div class="tools" id="ledger-tools" hidden><label>Filter <input type="search" id="search"></label>'
        '<label><input type="checkbox" id="only-busts"> busts only</label><span class="soft" id="shown"></span></div>'
        f'<div class="wide" tabindex="0"><table id="ledger"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
        f'</table></div><p class="soft">Cost in {esc(report.summary.currency)}; ~ is an estimate. Bytes are those of '
        "the rendered prompt: tools, system, messages. No cache promises a hit.</p></section>"
    )


def _ledger_row(row: CacheRow) -> str:
    found, usage = row.compared, row.usage
    place = "–" if row.step is None else f"{row.turn}.{row.step}"
    cached = None if usage is None else usage.cached
    prompt = None if usage is None else usage.prompt
    bust = _bust(row)
    cells = (
        _number(row.index, str(row.index)),
        f'<td>{esc(row.kind)}</td><td>{place}</td><td class="wrap">{esc(bust)}</td>',
        _bytes(found.prompt_bytes),
        _bytes(found.shared),
        _bytes(found.resent if found.prompt_bytes is not None else None),
        _bytes(found.new),
        _number(cached, "–" if cached is None else f"{cached:,}"),
        _number(prompt, "–" if prompt is None else f"{prompt:,}"),
        _number(None if row.cost is None else float(row.cost.amount), money(row.cost)),
        f"<td>{esc(row.model)}</td><td>{format_time(row.time_ms)}</td>",
    )
    sizes = (f"reused {text.size(found.shared)}", f"re-sent {text.size(found.resent)}", f"new {text.size(found.new)}")
    say = f"#{row.index} {row.kind} {place}: {text.size(found.prompt_bytes)}, {', '.join(sizes)}"
    say += "" if cached is None else f"; {cached} tokens cached"
    hit = ' class="hit"' if row.bust else ""
    return f'<tr id="r{row.index}"{hit} data-say="{esc(f"{say}. {bust}" if bust else say)}">{"".join(cells)}</tr>'


def _bust(row: CacheRow) -> str:
    if row.bust is None:
        return row.remark or ""
    why = row.bust.why
    parts = [why.cause, why.part or "", "" if why.seq is None else f"at seq {why.seq}", why.pointer or ""]
    line = " ".join(part for part in parts if part)
    detail = f" – {why.detail}" if why.detail else ""
    return f"{line}{detail}"


def _number(value: float | None, shown: str) -> str:
    return f'<td class="n" data-v="{"" if value is None else value}">{shown}</td>'


def _bytes(count: int | None) -> str:
    return _number(count, "–" if count is None else text.size(count))


def render_findings(findings: Sequence[Finding]) -> str:
    """Findings with code, place and advice."""
    if not findings:
        return '<section id="findings"><h2>Findings</h2><p class="good">None.</p></section>'
    items = "".join(
        f'<li class="{finding.severity}"><strong>{esc(finding.message)}</strong> <code>{esc(finding.code)}</code>'
        f'<br><span class="soft">{esc(text.place(finding))}</span><br>{esc(finding.rule.advice)}</li>'
        for finding in findings
    )
    return f'<section id="findings"><h2>Findings</h2><ul class="findings">{items}</ul></section>'
