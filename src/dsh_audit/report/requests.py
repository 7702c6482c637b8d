"""``requests`` as text."""

from __future__ import annotations

from typing import Any

from dsh_audit.audit import RequestsReport
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.text.to_json import to_json

_HEADINGS = ("#", "kind", "turn.step", "try", "after seq", "model", "wire", "claim", "bytes", "sha256", "outcome")


def report_requests(report: RequestsReport) -> Report:
    """One case a request; one that cannot be rebuilt to the byte is skipped."""
    rows = report.rows
    exact = sum(row["body"] is not None for row in rows)
    return build_report(
        "requests",
        as_json=lambda: to_json(report),
        as_text=lambda: render_requests(report),
        findings=report.findings,
        summary=[("requests", len(rows)), ("rebuilt to the byte", exact)],
        cases=[_case(row, report.log.session_id or "no session") for row in rows],
    )


def _case(row: dict[str, Any], session: str) -> Case:
    name = f"request {row['index']} ({row['kind']})"
    return Case(name, session, "skipped" if row["body"] is None else "passed", "; ".join(row["why"]))


def render_requests(report: RequestsReport) -> str:
    """A summary line, a table, what was assumed, findings."""
    rows = report.rows
    exact = sum(row["body"] is not None for row in rows)
    session = text.clean(report.log.session_id or "?")
    lines = [
        text.bold(f"session {session}")
        + f": format {report.log.version}, {text.plural(report.stats.events, 'event')}, "
        + f"{text.plural(len(rows), 'request')}, {exact} rebuilt to the byte",
        "",
        text.table(_HEADINGS, (_row(row) for row in rows), right=(0, 3, 4, 8)),
    ]
    why = sorted({reason for row in rows for reason in row["why"]})
    lines += ["", *(f"not to the byte: {text.clean(reason)}" for reason in why)] if why else []
    lines += text.assumptions(item for row in rows for item in row["unlogged"])
    if report.findings:
        lines += ["", *text.findings_block(report.findings)]
    return "\n".join(line for line in lines if line is not None).rstrip() + "\n"


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    wire, body = row["wire"], row["body"]
    count = str(wire["min"]) if wire["min"] == wire["max"] else f"{wire['min']}..{wire['max']}"
    place = "-" if row["step"] is None else f"{row['turn']}.{row['step']}"
    size, digest = ("-", "-") if body is None else (body["size"], body["sha256"][:12])
    kind = row["kind"] + (" (recomputed)" if row["recomputed"] else "")
    why = row["retry_of"]
    attempt = row["attempt"] if why is None else f"{row['attempt']} {why}"
    model = text.clean(row["model"])
    shown = (row["index"], kind, place, attempt, row["prefix_seq"], model, count, row["claim"])
    return (*shown, size, digest, row["outcome"])
