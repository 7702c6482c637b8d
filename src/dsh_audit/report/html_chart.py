"""The timeline chart of the HTML report: static SVG from numbers, one path a series, so that it stays light.

Bytes and the provider's tokens share one scale (the bytes per token of the whole session), so that the line runs along
the edge of what could be reused where the provider did reuse it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsh_audit.checks.cache_model import CacheRow
from dsh_audit.checks.lineage import STEPS
from dsh_audit.report import text

WIDTH, HEIGHT = 1000, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 70, 26, 34
PLOT_WIDTH, PLOT_HEIGHT, BASE = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, HEIGHT - BOTTOM
_THIN = 1.5
"""Least width of what must not be missed among thousands of requests."""

# What was re-sent is told apart without colours too.
_HATCH = (
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="ground" d="M0 0h6v6H0z"/><path class="stripe" d="M0 0h2v6H0z"/></pattern>'
)


@dataclass(frozen=True, slots=True)
class _Plot:
    """Scales.

    Args:
        step: width of a request.
        top: bytes at the upper edge.
        per_token: bytes; None where no provider told tokens.
    """

    rows: Sequence[CacheRow]
    step: float
    top: float
    per_token: float | None

    def x(self, place: float) -> float:
        return LEFT + place * self.step

    def y(self, size: float) -> float:
        return BASE - size * PLOT_HEIGHT / self.top

    def bar(self, place: int, least: float = 0.0) -> tuple[float, float]:
        """Left edge and width."""
        width = max(least, self.step - min(2.0, self.step * 0.2) if self.step > 2 else self.step)
        return self.x(place + 0.5) - width / 2, width


def render_chart(rows: Sequence[CacheRow]) -> str:
    """Stacked bytes per request, busts marked above, the provider's cached tokens as a line; empty without rows.

    No text of a log gets in.
    """
    if not rows:
        return ""
    plot = _plot(rows)
    parts = (
        f'<svg id="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" data-left="{LEFT}" '
        f'data-width="{PLOT_WIDTH}" aria-labelledby="chart-title chart-text">'
        '<title id="chart-title">Bytes of each request by what a prefix cache can do with them</title>'
        f'<desc id="chart-text">{text.plural(len(rows), "request")} from left to right; arrow keys read them out. '
        "The table below holds the same numbers.</desc>",
        _HATCH,
        *_axes(plot),
        _path("new", _area(plot, [(row.compared.prompt_bytes or 0) if is_known(row) else 0 for row in rows])),
        _path("reused", _area(plot, list(map(_shared, rows)))),
        _path("resent", _resent(plot)),
        _path("unknown", _unknown(plot)),
        _path("side", _side(plot)),
        *_cached(plot),
        _path("bust", _marks(plot, declared=False)),
        _path("bust expected", _marks(plot, declared=True)),
        f'<path class="cursor" d="M0 {TOP}V{BASE}"/></svg>',
    )
    return "".join(parts)


def is_known(row: CacheRow) -> bool:
    """Whether it was sent, with a body that can be shown."""
    return row.remark != "unsent" and row.compared.prompt_bytes is not None


def _shared(row: CacheRow) -> int:
    return (row.compared.shared or 0) if is_known(row) else 0


def _plot(rows: Sequence[CacheRow]) -> _Plot:
    top = max(((row.compared.prompt_bytes or 0) for row in rows if is_known(row)), default=0)
    told = [(row, row.usage) for row in rows if row.usage is not None and row.usage.prompt]
    both = [(row.compared.prompt_bytes or 0, usage.prompt) for row, usage in told if is_known(row)]
    most = max((usage.cached or 0 for _, usage in told), default=0)
    tokens = sum(count for _, count in both)
    per_token = sum(size for size, _ in both) / tokens if tokens else (top / most if most else None)
    return _Plot(rows, PLOT_WIDTH / len(rows), max(top, most * (per_token or 0)) or 1, per_token)


def _path(name: str, shape: str) -> str:
    return f'<path class="{name}" d="{shape}"/>' if shape else ""


def _area(plot: _Plot, sizes: Sequence[int]) -> str:
    """Bars from the base line, or one outline where they are too narrow for gaps."""
    if plot.step > 2:
        return "".join(_box(plot, place, 0, size) for place, size in enumerate(sizes) if size)
    steps = "".join(f"V{plot.y(size):.1f}H{plot.x(place + 1):.1f}" for place, size in enumerate(sizes))
    return f"M{LEFT} {BASE}{steps}V{BASE}z" if any(sizes) else ""


def _box(plot: _Plot, place: int, low: int, high: int, least: float = 0.0) -> str:
    x, width = plot.bar(place, least)
    return f"M{x:.1f} {plot.y(low):.1f}V{plot.y(high):.1f}h{width:.1f}V{plot.y(low):.1f}z"


def _resent(plot: _Plot) -> str:
    return "".join(
        _box(plot, place, _shared(row), _shared(row) + row.compared.resent, _THIN)
        for place, row in enumerate(plot.rows)
        if row.compared.resent and is_known(row)
    )


def _unknown(plot: _Plot) -> str:
    """Low open boxes for requests without bytes."""
    bars = ((place, *plot.bar(place, _THIN)) for place, row in enumerate(plot.rows) if not is_known(row))
    return "".join(f"M{x:.1f} {BASE}v-10h{width:.1f}v10z" for _, x, width in bars)


def _side(plot: _Plot) -> str:
    """A strip below the base line marks requests of other lineages than the steps."""
    places = (place for place, row in enumerate(plot.rows) if row.lineage != STEPS)
    bars = (plot.bar(place, _THIN) for place in places)
    return "".join(f"M{x:.1f} {BASE + 3}h{width:.1f}v6h{-width:.1f}z" for x, width in bars)


def _cached(plot: _Plot) -> Iterator[str]:
    """A line through the step requests, broken where the provider told nothing; dots for what stands alone."""
    if plot.per_token is None:
        return
    lines: list[list[str]] = [[]]
    dots: list[str] = []
    for place, row in enumerate(plot.rows):
        cached = row.usage.cached if row.usage is not None else None
        point = None if cached is None else f"{plot.x(place + 0.5):.1f} {plot.y(cached * plot.per_token):.1f}"
        if row.lineage != STEPS:
            dots += [point] if point else []
        elif point:
            lines[-1].append(point)
        else:
            lines.append([])
    dots += [line[0] for line in lines if len(line) == 1]
    curve = "".join(f"M{'L'.join(line)}" for line in lines if len(line) > 1)
    spots = "".join(f"M{dot}h0" for dot in dots)
    # A wider line of the ground colour below keeps it readable on bars of any colour.
    for name, shape in (("halo", curve), ("cached", curve), ("halo dot", spots), ("cached dot", spots)):
        yield _path(name, shape)


def _marks(plot: _Plot, *, declared: bool) -> str:
    return "".join(
        f"M{plot.x(place + 0.5):.1f} {TOP - 4}l-4.5-9h9z"
        for place, row in enumerate(plot.rows)
        if row.bust is not None and row.bust.declared is declared
    )


def _axes(plot: _Plot) -> Iterable[str]:
    right = LEFT + PLOT_WIDTH
    for share in (0, 0.5, 1):
        y = BASE - share * PLOT_HEIGHT
        yield f'<path class="axis" d="M{LEFT} {y:.1f}H{right}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text.size(round(plot.top * share))}</text>'
        if plot.per_token:
            yield f'<text x="{right + 8}" y="{y + 4:.1f}">{round(plot.top * share / plot.per_token):,}</text>'
    yield f'<text x="{LEFT}" y="{HEIGHT - 8}">request {plot.rows[0].index}</text>'
    if len(plot.rows) > 1:
        yield f'<text x="{right}" y="{HEIGHT - 8}" text-anchor="end">request {plot.rows[-1].index}</text>'
    yield '<text x="4" y="12">bytes</text>'
    if plot.per_token:
        yield f'<text x="{WIDTH - 4}" y="12" text-anchor="end">tokens</text>'
