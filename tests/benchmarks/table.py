"""Rows of figures, each beside what it must be, as one Markdown table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tabulate import tabulate

_START, _END = "<!-- speed -->", "<!-- /speed -->"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a figure must be: at most, or at least, so much of something."""

    value: float
    unit: str = "of old"
    at_least: bool = False

    def holds(self, figure: float) -> bool:
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its verdict needs every limit to hold.

    Args:
        measured: one figure a limit.
        seconds: the raw CPU behind them, as text.
        floors: how many times the least work; None where that says nothing.
    """

    work: str
    limits: tuple[Limit, ...]
    measured: tuple[float, ...]
    seconds: str
    floors: float | None = None

    @property
    def ok(self) -> bool:
        pairs = zip(self.limits, self.measured, strict=True)
        return all(limit.holds(figure) for limit, figure in pairs)


def seconds(value: float) -> str:
    """Three digits are more than the machine can repeat."""
    return f"{value:.3f} s" if value < 1 else f"{value:.3g} s"


def render_table(rows: Iterable[Row]) -> str:
    """The rows in order, for a terminal and for the README alike."""
    heads = ("work", "must", "measured", "CPU", "floors", "")
    return tabulate([_cells(row) for row in rows], heads, tablefmt="github", disable_numparse=True)


def insert_table(text: str, table: str) -> str:
    """A document with the table between its two marks."""
    head, start, rest = text.partition(_START)
    _, end, tail = rest.partition(_END)
    return f"{head}{start}\n\n{table}\n\n{end}{tail}"


def render_line(row: Row) -> str:
    """One row while the others are still measured."""
    return " | ".join(cell for cell in _cells(row) if cell)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.work,
        ", ".join(map(str, row.limits)),
        ", ".join(f"{figure:.3g}" for figure in row.measured),
        row.seconds,
        "" if row.floors is None else f"{row.floors:.1f}",
        "ok" if row.ok else "miss",
    )
