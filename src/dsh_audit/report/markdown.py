"""Markdown for job summaries and merge requests: verdict, numbers, failed cases, findings that fold away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dsh_audit.finding import Finding
from dsh_audit.report.model import Report, describe_counts, heaviest_first, safe
from dsh_audit.report.text import place, plural

MAX_BYTES = 1_000_000
"""Below the 1 MiB that GitHub takes as the summary of a step."""

_PUNCTUATION = re.compile(r"[!-+:-@\[-`{-~.]")
_MAX_CELL = 500
_MAX_CASES = 100
_RESERVE = 500


def render_markdown(report: Report) -> str:
    """GitHub-flavoured Markdown, at most :data:`MAX_BYTES` long; what does not fit is counted."""
    head = [f"## dsh-audit {escape(report.command)}: {report.verdict}", ""]
    if report.summary:
        head += ["| | number |", "|---|---:|"]
        head += [f"| {escape(name)} | {count} |" for name, count in report.summary]
        head.append("")
    blocks = [*head, *_cases(report)]
    budget = MAX_BYTES - _RESERVE - sum(len(line.encode()) + 1 for line in blocks)
    blocks += _findings(report.findings, budget)
    return "\n".join(blocks).rstrip("\n") + "\n"


def escape(text: str, limit: int = _MAX_CELL) -> str:
    """Text that stays text in a table cell, in a heading and in HTML: ASCII punctuation as character references."""
    return _PUNCTUATION.sub(lambda match: f"&#{ord(match.group())};", safe(text, limit))


def _cases(report: Report) -> list[str]:
    bad = [case for case in report.cases if case.outcome in ("failed", "error")]
    if not bad:
        return []
    lines = ["| failed | of | why |", "|---|---|---|"]
    lines += [f"| {escape(case.name)} | {escape(case.group)} | {escape(case.message)} |" for case in bad[:_MAX_CASES]]
    more = [f"{plural(len(bad) - _MAX_CASES, 'more case')} failed.", ""] if len(bad) > _MAX_CASES else []
    return [*lines, "", *more]


def _findings(findings: Iterable[Finding], budget: int) -> Iterator[str]:
    ordered = heaviest_first(findings)
    if not ordered:
        return
    yield f"<details><summary>{describe_counts(ordered)}</summary>"
    yield from ("", "| | code | message | where |", "|---|---|---|---|")
    shown: dict[str, Finding] = {}
    left = len(ordered)
    for finding in ordered:
        row = _row(finding)
        advice = "" if finding.code in shown else _advice(finding)
        budget -= len(row.encode()) + len(advice.encode()) + 2
        if budget < 0:
            break
        shown.setdefault(finding.code, finding)
        left -= 1
        yield row
    if left:
        yield from ("", f"{plural(left, 'more finding')} not shown; the JSON report lists them all.")
    yield from ("", *map(_advice, shown.values()), "", "</details>")


def _row(finding: Finding) -> str:
    return f"| {finding.severity} | `{finding.code}` | {escape(finding.message)} | {escape(place(finding))} |"


def _advice(finding: Finding) -> str:
    return f"* `{finding.code}`: {escape(finding.rule.title)} {escape(finding.rule.advice)}"
