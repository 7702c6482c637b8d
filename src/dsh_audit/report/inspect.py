"""``inspect`` and ``sessions`` as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from dsh_audit.finding import Finding
from dsh_audit.inspection import Inspection, format_time
from dsh_audit.report import text

_HEALTH = {"ok": text.good, "notes": text.good, "torn": text.warn, "damaged": text.bad}


def render_inspections(inspections: Sequence[Inspection], findings: Sequence[Finding]) -> str:
    """A block per log, then the findings that belong to none."""
    lines: list[str] = []
    for inspection in inspections:
        lines += [*_block(inspection), ""]
    lines += text.findings_block(findings)
    return "\n".join(lines).rstrip() + "\n"


def _block(inspection: Inspection) -> list[str]:
    header, stats = inspection.log.session_header, inspection.stats
    health = _HEALTH[inspection.health](inspection.health)
    requests = ", ".join(f"{count} {kind}" for kind, count in inspection.requests.items()) or "none"
    rows = [
        ("session", text.clean(header.id or "-")),
        ("file", f"{text.clean(inspection.log.source.label)}  format {inspection.log.version}, {stats.encoding}"),
        ("created", format_time(header.created_at)),
        ("cwd", text.clean(header.cwd or "-")),
        ("size", f"{text.size(stats.size_bytes)} ({text.size(stats.decoded_bytes)} decoded)"),
        ("rows", f"{stats.rows} in {stats.frames} frames" if stats.frames else str(stats.rows)),
        ("events", f"{stats.events}, last seq {stats.last_seq}"),
        ("turns", str(inspection.turns)),
        ("requests", requests),
        ("routes", text.clean(", ".join(inspection.routes) or "-")),
        ("sha256", stats.sha256),
    ]
    if header.parent_session:
        rows.insert(1, ("parent", text.clean(header.parent_session)))
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
    rows = [_session_row(inspection) for inspection in newest_first(inspections)]
    columns = ("session", "created", "cwd", "format", "model", "turns", "requests", "size", "health")
    lines = [text.bold(text.plural(len(rows), "session")), "", text.table(columns, rows, right=(3, 5, 6, 7))]
    every = [finding for inspection in inspections for finding in inspection.findings] + list(findings)
    if every:
        lines += ["", *text.findings_block(every)]
    return "\n".join(lines).rstrip() + "\n"


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
        inspection.turns,
        sum(inspection.requests.values()),
        text.size(inspection.stats.size_bytes),
        _HEALTH[inspection.health](inspection.health),
    )
