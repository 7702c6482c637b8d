"""Building blocks of text reports: verdict line, tables, findings. Colours are ANSI codes; the CLI strips them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import click

from dsh_audit.finding import Finding, Severity, sort_findings
from dsh_audit.text import ecma

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """Text from a log made safe for a terminal: what controls it, has no width or is half a character as escapes."""
    return _CONTROL.sub(_escaped, text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


def good(text: str) -> str:
    """Green."""
    return click.style(text, fg="green")


def bad(text: str) -> str:
    """Red."""
    return click.style(text, fg="red")


def warn(text: str) -> str:
    """Yellow."""
    return click.style(text, fg="yellow")


def dim(text: str) -> str:
    """Faint."""
    return click.style(text, dim=True)


def bold(text: str) -> str:
    """Bold."""
    return click.style(text, bold=True)


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()) -> str:
    """A plain aligned table; columns in ``right`` are right-aligned. Empty text without rows."""
    body = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if not body:
        return ""
    cells = [list(headers), *body]
    widths = [max(2 + len(heading), *(_width(row[at]) for row in body)) for at, heading in enumerate(headers)]
    lines = [[_padded(row[at].strip(), width, at in right) for at, width in enumerate(widths)] for row in cells]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _width(cell: str) -> int:
    return len(click.unstyle(cell.strip()) if "\x1b" in cell else cell.strip())


def _padded(cell: str, width: int, right: bool) -> str:
    padding = " " * (width - _width(cell))
    return padding + cell if right else cell + padding


def size(count: int | None) -> str:
    """Bytes for people: 812 B, 41.3 kB, 85.5 MB."""
    if count is None:
        return "-"
    if count < 1000:
        return f"{count} B"
    power = next((power for power in (1, 2, 3) if count / 1000**power < 999.95), 4)
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def amount(value: Decimal) -> str:
    """Money: two digits that count, at least four decimals."""
    places = 4
    while value and places < 8 and abs(value) < Decimal(10) ** (1 - places):
        places += 1
    return f"{value:.{places}f}"


def plural(count: int, noun: str) -> str:
    """``1 request``, ``2 requests``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def assumptions(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """What was not in the log, each once: name, value as JSON, source."""
    shown = {f"{item['name']} = {ecma.stringify_text(item['value'])} ({item['source']})" for item in items}
    if not shown:
        return []
    return ["", dim("not in the log, so taken from elsewhere:"), *(dim(f"  {clean(line)}") for line in sorted(shown))]


def place(finding: Finding) -> str:
    """Where a finding is, short."""
    where = finding.where
    parts = [clean(where.source or where.session or "")]
    names = (("line", where.line), ("frame", where.frame), ("seq", where.seq), ("request", where.request))
    parts += [f"{name} {value}" for name, value in names if value is not None]
    if where.captured is not None:
        parts.append(f"capture {clean(where.captured)}")
    if where.at is not None:
        parts.append(f"byte {where.at}")
    if where.pointer:
        parts.append(clean(where.pointer))
    return ", ".join(part for part in parts if part)


def findings_block(findings: Iterable[Finding], *, limit: int = 50) -> list[str]:
    """Findings with code, place and advice; equal advice is printed once per code."""
    ordered = sort_findings(findings)
    lines: list[str] = []
    advised: set[str] = set()
    for finding in ordered[:limit]:
        label = click.style(f"{finding.severity}[{finding.code}]", fg=_COLOURS[finding.severity])
        lines.append(f"{label} {clean(finding.message)}")
        where = place(finding)
        if where:
            lines.append(f"    at {where}")
        if finding.code not in advised:
            lines.append(dim(f"    {finding.rule.advice}"))
            advised.add(finding.code)
    if len(ordered) > limit:
        lines.append(f"… and {plural(len(ordered) - limit, 'more finding')}; --format json lists them all")
    return lines
