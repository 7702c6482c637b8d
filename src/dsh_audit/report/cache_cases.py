"""``cache`` as a Report: limits are its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.gates import Limit
from dsh_audit.finding import Finding
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.rules import cache as rules


def report_cache(
    reports: Sequence[CacheReport],
    findings: Sequence[Finding],
    limits: Iterable[Limit],
    *,
    as_json: Callable[[], Any],
    as_text: Callable[[], str],
) -> Report:
    """One case a session and limit.

    Args:
        reports: of the sessions.
        findings: of all of them and of opening them, sorted.
        limits: as the user wrote them.
        as_json, as_text: see :class:`~dsh_audit.report.model.Report`.
    """
    wanted = list(limits)
    summaries = [report.summary for report in reports]
    return build_report(
        "cache",
        as_json=as_json,
        as_text=as_text,
        findings=findings,
        summary=[
            ("requests", sum(summary.requests for summary in summaries)),
            ("busts", sum(summary.busts for summary in summaries)),
            ("unexplained", sum(summary.unexplained for summary in summaries)),
        ],
        cases=[
            *_cases("all sessions", wanted, "total", findings),
            *(
                case
                for report in reports
                for case in _cases(report.log.session_id or "no session", wanted, "each", report.findings)
            ),
        ],
        loose=[finding for finding in findings if finding.rule is not rules.THRESHOLD],
    )


def _cases(owner: str, limits: Iterable[Limit], scope: str, findings: Iterable[Finding]) -> Iterator[Case]:
    crossed = [finding.message for finding in findings if finding.rule is rules.THRESHOLD]
    for text in (limit.text for limit in limits if limit.scope == scope):
        message = next((message for message in crossed if message.startswith(f"{text}: ")), None)
        yield Case(text, owner, "passed" if message is None else "failed", message or "")
