"""Golden checks as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dsh_audit.golden.case import GoldenCase, PinnedRequest
from dsh_audit.golden.change import Change
from dsh_audit.golden.compare import describe_request
from dsh_audit.golden.result import STATES, CaseResult, GoldenReport, describe_requests
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.text.to_json import to_json

_STYLES = {"matched": text.good, "changed": text.bad, "missing": text.bad, "new": text.warn, "unused": text.warn}
MAX_CHANGES = 20


def report_golden(report: GoldenReport) -> Report:
    """One test case a golden case."""
    return build_report(
        "golden check",
        as_json=lambda: to_json(report),
        as_text=lambda: render_golden(report),
        findings=report.findings,
        summary=[(state, report.summary[state]) for state in STATES],
        cases=[
            Case(case.name, "golden", "failed" if report.is_failed(case) else "passed", _message(case))
            for case in report.cases
        ],
        loose=(),
        failed=report.failed,
    )


def _message(case: CaseResult) -> str:
    return case.reason or "; ".join(change.message for change in case.changes)


def render_golden(report: GoldenReport) -> str:
    """A verdict line, then every case that is not matched."""
    lines = [_verdict(report)]
    for case in report.cases:
        if case.state != "matched" and (case.state != "unused" or report.unused != "ignore"):
            lines += ["", *render_case_result(case)]
    pending = sum(case.is_written for case in report.cases)
    if pending:
        lines += ["", f"{text.plural(pending, 'case')} written beside the golden files; see dsh-audit golden review"]
    normalised = [line for case in report.cases for line in _normalisers(case) if case.state == "matched"]
    if normalised:
        lines += ["", text.dim("normalised in matched cases:"), *dict.fromkeys(normalised)]
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: GoldenReport) -> str:
    counts = report.summary
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    line = f"{text.plural(len(report.cases), 'golden case')}: {', '.join(parts) or 'none'}"
    return text.bold((text.bad if report.failed else text.good)("FAIL" if report.failed else "OK") + " " + line)


def render_case_result(case: CaseResult) -> Iterator[str]:
    """One case: state, reason, changes, normalisers."""
    log = f" ({text.clean(case.log)})" if case.log else ""
    yield f"{_STYLES[case.state](case.state)} {text.bold(text.clean(case.name))}{log}"
    if case.reason:
        yield f"  {text.clean(case.reason)}"
    yield from render_changes(case.changes)
    yield from _normalisers(case)


def render_changes(changes: Iterable[Change]) -> Iterator[str]:
    """Each change with its place and both sides."""
    listed = list(changes)
    for change in listed[:MAX_CHANGES]:
        yield f"  {text.bad('•')} {text.clean(change.message)}"
        place = [change.layer, describe_requests(change.requests)]
        place += [change.pointer or "", "" if change.seq is None else f"seq {change.seq}"]
        within = ", ".join(pointer or "the whole" for pointer in change.within)
        place.append(f"within {within}" if within else "")
        yield text.dim("      at " + ", ".join(text.clean(part) for part in place if part))
        if change.expected is not None:
            yield f"      expected  {text.good(text.clean(change.expected))}"
        if change.actual is not None:
            yield f"      actual    {text.bad(text.clean(change.actual))}"
        for hint in change.hints:
            yield text.dim(f"      {text.clean(hint)}")
    if len(listed) > MAX_CHANGES:
        yield f"  … and {text.plural(len(listed) - MAX_CHANGES, 'more change')}; --format json lists them all"


def _normalisers(case: CaseResult) -> Iterator[str]:
    for item in case.normalisers:
        count = case.replaced.get(item.name, 0)
        pattern = f" /{item.pattern}/" if item.pattern is not None else ""
        yield text.dim(f"  {text.clean(item.name + pattern)} → {text.clean(item.placeholder)}: {count} replaced")


def render_pending(name: str, pending: GoldenCase, changes: Sequence[Change] | None) -> Iterator[str]:
    """What waits to be accepted: a changed case with its changes, or a new one with its requests."""
    state = "new" if changes is None else "changed"
    yield f"{_STYLES[state](state)} {text.bold(text.clean(name))}: {text.plural(len(pending.requests), 'request')}"
    if changes is None:
        yield from (f"  {text.clean(line)}" for line in map(_request_line, pending.requests[:MAX_CHANGES]))
        if len(pending.requests) > MAX_CHANGES:
            yield f"  … and {len(pending.requests) - MAX_CHANGES} more"
    else:
        yield from render_changes(changes)
    for item in pending.normalisers:
        yield text.dim(f"  normalised: {text.clean(item.pattern or item.name)} → {text.clean(item.placeholder)}")


def _request_line(request: PinnedRequest) -> str:
    body = "no body" if request.body_sha256 is None else f"{request.body_size} bytes, {request.body_sha256[:12]}"
    return f"{describe_request(request)}: {request.model}, {text.plural(request.count, 'message')}, {body}"


def render_list(cases: Iterable[dict[str, Any]]) -> str:
    """A table of the cases (schemas/golden-list.schema.json)."""
    rows = []
    for row in cases:
        state = "recorded" if row["recorded"] else "new"
        state += ", pending" if row["pending"] and row["recorded"] else ""
        names = ", ".join(item["name"] for item in row["normalisers"])
        note = row["error"] or ("full" if row["full"] else "digests")
        rows.append([text.clean(str(v)) for v in (row["name"], state, row["requests"], note, names, row["log"] or "-")])
    if not rows:
        return "no golden cases\n"
    return text.table(("case", "state", "requests", "keeps", "normalisers", "log"), rows, right=(2,)) + "\n"
