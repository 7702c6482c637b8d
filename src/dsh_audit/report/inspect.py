"""``inspect`` and ``sessions`` as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from dsh_audit.finding import Finding, sort_findings
from dsh_audit.replay.inspection import Inspection, format_time
from dsh_audit.report import text
from dsh_audit.report.model import Case, Outcome, Report, build_report, describe_counts
from dsh_audit.text.to_json import to_json

_HEALTH = {"ok": text.good, "notes": text.good, "refused": text.bad, "torn": text.warn, "damaged": text.bad}


def report_inspections(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> Report:
    """The report of ``inspect``."""
    return _report("inspect", inspections, findings, "logs", lambda: render_inspections(inspections, findings))


def report_sessions(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> Report:
    """The report of ``sessions``."""
    ordered = newest_first(inspections)
    return _report("sessions", ordered, findings, "sessions", lambda: render_sessions(ordered, findings))


def _report(
    command: str,
    inspections: Sequence[Inspection],
    findings: Sequence[Finding],
    member: str,
    as_text: Callable[[], str],
) -> Report:
    """One case a log, and one for each error that is about no log that was read."""

    def as_json() -> dict[str, Any]:
        return {
            "schema": f"dsh-audit/{command}/1",
            member: to_json(inspections),
            "findings": to_json(sort_findings(findings)),
        }

    healths: list[str] = [inspection.health for inspection in inspections]
    every = [*findings, *(finding for inspection in inspections for finding in inspection.findings)]
    return build_report(
        command,
        as_json=as_json,
        as_text=as_text,
        findings=sort_findings(every),
        summary=[(member, len(healths)), *((name, healths.count(name)) for name in _HEALTH)],
        cases=map(_case, inspections),
        loose=findings,
    )


def _case(inspection: Inspection) -> Case:
    first = "; ".join(finding.message for finding in inspection.findings[:3])
    message = f"{inspection.health}: {describe_counts(inspection.findings)}: {first}" if first else inspection.health
    outcome: Outcome = "failed" if inspection.health == "damaged" else "passed"
    return Case(inspection.log.source.label, inspection.log.session_id or "no session", outcome, message)


def render_inspections(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> str:
    """A block per log, then the findings that belong to none."""
    lines: list[str] = []
    for inspection in inspections:
        lines += [*_block(inspection), ""]
    lines += text.findings_block(findings)
    return "\n".join(lines).rstrip() + "\n"


def _health(inspection: Inspection) -> str:
    """The health; what is not clean names its worst finding."""
    worst = inspection.worst
    return _HEALTH[inspection.health](f"{inspection.health}: {worst.code}" if worst else "ok (quick)")


def _counted(inspection: Inspection, count: object) -> str:
    """A count, which is a lower bound where the log was not read to its end."""
    return str(count) if inspection.stopped_at is None else f"at least {count}"


def _parent(inspection: Inspection) -> str:
    header = inspection.log.session_header
    return text.clean(header.parent_session or "") + (f" ({text.clean(header.origin)})" if header.origin else "")


def _block(inspection: Inspection) -> list[str]:
    header, stats = inspection.log.session_header, inspection.stats
    health = _health(inspection)
    requests = ", ".join(f"{count} {kind}" for kind, count in inspection.requests.items()) or "none"
    rows = [
        ("session", text.clean(header.id or "-")),
        ("file", f"{text.clean(inspection.log.source.label)}  format {inspection.log.version}, {stats.encoding}"),
        ("created", format_time(header.created_at)),
        ("cwd", text.clean(header.cwd or "-")),
        ("size", f"{text.size(stats.size_bytes)} ({text.size(stats.decoded_bytes)} decoded)"),
        ("rows", f"{stats.rows} in {stats.frames} frames" if stats.frames else str(stats.rows)),
        ("events", _counted(inspection, f"{stats.events}, last seq {stats.last_seq}")),
        ("turns", _counted(inspection, inspection.turns)),
        ("requests", _counted(inspection, requests)),
        ("routes", text.clean(", ".join(inspection.routes) or "-")),
        ("sha256", stats.sha256),
    ]
    if header.agent_preset:
        rows.insert(1, ("preset", text.clean(header.agent_preset)))
    if inspection.inherited is not None:
        rows.insert(1, ("inherits", inspection.inherited.describe()))
    if header.parent_session:
        rows.insert(1, ("parent", _parent(inspection)))
    if stats.dialects:
        rows.append(("dialects", ", ".join(stats.dialects)))
    lines = [f"{text.bold('health')}    {health}", *(f"{name:<10}{value}" for name, value in rows)]
    types = sorted(inspection.event_types.items(), key=lambda item: (-item[1], item[0]))
    lines += ["", text.table(("event type", "count"), [(text.clean(n), c) for n, c in types], right=(1,))]
    if inspection.findings:
        lines += ["", *text.findings_block(inspection.findings)]
    return lines


def render_sessions(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> str:
    """One row per session of a home, newest first."""
    ordered = newest_first(inspections)
    rows = [_session_row(inspection) for inspection in ordered]
    columns = ["session", "created", "cwd", "format", "model", "turns", "requests", "size", "health"]
    for name, cells in (("parent", list(map(_parent, ordered))), ("preset", list(map(_preset, ordered)))):
        if any(cells):
            columns.insert(-1, name)
            rows = [(*row[:-1], cell or "-", row[-1]) for row, cell in zip(rows, cells, strict=True)]
    lines = [text.bold(text.plural(len(rows), "session")), "", text.table(columns, rows, right=(3, 5, 6, 7))]
    heirs = [one for one in ordered if one.inherited is not None]
    lines += ["", *(_inherits(one) for one in heirs)] if heirs else []
    every = [finding for inspection in inspections for finding in inspection.findings] + list(findings)
    if every:
        lines += ["", *text.findings_block(every)]
    return "\n".join(lines).rstrip() + "\n"


def _preset(inspection: Inspection) -> str:
    return text.clean(inspection.log.session_header.agent_preset or "")


def _inherits(inspection: Inspection) -> str:
    shown = inspection.inherited.describe() if inspection.inherited is not None else ""
    return f"{text.clean(inspection.log.session_id)} inherits {shown}"


def newest_first(inspections: Sequence[Inspection]) -> list[Inspection]:
    """By creation time, newest first, then by label."""
    return sorted(inspections, key=lambda item: (-item.log.session_header.created_at, item.log.source.label))


def _session_row(inspection: Inspection) -> tuple[object, ...]:
    header = inspection.log.session_header
    models = [PurePosixPath(route).name for route in inspection.routes]
    model = models[0] + (f" +{len(models) - 1}" if len(models) > 1 else "") if models else "-"
    return (
        text.clean(header.id or "-"),
        format_time(header.created_at),
        text.clean(header.cwd or "-"),
        inspection.log.version,
        text.clean(model),
        _counted(inspection, inspection.turns),
        _counted(inspection, sum(inspection.requests.values())),
        text.size(inspection.stats.size_bytes),
        _health(inspection),
    )
