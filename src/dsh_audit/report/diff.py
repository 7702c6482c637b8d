"""Two runs compared, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dsh_audit.checks.compare_runs import STATUSES, RequestDiff, RunsDiff
from dsh_audit.report import text
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.text.to_json import to_json

_STYLES = {
    "same": text.good,
    "different": text.bad,
    "only-first": text.bad,
    "only-second": text.bad,
    "not-compared": text.warn,
}
MAX_SHOWN = 12


def report_diff(diff: RunsDiff) -> Report:
    """One test case a request."""
    outcomes = {"same": "passed", "not-compared": "skipped"}
    return build_report(
        "diff",
        as_json=lambda: to_json(diff),
        as_text=lambda: render_diff(diff),
        findings=diff.findings,
        summary=[(status, diff.summary[status]) for status in STATUSES],
        cases=[
            Case(
                f"request {one.second or one.first}{'' if one.second else ' of the first run'} ({one.title})",
                "diff",
                outcomes.get(one.status, "failed"),  # type: ignore[arg-type]
                _message(one),
            )
            for one in diff.requests
        ],
        loose=[finding for finding in diff.findings if not finding.code.startswith("diff/")],
    )


def _message(one: RequestDiff) -> str:
    if one.status == "different":
        return f"{', '.join(one.layers)} differ"
    return "; ".join(one.notes) or ("" if one.status == "same" else one.status)


def render_diff(diff: RunsDiff) -> str:
    """A verdict line, a table of the requests, and the text of each difference where it first appears."""
    lines = [_verdict(diff), "", text.table(_HEADERS, map(_row, diff.requests))]
    shown: set[Any] = set()
    for one in diff.requests:
        signature = tuple((change.layer, change.first, change.second) for change in one.changes[:1])
        if one.status != "different" or signature in shown:
            continue
        if len(shown) == MAX_SHOWN:
            lines += ["", text.dim("… more differ; --format json lists them all")]
            break
        shown.add(signature)
        lines += ["", *_block(one)]
    if diff.normalisers:
        lines += ["", "normalised:"]
        lines += map(_normaliser, diff.normalisers)
    rest = [finding for finding in diff.findings if not finding.code.startswith("diff/")]
    if rest:
        lines += ["", *text.findings_block(rest)]
    return "\n".join(lines).rstrip() + "\n"


def _normaliser(row: dict[str, Any]) -> str:
    return f"  {text.clean(row['name'])} → {text.clean(row['placeholder'])}: {row['replaced']} replaced"


_HEADERS = ("first", "second", "request", "result", "layers", "first difference")


def _row(one: RequestDiff) -> Sequence[Any]:
    place = one.changes[0].pointer if one.changes else one.first_byte.pointer if one.first_byte else ""
    note = place or "; ".join(one.notes)
    note = note if len(note) <= 60 else note[:59] + "…"
    status = _STYLES[one.status](one.status)
    return one.first or "-", one.second or "-", one.title, status, ", ".join(one.layers), text.clean(note)


def _verdict(diff: RunsDiff) -> str:
    parts = ", ".join(f"{count} {status}" for status, count in diff.summary.items() if count)
    line = f"{text.plural(len(diff.requests), 'request')}: {parts or 'none'}"
    failed = any(diff.summary[status] for status in ("different", "only-first", "only-second"))
    return text.bold((text.bad if failed else text.good)("DIFFERENT" if failed else "SAME") + " " + line)


def _block(one: RequestDiff) -> Iterator[str]:
    yield text.bold(f"request {one.second} ({one.title})")
    for change in one.changes:
        yield f"  {change.layer} {text.clean(change.pointer) or 'top level'}, {text.clean(change.what)}"
        if change.first is not None:
            yield f"    first   {text.good(text.clean(change.first))}"
        if change.second is not None:
            yield f"    second  {text.bad(text.clean(change.second))}"
    first = one.first_byte
    if first is not None:
        seqs = [f"{side} seq {seq}" for side, seq in (("first", first.first_seq), ("second", first.second_seq)) if seq]
        more = f" ({', '.join(seqs)})" if seqs else ""
        yield text.dim(f"  from byte {first.at} on, {text.clean(first.pointer) or 'top level'}{more}")
        if not one.changes:
            yield f"    first   {text.good(text.clean(first.first))}"
            yield f"    second  {text.bad(text.clean(first.second))}"
    for note in one.notes:
        yield text.dim(f"  {text.clean(note)}")
