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
    exact = sum(map(_is_exact, rows))
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
    exact = sum(map(_is_exact, rows))
    session = text.clean(report.log.session_id or "?")
    lines = [
        text.bold(f"session {session}")
        + f": format {report.log.version}, {text.plural(report.stats.events, 'event')}, "
        + f"{text.plural(len(rows), 'request')}, {exact} rebuilt to the byte",
        "",
        text.table(_HEADINGS, (_row(row) for row in rows), right=(0, 3, 4, 8)),
    ]
    lines += _images(rows)
    failed = [f"request {row['index']} failed: {_failure(row['failure'])}" for row in rows if row.get("failure")]
    lines += ["", *failed] if failed else []
    why = sorted({reason for row in rows for reason in row["why"]})
    lines += ["", *(f"not to the byte: {text.clean(reason)}" for reason in why)] if why else []
    lines += text.assumptions(item for row in rows for item in row["unlogged"])
    if report.findings:
        lines += ["", *text.findings_block(report.findings)]
    return "\n".join(line for line in lines if line is not None).rstrip() + "\n"


def _is_exact(row: dict[str, Any]) -> bool:
    return row["body"] is not None and row["claim"] == "bytes"


def _images(rows: list[dict[str, Any]]) -> list[str]:
    """One line an image of a message, with the requests that carry it."""
    carried: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        for image in row.get("images", ()):
            carried.setdefault(tuple(sorted(image.items())), []).append(row["index"])
    if not carried:
        return []
    headings = ("message", "image", "name", "type", "times", "sent as", "requests")
    lines = (_image(dict(key), requests) for key, requests in carried.items())
    return ["", text.table(headings, lines, right=(4,))]


def _image(image: dict[str, Any], requests: list[int]) -> tuple[Any, ...]:
    named = text.clean(str(image["attachment"] or "-")[:19]), text.clean(image.get("name", "-"))
    kind = text.clean(str(image["media_type"] or "-"))
    return f"seq {image['seq']}", *named, kind, image["count"], image["sent_as"], _ranges(requests)


def _ranges(numbers: list[int]) -> str:
    """Increasing numbers as ``1..3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("..".join(map(str, run)) for run in runs)


def _failure(failure: Any) -> str:
    """Code, status and message of a failure, as logged."""
    if not isinstance(failure, dict):
        return text.clean(str(failure))
    named = [str(failure["code"])] if "code" in failure else []
    named += [f"status {failure['status']}"] if "status" in failure else []
    told = [", ".join(named), str(failure.get("message", ""))]
    return text.clean(": ".join(part for part in told if part))


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
