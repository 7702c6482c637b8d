"""The ledger of the HTML report: one row a request."""

from __future__ import annotations

from dsh_audit.checks.cache_model import CacheRow, Money
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.replay.inspection import format_time
from dsh_audit.report import text
from dsh_audit.report.html_text import esc, heads
from dsh_audit.text.to_json import to_json

_WORDS = ("lineage", "turn.step", "bust")
_NUMBERS = ("prompt", "reused", "re-sent", "new", "predicted", "cached", "of tokens", "cost")


def render_ledger(report: CacheReport) -> str:
    """The table; the script adds sorting and filtering."""
    if not report.rows:
        return '<section id="requests"><h2>Requests</h2><p>No requests.</p></section>'
    rows = "".join(map(_row, report.rows))
    columns = '<th scope="col" class="n">#</th>' + heads(_WORDS, _NUMBERS) + heads(("model", "time"), ())
    return (
        '<section id="requests"><h2>Requests</h2>'
        '<div class="tools" id="ledger-tools" hidden><label>Filter <input type="search" id="search"></label>'
        '<label><input type="checkbox" id="only-busts"> busts only</label>'
        '<span class="soft" id="shown" role="status"></span></div>'
        '<div class="wide tall" tabindex="0" role="region" aria-label="Requests">'
        f'<table id="ledger"><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="soft">Cost in {esc(report.summary.currency)}; ~ is an estimate. Bytes are those of the rendered '
        "prompt: tools, system, messages. Predicted: tokens that the cache rules let the provider reuse; cached: "
        "tokens it says it did. No cache promises a hit.</p></section>"
    )


def _row(row: CacheRow) -> str:
    found, usage = row.compared, row.usage
    known = found.prompt_bytes is not None
    cells = (
        f'<td class="n">{row.index}</td><td>{esc(row.lineage)}</td>'
        f"<td>{'–' if row.step is None else f'{row.turn}.{row.step}'}</td>",
        f'<td class="wrap">{_bust(row)}</td>',
        _bytes(found.prompt_bytes),
        _bytes(found.shared),
        _bytes(found.resent if known else None),
        _bytes(found.new),
        _count(row.predicted.reused if row.predicted else None),
        _count(usage.cached if usage else None),
        _count(usage.prompt if usage else None),
        _cost(row.cost),
        f'<td class="wrap">{esc(row.model, 100)}</td><td>{format_time(row.time_ms)}</td>',
    )
    kind = "" if row.bust is None else ' class="hit expected"' if row.bust.declared else ' class="hit"'
    return f'<tr id="r{row.index}"{kind}>{"".join(cells)}</tr>'


def _bust(row: CacheRow) -> str:
    if row.bust is None:
        return f'<span class="soft">{row.remark}</span>' if row.remark else ""
    why = row.bust.why
    place = "" if why.seq is None else f"at seq {why.seq}"
    parts = (place, why.pointer or "", f"– {why.detail}" if why.detail else "")
    what = why.cause if why.part is None else f"{why.cause} {why.part}"
    expected = " (expected)" if row.bust.declared else ""
    return f"<strong>{esc(what)}</strong>{expected} {esc(' '.join(part for part in parts if part), 500)}".rstrip()


def _number(value: object, shown: str) -> str:
    return f'<td class="n" data-v="{value}">{shown}</td>'


def _bytes(count: int | None) -> str:
    return '<td class="n" data-v="">–</td>' if count is None else _number(count, text.size(count))


def _count(count: int | None) -> str:
    return '<td class="n" data-v="">–</td>' if count is None else _number(count, f"{count:,}")


def _cost(cost: Money | None) -> str:
    if cost is None:
        return '<td class="n" data-v="">–</td>'
    peak = ' <span class="peak">peak</span>' if cost.peak else ""
    estimate = "~" if cost.basis == "estimate" else ""
    return _number(to_json(cost.amount), f"{estimate}{text.amount(cost.amount)}{peak}")
