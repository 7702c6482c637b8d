"""The timeline chart of the HTML report: static SVG from numbers, one path a series, so that it stays light."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsh_audit.checks.cache_model import CacheRow
from dsh_audit.report import text

WIDTH, HEIGHT = 1000, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 64, 22, 30
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM


@dataclass(frozen=True, slots=True)
class _Bar:
    x: float
    width: float
    reused: int
    resent: int
    new: int


def render_chart(rows: Sequence[CacheRow]) -> str:
    """Stacked bytes per request, busts marked above, the provider's cached tokens as a line. Text is ours only."""
    if not rows:
        return ""
    step = PLOT_WIDTH / len(rows)
    gap = min(2.0, step * 0.2) if step > 2 else 0.0
    bars = [_bar(row, LEFT + place * step + gap / 2, step - gap) for place, row in enumerate(rows)]
    top = max((bar.reused + bar.resent + bar.new for bar in bars), default=0) or 1
    tokens = [row.usage.cached if row.usage is not None else None for row in rows]
    most = max((count for count in tokens if count is not None), default=0)
    parts = [
        f'<svg id="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" data-left="{LEFT}" '
        f'data-width="{PLOT_WIDTH}" aria-labelledby="chart-title chart-text">',
        '<title id="chart-title">Bytes of each request by what a prefix cache can do with them</title>',
        f'<desc id="chart-text">{len(rows)} requests from left to right; arrow keys read them out. '
        "The table below holds the same numbers.</desc>",
        *_axes(top, most, len(rows)),
        _area("reused", bars, top, lambda bar: (0, bar.reused)),
        _area("resent", bars, top, lambda bar: (bar.reused, bar.resent)),
        _area("new", bars, top, lambda bar: (bar.reused + bar.resent, bar.new)),
        _line(tokens, most, step),
        _marks(rows, step),
        f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{TOP + PLOT_HEIGHT}"/>',
        "</svg>",
    ]
    return "".join(parts)


def _bar(row: CacheRow, x: float, width: float) -> _Bar:
    found = row.compared
    return _Bar(x, width, found.shared or 0, found.resent, found.new or 0)


def _area(name: str, bars: Iterable[_Bar], top: int, part: object) -> str:
    assert callable(part)
    path: list[str] = []
    for bar in bars:
        below, size = part(bar)
        if size:
            height = size * PLOT_HEIGHT / top
            y = TOP + PLOT_HEIGHT - (below + size) * PLOT_HEIGHT / top
            path.append(f"M{bar.x:.1f} {y:.1f}h{bar.width:.1f}v{height:.1f}h{-bar.width:.1f}z")
    return f'<path class="{name}" d="{"".join(path)}"/>'


def _line(tokens: Sequence[int | None], most: int, step: float) -> str:
    """The cached tokens; broken where the provider reports none."""
    if not most:
        return ""
    path: list[str] = []
    pen = "M"
    for place, count in enumerate(tokens):
        if count is None:
            pen = "M"
            continue
        y = TOP + PLOT_HEIGHT - count * PLOT_HEIGHT / most
        path.append(f"{pen}{LEFT + (place + 0.5) * step:.1f} {y:.1f}")
        pen = "L"
    return f'<path class="cached" d="{"".join(path)}"/>'


def _marks(rows: Sequence[CacheRow], step: float) -> str:
    path = "".join(
        f"M{LEFT + (place + 0.5) * step:.1f} {TOP - 3}l-4 -8h8z" for place, row in enumerate(rows) if row.bust
    )
    return f'<path class="bust" d="{path}"/>' if path else ""


def _axes(top: int, most: int, count: int) -> Iterable[str]:
    base = TOP + PLOT_HEIGHT
    for share in (0, 0.5, 1):
        y = base - share * PLOT_HEIGHT
        yield f'<path class="axis" d="M{LEFT} {y:.1f}h{PLOT_WIDTH}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text.size(round(top * share))}</text>'
        if most:
            label = f"{round(most * share):,}"
            yield f'<text x="{LEFT + PLOT_WIDTH + 8}" y="{y + 4:.1f}">{label}</text>'
    yield f'<text x="{LEFT}" y="{base + 20}">request 0</text>'
    yield f'<text x="{LEFT + PLOT_WIDTH}" y="{base + 20}" text-anchor="end">request {count - 1}</text>'
    if most:
        yield f'<text x="{WIDTH - 4}" y="12" text-anchor="end">cached tokens</text>'
    yield '<text x="4" y="12">bytes</text>'
