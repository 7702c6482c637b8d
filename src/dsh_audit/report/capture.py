"""``capture inspect`` as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsh_audit.capture.inspection import ArchiveSummary, ExchangeSummary
from dsh_audit.finding import sort_findings
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.text.to_json import to_json

_UNVERIFIED = "unverified: read by its documentation, no file of this tool was tested"


def report_archives(archives: Sequence[ArchiveSummary]) -> Report:
    """The report of ``capture inspect``; one case an archive."""
    findings = sort_findings([finding for archive in archives for finding in archive.findings])

    def as_json() -> dict[str, Any]:
        return {
            "schema": "dsh-audit/capture-inspect/1",
            "archives": to_json(archives),
            "findings": to_json(findings),
        }

    return build_report(
        "capture inspect",
        as_json=as_json,
        as_text=lambda: "\n".join("\n".join(_block(archive)) + "\n" for archive in archives),
        findings=findings,
        summary=[("archives", len(archives)), ("requests", sum(len(archive.exchanges) for archive in archives))],
        cases=[
            Case(archive.source, archive.format, "passed", _counts(archive.counts["claims"])) for archive in archives
        ],
    )


def _block(archive: ArchiveSummary) -> list[str]:
    counts, masked = archive.counts, {name.lower() for item in archive.exchanges for name in item.masked}
    tool = archive.tool if archive.verified else f"{archive.tool} ({_UNVERIFIED})"
    told = {name: count for name, count in counts["responses"].items() if count}
    rows = [
        ("capture", archive.source),
        ("format", f"{archive.format}: {archive.keeps}"),
        ("tool", tool),
        ("requests", f"{len(archive.exchanges)}: {_counts(counts['kinds'])}"),
        ("sessions", _counts(counts["sessions"]) + (" (- names none)" if "-" in counts["sessions"] else "")),
        ("at most", _counts(counts["claims"])),
        ("answers", _counts(told)),
        ("masked", ", ".join(sorted(masked)) or "none"),
    ]
    lines = [f"{name:<10}{text.clean(value)}" for name, value in rows]
    headings = ("capture", "kind", "session", "status", "bytes", "at most", "note")
    lines += ["", text.table(headings, map(_row, archive.exchanges), right=(3, 4))]
    return lines + (["", *text.findings_block(archive.findings)] if archive.findings else [])


def _row(item: ExchangeSummary) -> tuple[Any, ...]:
    exchange = item.exchange
    notes = [exchange.truncation, f"was {exchange.content_encoding}" if exchange.content_encoding else None]
    note = text.clean("; ".join(filter(None, notes)))
    size = "-" if item.body is None else item.body.size_bytes
    status = "-" if exchange.status is None else exchange.status
    return exchange.id, exchange.kind, text.clean(exchange.session_id or "-"), status, size, item.claim, note


def _counts(counts: Mapping[str, int]) -> str:
    shown = [f"{count} {name}" for name, count in list(counts.items())[:8]]
    more = len(counts) - len(shown)
    return ", ".join(shown + ([f"and {more} more"] if more else [])) or "none"
