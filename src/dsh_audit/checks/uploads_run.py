"""Sessions and captures → the uploads report: pairs captures with requests, then checks each session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dsh_audit.capture import CaptureArchive
from dsh_audit.capture.exchange import Exchange
from dsh_audit.checks.uploads import UploadsReport, check_uploads
from dsh_audit.deployment import Deployment
from dsh_audit.finding import Finding, sort_findings
from dsh_audit.log.generations import SessionHistory
from dsh_audit.replay.judge import PairResult
from dsh_audit.replay.session_replay import Replay
from dsh_audit.replay.verification import VerifyReport, verify


def run_uploads(
    histories: Sequence[SessionHistory],
    archives: Sequence[CaptureArchive],
    deployment: Deployment,
    through: int | None = None,
    findings: Iterable[Finding] = (),
) -> UploadsReport:
    """What of the sessions' logs left the machine.

    Args:
        histories: of the sessions.
        archives: captures; without any the logs alone tell.
        deployment: what the logs cannot know.
        through: last seq to read of each log.
        findings: made while the inputs were opened.
    """
    if archives:
        return _merge(_captured_reports(histories, archives, deployment, through), findings)
    return _merge(_logged_reports(histories, deployment, through), findings)


def _logged_reports(
    histories: Sequence[SessionHistory], deployment: Deployment, through: int | None
) -> Iterable[tuple[UploadsReport, Iterable[Finding]]]:
    for history in histories:
        replay = Replay(history, deployment, through)
        report = check_uploads(history.current.session_id, replay, deployment, native_from=_native_from(history))
        yield report, replay.findings


def _captured_reports(
    histories: Sequence[SessionHistory],
    archives: Sequence[CaptureArchive],
    deployment: Deployment,
    through: int | None,
) -> Iterable[tuple[UploadsReport, Iterable[Finding]]]:
    report = verify(histories, archives, deployment, through)
    exchanges: dict[str, list[Exchange]] = {}
    for archive in reversed(archives):
        for exchange in archive.exchanges:
            exchanges.setdefault(exchange.id, []).append(exchange)
    borders = {history.current.session_id: _native_from(history) for history in histories}
    by_session: dict[str, list[PairResult]] = {}
    for pair in report.pairs:
        by_session.setdefault(pair.session_id or "", []).append(pair)
    for ident in _sessions(report):
        pairs = by_session.get(ident, [])
        requests = {pair.rebuilt.index: pair.rebuilt for pair in pairs if pair.rebuilt is not None}
        ordered = [requests[index] for index in sorted(requests)]
        shown, unexplained = _shown(pairs, exchanges)
        yield check_uploads(ident, ordered, deployment, shown, unexplained, borders.get(ident)), ()
    yield UploadsReport((), (), {}, ()), [f for f in report.findings if not f.code.startswith("wire/")]


def _native_from(history: SessionHistory) -> dict[int, int]:
    return {generation.log.version: generation.native_from for generation in history.generations}


def _sessions(report: VerifyReport) -> list[str]:
    return [log.session_id for log, _stats in report.logs]


def _shown(
    pairs: Iterable[PairResult], exchanges: Mapping[str, list[Exchange]]
) -> tuple[dict[int, list[Exchange]], list[Exchange]]:
    """Exchanges by request, and those that no request explains; of equal ids the first archive's comes first."""
    shown: dict[int, list[Exchange]] = {}
    unexplained: list[Exchange] = []
    for pair in pairs:
        if pair.captured is None:
            continue
        if pair.rebuilt is None:
            unexplained.append(exchanges[pair.captured].pop())
        else:
            shown.setdefault(pair.rebuilt.index, []).append(exchanges[pair.captured].pop())
    return shown, unexplained


def _merge(reports: Iterable[tuple[UploadsReport, Iterable[Finding]]], findings: Iterable[Finding]) -> UploadsReport:
    found = list(findings)
    merged: list[UploadsReport] = []
    for report, more in reports:
        merged.append(report)
        found += [*more, *report.findings]
    return UploadsReport(
        logs=tuple(log for report in merged for log in report.logs),
        uploads=tuple(upload for report in merged for upload in report.uploads),
        possible={ident: indexes for report in merged for ident, indexes in report.possible.items()},
        findings=tuple(sort_findings(found)),
    )
