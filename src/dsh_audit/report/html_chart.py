"""The timeline chart of the HTML report: static SVG from numbers, one path a series, so that it stays light.

Bytes and the provider's tokens share one scale (the bytes per token of the whole session), so that the line runs along
the edge of what could be reused where the provider did reuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_audit.checks.cache_model import CacheRow
from dsh_audit.checks.lineage import STEPS
from dsh_audit.record import dataclass
from dsh_audit.report import text

WIDTH, HEIGHT = 1000, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 70, 26, 34
PLOT_WIDTH, PLOT_HEIGHT, BASE = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, HEIGHT - BOTTOM
_GRID = tuple((share, BASE - share * PLOT_HEIGHT) for share in (0, 0.5, 1))
_THIN = 1.5
"""Least width of what must not be missed among thousands of requests."""


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


@dataclass(frozen=True, slots=True)
class Chart:
    """What the template draws.

    Args:
        paths: class and shape; no text of a log gets in.
        labels: x, y, anchor, text.
    """

    paths: Sequence[tuple[str, str]]
    labels: Sequence[tuple[int, str, str, str]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    plot_width: int = PLOT_WIDTH


def build_chart(rows: Sequence[CacheRow]) -> Chart | None:
    """Stacked bytes per request, busts marked above, the provider's cached tokens as a line; None without rows."""
    if not rows:
        return None
    plot = _plot(rows)
    axes = [("axis", f"M{LEFT} {y:.1f}H{LEFT + PLOT_WIDTH}") for _, y in _GRID]
    paths = (
        ("new", _area(plot, [(row.compared.prompt_bytes or 0) if is_known(row) else 0 for row in rows])),
        ("reused", _area(plot, list(map(_shared, rows)))),
        ("resent", _resent(plot)),
        ("unknown", _unknown(plot)),
        ("side", _side(plot)),
        *_cached(plot),
        ("bust", _marks(plot, declared=False)),
        ("bust expected", _marks(plot, declared=True)),
    )
    drawn = [*axes, *((name, shape) for name, shape in paths if shape), ("cursor", f"M0 {TOP}V{BASE}")]
    return Chart(drawn, list(_labels(plot)))


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


def _cached(plot: _Plot) -> Iterator[tuple[str, str]]:
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
    yield from (("halo", curve), ("cached", curve), ("halo dot", spots), ("cached dot", spots))


def _marks(plot: _Plot, *, declared: bool) -> str:
    return "".join(
        f"M{plot.x(place + 0.5):.1f} {TOP - 4}l-4.5-9h9z"
        for place, row in enumerate(plot.rows)
        if row.bust is not None and row.bust.declared is declared
    )


def _labels(plot: _Plot) -> Iterator[tuple[int, str, str, str]]:
    right, foot = LEFT + PLOT_WIDTH, str(HEIGHT - 8)
    for share, y in _GRID:
        yield LEFT - 8, f"{y + 4:.1f}", "end", text.size(round(plot.top * share))
        if plot.per_token:
            yield right + 8, f"{y + 4:.1f}", "start", f"{round(plot.top * share / plot.per_token):,}"
    yield LEFT, foot, "start", f"request {plot.rows[0].index}"
    if len(plot.rows) > 1:
        yield right, foot, "end", f"request {plot.rows[-1].index}"
    yield 4, "12", "start", "bytes"
    if plot.per_token:
        yield WIDTH - 4, "12", "end", "tokens"
