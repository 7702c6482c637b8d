"""``lint`` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsh_audit.checks.lint import CHECKS
from dsh_audit.finding import Finding, sort_findings
from dsh_audit.replay.inspection import Inspection
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report, count_findings, describe_counts, heaviest_first
from dsh_audit.text.to_json import to_json


def report_lint(
    inspections: Sequence[Inspection], judged: Sequence[tuple[str, ...]], findings: Sequence[Finding]
) -> Report:
    """One case a session.

    Args:
        inspections: one a session.
        judged: the releases that each was judged for.
        findings: about no log that was read.
    """
    every = sort_findings([*findings, *(found for one in inspections for found in one.findings)])
    return build_report(
        "lint",
        as_json=lambda: _as_json(inspections, judged, every),
        as_text=lambda: _render(inspections, every),
        findings=every,
        summary=[("sessions", len(inspections)), *count_findings(every)],
        cases=map(_case, inspections),
        loose=findings,
    )


def _as_json(
    inspections: Sequence[Inspection], judged: Sequence[tuple[str, ...]], findings: Sequence[Finding]
) -> dict[str, Any]:
    sessions = [
        {
            "session_id": one.log.session_id,
            "source": one.log.source.label,
            "format_version": one.log.version,
            "requests": sum(one.requests.values()),
            "releases": list(releases),
            "worst": None if (worst := one.worst) is None else worst.code,
        }
        for one, releases in zip(inspections, judged, strict=True)
    ]
    return {
        "schema": "dsh-audit/lint/1",
        "checks": [*(check.name for check in CHECKS), "placement"],
        "sessions": sessions,
        "findings": to_json(findings),
    }


def _case(inspection: Inspection) -> Case:
    worst = heaviest_first(inspection.findings)[:3]
    message = f"{describe_counts(worst)}: " + "; ".join(found.message for found in worst) if worst else ""
    failed = any(found.severity == "error" for found in inspection.findings)
    name = inspection.log.session_id or "no session"
    return Case(inspection.log.source.label, name, "failed" if failed else "passed", message)


def _render(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> str:
    clean = sum(not one.findings for one in inspections)
    counts = describe_counts(findings) or "nothing found"
    lines = [f"{text.bold(text.plural(len(inspections), 'session'))}, {clean} clean: {counts}"]
    if findings:
        lines += ["", *text.findings_block(findings)]
        lines += _what_to_do(findings)
    return "\n".join(lines).rstrip() + "\n"


def _what_to_do(findings: Sequence[Finding]) -> list[str]:
    """The sources of what releases and providers refuse, each once."""
    known = sorted({str(found.details["source"]) for found in findings if "source" in found.details})
    return ["", text.dim(f"known from: {'; '.join(known)}")] if known else []
