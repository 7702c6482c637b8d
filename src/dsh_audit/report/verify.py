"""``verify`` as text and JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dsh_audit.audit import log_json
from dsh_audit.finding import has_errors
from dsh_audit.replay.judge import PairResult
from dsh_audit.replay.verification import VerifyReport
from dsh_audit.report import text
from dsh_audit.report.model import Case, Outcome, Report, build_report
from dsh_audit.rules import wire as rules
from dsh_audit.text.to_json import to_json

_MAX_DIFFERENCES = 5
_STYLES = {
    "identical": text.good,
    "identical-except-unlogged": text.good,
    "same-json": text.warn,
    "different": text.bad,
    "unexplained": text.bad,
    "not-checked": text.warn,
    "not-captured": text.dim,
    "other": text.dim,
}
_OUTCOMES: dict[str, Outcome] = {
    "identical": "passed",
    "identical-except-unlogged": "passed",
    "same-json": "passed",
    "different": "failed",
    "unexplained": "failed",
}
"""Every other verdict is a case that was skipped."""


def report_verify(report: VerifyReport) -> Report:
    """One case a captured request of a known session, and one a dispatch that no capture shows."""
    return build_report(
        "verify",
        as_json=lambda: verify_json(report),
        as_text=lambda: render_verify(report),
        findings=report.findings,
        summary=[(name.replace("_", "-"), count) for name, count in report.summary.items()],
        cases=[_case(pair) for pair in report.pairs if pair.verdict != "other"],
        loose=[finding for finding in report.findings if finding.rule not in (rules.DIFFERENT, rules.UNEXPLAINED)],
    )


def _case(pair: PairResult) -> Case:
    names = [] if pair.rebuilt is None else [f"request {pair.rebuilt.index} ({pair.rebuilt.request.dispatch.kind})"]
    names += [] if pair.captured is None else [f"capture {pair.captured}"]
    first = None if pair.diff is None else pair.diff.first_difference
    place = [] if first is None else [f"at byte {first.offset}, {first.pointer or 'top level'}, seq {first.seq}"]
    names_extra = _unlogged(pair) if _is_same_json(pair) else ()
    message = "; ".join([pair.verdict, *place, *names_extra, *pair.notes])
    return Case(", ".join(names), pair.session_id or "no session", _OUTCOMES.get(pair.verdict, "skipped"), message)


def verify_json(report: VerifyReport) -> dict[str, Any]:
    """schemas/verify.schema.json."""
    return {
        "schema": "dsh-audit/verify/1",
        "summary": report.summary,
        "logs": [log_json(log, stats) for log, stats in report.logs],
        "assumed": list(report.used),
        "pairs": to_json(report.pairs),
        "findings": to_json(report.findings),
    }


def render_verify(report: VerifyReport) -> str:
    """A verdict line, a table of pairs, the first differences, assumptions, findings."""
    lines = [_verdict(report), ""]
    shown = [pair for pair in report.pairs if pair.verdict != "other"] or list(report.pairs)
    headings = ("capture", "session", "#", "kind", "turn.step", "verdict", "bytes", "note")
    lines.append(text.table(headings, (_row(pair) for pair in shown), right=(2, 6)))
    others = Counter("; ".join([*pair.notes, *_upload(pair)]) for pair in report.pairs if pair.verdict == "other")
    if others.total() != len(report.pairs):
        what = (f"{text.plural(count, 'other captured request')} not shown: {why}" for why, count in others.items())
        lines += [text.dim(text.clean(line) + " (--format json lists them)") for line in what]
    different = [pair for pair in report.pairs if pair.verdict == "different" and pair.diff is not None]
    for pair in different[:_MAX_DIFFERENCES]:
        lines += ["", *_difference(pair)]
    lines += text.assumptions(report.used)
    if report.findings:
        lines += ["", *text.findings_block(report.findings)]
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: VerifyReport) -> str:
    counts = report.summary
    named = ("identical", "identical_except_unlogged", "same_json", "different", "unexplained", "not_checked", "other")
    parts = [f"{counts[name]} {name.replace('_', '-')}" for name in named if counts[name]]
    missing = f"; {counts['not_captured']} not captured" if counts["not_captured"] else ""
    line = f"{text.plural(counts['captured'], 'captured request')}: {', '.join(parts) or 'none'}{missing}"
    if has_errors(report.findings) or counts["different"] or counts["unexplained"]:
        word = text.bad("FAIL")
    elif counts["not_checked"] or any(finding.rule == rules.NOT_CAPTURED for finding in report.findings):
        word = text.warn("INCOMPLETE")
    else:
        word = text.good("OK")
    return text.bold(f"{word} {line}")


def _upload(pair: PairResult) -> list[str]:
    """What an upload was for; the same words for all that are sound."""
    if pair.upload is None:
        return []
    if pair.upload.is_stored is False:
        return [f"of other bytes than the stored version of {pair.upload.attachment}"]
    known = "as stored" if pair.upload.is_stored else "whose stored version is lost"
    return [f"of an image {known}, needed by a request here"]


def _row(pair: PairResult) -> tuple[Any, ...]:
    rebuilt = pair.rebuilt
    verdict = _STYLES[pair.verdict](pair.verdict)
    names = _unlogged(pair)
    note = text.clean("; ".join(filter(None, (*names, *pair.notes) if _is_same_json(pair) else (*pair.notes, *names))))
    note = note if len(note) <= 70 else note[:69] + "…"
    if rebuilt is None:
        return pair.captured, text.clean(pair.session_id or "-"), "-", "-", "-", verdict, "-", note
    dispatch = rebuilt.request.dispatch
    place = "-" if dispatch.step is None else f"{dispatch.turn}.{dispatch.step}"
    size = pair.size_bytes if pair.size_bytes is not None else "-"
    session = text.clean(pair.session_id or "-")
    return pair.captured or "-", session, rebuilt.index, dispatch.kind, place, verdict, size, note


def _is_same_json(pair: PairResult) -> bool:
    return pair.verdict == "same-json"


def _unlogged(pair: PairResult) -> tuple[str, ...]:
    """The members that only the capture has, which are no part of what agrees."""
    names = ", ".join(f"{item.name} ({text.size(item.size)} at {item.offset})" for item in pair.unlogged)
    return (f"besides {names}" if _is_same_json(pair) else names,) if names else ()


def _difference(pair: PairResult) -> list[str]:
    assert pair.diff is not None
    first = pair.diff.first_difference
    lines = [text.bold(f"capture {pair.captured}")]
    if first is not None:
        seq = "fixed text" if first.seq is None else f"seq {first.seq}"
        lines[0] += f" differs at byte {first.offset}, {text.clean(first.pointer) or 'top level'}, from {seq}"
        lines += [f"  captured  {text.bad(text.clean(first.captured))}"]
        lines += [f"  replayed  {text.good(text.clean(first.replayed))}"]
    for change in pair.diff.changes[:10]:
        sides = ("absent" if side is None else side for side in (change.captured, change.replayed))
        place = f"{change.pointer}: {' ← '.join(sides)}  {change.what}"
        lines.append(f"  {change.kind:<14} {text.clean(place)}")
    return lines
