"""The pipeline, pure: log and captures in, results out. Checks are imported by the audit that runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from dsh_audit.deployment import Deployment
from dsh_audit.finding import Finding, sort_findings
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.session_log import LogStats, SessionLog
from dsh_audit.record import dataclass
from dsh_audit.replay.sent import build_sent
from dsh_audit.replay.session_replay import Rebuilt, Replay, fold_log
from dsh_audit.text.to_json import to_json

if TYPE_CHECKING:
    from dsh_audit.checks.cache import CacheOptions
    from dsh_audit.checks.cache_sum import CacheReport
    from dsh_audit.checks.drift_model import DriftReport


@dataclass(frozen=True, slots=True)
class RequestsReport:
    """All requests of one log.

    Args:
        log: the log that was read.
        stats: of the complete pass.
        rows: one JSON row a request (schemas/requests.schema.json).
        findings: sorted.
    """

    log: SessionLog
    stats: LogStats
    rows: list[dict[str, Any]]
    findings: list[Finding]

    SCHEMA: ClassVar = "dsh-audit/requests/1"
    JSON: ClassVar = "schema=SCHEMA log=identity requests=rows findings"

    @property
    def identity(self) -> dict[str, Any]:
        """The ``log`` member."""
        return log_json(self.log, self.stats)


def log_json(log: SessionLog, stats: LogStats) -> dict[str, Any]:
    """The ``log`` member of every report."""
    return {
        "source": log.source.label,
        "session_id": log.session_id,
        "format_version": log.version,
        "encoding": stats.encoding,
        "events": stats.events,
        "size": stats.size_bytes,
        "sha256": stats.sha256,
    }


def audit_requests(
    history: SessionHistory, deployment: Deployment, through: int | None, findings: Iterable[Finding] = ()
) -> RequestsReport:
    """Rebuild every request of a session."""
    replay = Replay(history, deployment, through)
    rows = [to_json(build_sent(rebuilt)) for rebuilt in replay]
    return RequestsReport(history.current, replay.reader.stats, rows, sort_findings([*findings, *replay.findings]))


def find_request(
    history: SessionHistory, deployment: Deployment, index: int, through: int | None = None
) -> Rebuilt | None:
    """One request by its index; None when the session has fewer."""
    for rebuilt in Replay(history, deployment, through):
        if rebuilt.index == index:
            return rebuilt
    return None


def audit_drift(
    history: SessionHistory, deployment: Deployment, through: int | None = None, findings: Iterable[Finding] = ()
) -> DriftReport:
    """What changed between the request headers of consecutive step requests."""
    from dsh_audit.checks.drift import check_drift
    from dsh_audit.checks.drift_model import DriftReport
    from dsh_audit.checks.drift_run import run_drift

    run, replay = run_drift(history, deployment, through)
    log = history.current
    found = sort_findings([*findings, *replay.findings, *check_drift(log, run.changes)])
    identity = log_json(log, replay.reader.stats)
    return DriftReport(log, identity, tuple(run.headers), tuple(run.changes), tuple(found))


def audit_drift_between(
    history: SessionHistory, other: SessionHistory, deployment: Deployment, findings: Iterable[Finding] = ()
) -> DriftReport:
    """What differs between the request headers of two sessions, step request by step request."""
    from dsh_audit.checks.drift import check_drift
    from dsh_audit.checks.drift_model import DriftReport
    from dsh_audit.checks.drift_run import compare_logs, read_states

    replays = Replay(history, deployment), Replay(other, deployment)
    one, two = (read_states(replay) for replay in replays)
    changes = compare_logs(one, two)
    found = [*findings, *replays[0].findings, *replays[1].findings, *check_drift(other.current, changes)]
    identity = log_json(other.current, replays[1].reader.stats)
    against = log_json(history.current, replays[0].reader.stats)
    return DriftReport(other.current, identity, (), changes, tuple(sort_findings(found)), against)


def audit_cache(
    history: SessionHistory,
    deployment: Deployment,
    options: CacheOptions,
    through: int | None = None,
    findings: Iterable[Finding] = (),
) -> CacheReport:
    """What each request shares with earlier ones, where the prefix broke, why, and what it cost."""
    from dsh_audit.checks.cache import CacheObserver
    from dsh_audit.checks.cache_findings import check_cache, check_wire
    from dsh_audit.checks.cache_sum import CacheReport, summarise
    from dsh_audit.checks.drift import settle_growth

    seen = CacheObserver(options)
    replay = fold_log(history, deployment, seen, through=through)
    scanner, rows, log = seen.scanner, tuple(seen.rows), history.current
    found = [*findings, *replay.findings, *check_cache(rows, log), *check_wire(scanner.wire_rewrites)]
    return CacheReport(
        log=log,
        log_json=log_json(log, replay.reader.stats),
        rules=tuple(rules for _, rules in sorted(scanner.used_rules.items())),
        rows=rows,
        changes=settle_growth(scanner.drift.changes),
        summary=summarise(rows, options.currency),
        findings=tuple(sort_findings(found)),
        digests=tuple(scanner.drift.digests),
        unlogged=tuple(used for _, used in sorted(scanner.unlogged.items())),
    )
