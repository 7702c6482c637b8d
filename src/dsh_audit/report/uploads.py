"""``uploads`` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsh_audit.checks.uploads import Upload, UploadsReport
from dsh_audit.report import text
from dsh_audit.report.model import Case, Outcome, Report, build_report
from dsh_audit.rules import log as rules
from dsh_audit.text.to_json import to_json

_MAX_ROWS = 200
_CUTTING = (rules.DAMAGED, rules.DROPPED_TAIL, rules.REFUSED, rules.BAD_FRAME, rules.ROW_TOO_LARGE)
"""Behind such a finding nothing was read, so that counts are lower bounds."""
_ANSWERS = {True: "yes", False: "no", None: "?"}


def report_uploads(report: UploadsReport, *, fail_on_upload: bool = False) -> Report:
    """One case an upload.

    Args:
        fail_on_upload: a proven upload fails the run, whatever it holds, and so does one that cannot be ruled out.
    """
    counts = report.summary
    names = ("uploads", "accepted", "refused", "possible", "distinct_events", "resent_events", "size_bytes")
    return build_report(
        "uploads",
        as_json=lambda: to_json(report),
        as_text=lambda: render_uploads(report),
        findings=report.findings,
        summary=[(name.replace("_", " "), counts[name]) for name in names],
        failed=fail_on_upload and bool(report.under_other_id or counts["possible"]),
        cases=[_case(upload, "failed" if fail_on_upload else "passed") for upload in report.uploads],
    )


def _case(upload: Upload, outcome: Outcome) -> Case:
    names = [] if upload.request is None else [f"request {upload.request}"]
    names += [] if upload.captured is None else [f"capture {upload.captured}"]
    message = f"events {upload.first_seq} to {upload.last_seq} went to {upload.host or 'an unknown host'}"
    return Case(", ".join(names) or f"seq {upload.first_seq}", upload.session_id or "no session", outcome, message)


def render_uploads(report: UploadsReport) -> str:
    """A verdict line, one row an upload, what may have been sent as well, findings."""
    lines = [_verdict(report)]
    if report.uploads:
        headings = ("session", "#", "kind", "seq", "events", "again", "bytes", "host", "accepted", "proof")
        rows = (_row(upload) for upload in report.uploads[:_MAX_ROWS])
        lines += ["", text.table(headings, rows, right=(1, 4, 5, 6))]
        if len(report.uploads) > _MAX_ROWS:
            more = text.plural(len(report.uploads) - _MAX_ROWS, "more upload")
            lines.append(f"… and {more}; --format json lists them all")
    lines += _possible(report)
    if report.findings:
        lines += ["", *text.findings_block(report.findings)]
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: UploadsReport) -> str:
    counts = report.summary
    if not counts["uploads"]:
        if report.under_other_id:
            count = text.plural(report.under_other_id, "upload")
            return text.bold(text.warn("SENT") + f" {count} under another session id; what they held is not known")
        where = "the log" if len(report.logs) == 1 else "the logs"
        return text.bold(text.good("OK") + f" no request is known to have carried a part of {where}")
    unsized = sum(upload.size_bytes is None for upload in report.uploads)
    at_least = "at least " if unsized else ""
    is_cut = any(finding.rule in _CUTTING for finding in report.findings)
    line = "at least " if is_cut else ""
    line += f"{text.plural(counts['uploads'], 'upload')}: {counts['distinct_events']} events in {at_least}"
    line += f"{text.size(counts['size_bytes'])} to {_hosts(counts['hosts'])}; {counts['accepted']} accepted"
    if counts["resent_events"]:
        line += f"; {text.plural(counts['resent_events'], 'event')} sent again"
    return text.bold(text.warn("SENT") + " " + line)


def _hosts(hosts: Iterable[str]) -> str:
    return ", ".join(map(text.clean, hosts)) or "an unknown host"


def _row(upload: Upload) -> tuple[str | int | None, ...]:
    request = "-" if upload.request is None else upload.request
    place = f" {upload.turn}.{upload.step}" if upload.step is not None else ""
    proof = upload.proof if upload.captured is None else f"{upload.proof} {text.clean(upload.captured)}"
    if upload.verified is not None:
        proof += text.good(" verified") if upload.verified else text.bad(" different")
    host = text.clean(upload.host or "-") + (f" ({upload.host_source})" if upload.host_source != "capture" else "")
    return (
        text.clean(upload.session_id or "-"),
        request,
        f"{upload.kind or '-'}{place}",
        f"{upload.first_seq}..{upload.last_seq}",
        upload.events,
        upload.resent or "-",
        "?" if upload.size_bytes is None else upload.size_bytes,
        host,
        _ANSWERS[upload.accepted],
        proof,
    )


def _possible(report: UploadsReport) -> Iterator[str]:
    count = report.summary["possible"]
    if not count:
        return
    yield ""
    yield text.dim(f"{text.plural(count, 'more request')} may have carried a part of the log (no marker, no capture):")
    for ident, indexes in report.possible.items():
        shown = ", ".join(map(str, indexes[:20])) + (", …" if len(indexes) > 20 else "")
        yield text.dim(f"  {text.clean(ident or '-')}: requests {shown}")
