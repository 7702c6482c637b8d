"""``drift`` as text."""

from __future__ import annotations

from collections.abc import Iterator

from dsh_audit.checks.drift import describe
from dsh_audit.checks.drift_model import DriftReport, HeaderChange
from dsh_audit.checks.tool_diff import ToolsChange
from dsh_audit.finding import Finding
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.text.to_json import to_json


def report_drift(report: DriftReport) -> Report:
    """One case a change: drift is a warning, so all pass unless the log itself is unsound."""
    counts = report.summary
    session = report.log.session_id or "no session"
    return build_report(
        "drift",
        as_json=lambda: to_json(report),
        as_text=lambda: render_drift(report),
        findings=report.findings,
        summary=[(name.replace("_", "-"), counts[name]) for name in ("changes", "unexplained", "in_history")],
        cases=[Case(f"request {change.request}", session, "passed", describe(change)) for change in report.changes],
    )


def render_drift(report: DriftReport) -> str:
    """A verdict line, one block per change, findings that are about something else."""
    lines = [_verdict(report)]
    for change in report.changes:
        lines += ["", *_block(change)]
    rest = [finding for finding in report.findings if not _is_shown(finding)]
    if rest:
        lines += ["", *text.findings_block(rest)]
    return "\n".join(lines).rstrip() + "\n"


def _is_shown(finding: Finding) -> bool:
    return finding.code.startswith("drift/")


def _verdict(report: DriftReport) -> str:
    session = text.clean(report.log.session_id or "?")
    counts = report.summary
    if not counts["changes"]:
        what = "no differences" if report.against else "no drift"
        return text.good(what) + f": session {session}, {text.plural(len(report.headers), 'request header')}"
    unexplained = counts["unexplained"]
    noun = text.plural(counts["changes"], "difference" if report.against else "change")
    verdict = text.bad(noun) if unexplained else text.warn(noun)
    parts = ", ".join(f"{part} {count}" for part, count in counts["parts"].items())
    line = f"{verdict}: session {session}; {parts}; {unexplained} unexplained"
    if counts["in_history"]:
        line += f", {counts['in_history']} in the history"
    if counts["volatile"]:
        line += "; volatile: " + ", ".join(f"{kind} {count}" for kind, count in counts["volatile"].items())
    return line


def _block(change: HeaderChange) -> Iterator[str]:
    place = f"request {change.request}" + (f" (turn {change.turn}, step {change.step})" if change.turn else "")
    why = "declared: " + ", ".join(change.declared_by) if change.declared else "unexplained"
    if not change.declared and len(change.unexplained) < len(change.parts):
        why = "unexplained: " + ", ".join(change.unexplained)
    shown = text.dim(why) if change.declared else text.warn(why)
    where = "" if change.placement == "head" else ", in the history"
    yield f"{text.bold(place)} at seq {change.seq}, {change.reason}{where} [{shown}]"
    yield "  " + text.clean(describe(change))
    yield from _pointers(change.tools)
    if change.system is not None:
        for line in change.system.diff:
            yield "  " + _coloured(text.clean(line))
        if change.system.is_truncated:
            yield text.dim("  … more lines differ")


def _pointers(tools: ToolsChange) -> Iterator[str]:
    for item in tools.pointers:
        sides = f"{item.before or '(absent)'} → {item.after or '(absent)'}"
        detail = item.kind if item.kind == "key-order" else sides
        yield f"  {text.clean(item.tool)}{text.clean(item.pointer)}: {text.clean(detail)}"


def _coloured(line: str) -> str:
    if line.startswith("+"):
        return text.good(line)
    if line.startswith("-"):
        return text.bad(line)
    return text.dim(line) if line.startswith("@@") else line
