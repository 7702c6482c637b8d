"""Assertions for tests of one's own: requests as captured, stable prefixes, cache thresholds, golden cases.

Each takes a log as the command line does (a path), fails with an AssertionError that reads as the reports do, and
raises an :class:`~dsh_audit.errors.AuditError` where nothing could be judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from dsh_audit.audit import audit_cache
from dsh_audit.capture import read_capture
from dsh_audit.checks.cache_model import CacheRow
from dsh_audit.checks.cache_sum import METRICS, CacheReport, measure_summary
from dsh_audit.checks.gates import check_limits, parse_limit
from dsh_audit.cli.golden_cases import Task, check_case, read_log
from dsh_audit.cli.options import DeploymentChoice
from dsh_audit.deployment import Deployment
from dsh_audit.golden.build import Recipe
from dsh_audit.golden.normalise import parse_normaliser
from dsh_audit.golden.result import CaseResult
from dsh_audit.golden.store import case_file, case_name
from dsh_audit.record import dataclass
from dsh_audit.replay.judge import PairResult
from dsh_audit.replay.verification import verify
from dsh_audit.report.golden import render_case_result
from dsh_audit.report.verify import render_verify
from dsh_audit.rules.cache import THRESHOLD
from dsh_audit.session import load_deployment, read_cache_options
from dsh_audit.text.to_json import to_json

__all__ = [
    "GoldenCheck",
    "GoldenMismatchError",
    "assert_cache",
    "assert_prefix_stable",
    "assert_requests_identical",
    "check_golden",
]

_ACCEPTED = ("identical", "identical-except-unlogged")
_NOT_PREFIX = frozenset({"idle-expiry", "too-soon", "look-back", "side-request", "provider-miss", "retry"})
_OPPOSITE = {">=": "<", "<=": ">", "==": "!=", "!=": "=="}

PathLike = str | Path
Deployed = PathLike | Deployment | None


class GoldenMismatchError(AssertionError):
    """A log is not what its golden case pins."""


def assert_requests_identical(
    log: PathLike, capture: PathLike | Iterable[PathLike], deployment: Deployed = None, *, session: str | None = None
) -> None:
    """Every captured request of the session is the one its log stands for, byte for byte, and none is missing.

    Args:
        log: a log, a session directory, or a tree with ``session``.
        capture: one or several capture archives.
        deployment: a deployment file or value.
        session: id of the session in a tree.

    Raises:
        AssertionError: a request differs, is explained by nothing, was not captured, or cannot be rebuilt to the byte;
            extension fields that no log explains are allowed.
    """
    __tracebackhide__ = True
    captures = [capture] if isinstance(capture, str | Path) else list(capture)
    history, findings = read_log(str(log), session)
    report = verify([history], [read_capture(Path(path)) for path in captures], _deployment(deployment), None, findings)
    own = [pair for pair in report.pairs if pair.verdict != "other"]
    wrong = [pair for pair in own if pair.verdict not in _ACCEPTED and not _may_be_absent(pair)]
    if wrong or not any(pair.captured is not None for pair in own):
        raise AssertionError(_plain(render_verify(report)))


def _may_be_absent(pair: PairResult) -> bool:
    """A dispatch that no capture shows and that may have sent nothing."""
    rebuilt = pair.rebuilt
    return pair.verdict == "not-captured" and rebuilt is not None and rebuilt.request.dispatch.wire.minimum == 0


def assert_prefix_stable(
    log: PathLike, *, allow: Iterable[str] = (), deployment: Deployed = None, session: str | None = None
) -> None:
    """Every request goes on where the one before it in its lineage ended: nothing sent earlier is changed.

    Args:
        allow: causes to let pass, as ``dsh-audit cache`` names them (``compaction``, ``header-change``,
            ``model-switch`` …), or ``declared`` for whatever someone asked for.

    Raises:
        AssertionError: a prefix broke, or a request cannot be rebuilt so that nobody can tell.
    """
    __tracebackhide__ = True
    report = _cache_report(log, deployment, session)
    allowed = set(allow)
    lines = [text for row in report.rows if (text := _unstable(row, allowed)) is not None]
    if lines:
        head = f"{log}: the prefix is not stable in {len(lines)} of {len(report.rows)} requests"
        more = [f"  … and {len(lines) - 20} more"] if len(lines) > 20 else []
        raise AssertionError("\n".join([head, *lines[:20], *more]))


def _unstable(row: CacheRow, allowed: set[str]) -> str | None:
    place = f"  request {row.index} ({row.kind})"
    if row.bust is not None:
        why = row.bust.why
        passes = why.cause in _NOT_PREFIX or why.cause in allowed or (row.bust.declared and "declared" in allowed)
        if passes:
            return None
        parts = [f"{why.cause}{f' in {why.part}' if why.part else ''}", why.pointer or "", why.detail or ""]
        parts.append("" if why.seq is None else f"seq {why.seq}")
        return f"{place}: {', '.join(part for part in parts if part)}; {row.compared.resent} bytes sent again"
    if row.kind == "step" and row.compared.prompt_bytes is None:
        return f"{place}: cannot be rebuilt, so nobody can tell"
    return None


def assert_cache(
    log: PathLike,
    *thresholds: str,
    deployment: Deployed = None,
    session: str | None = None,
    currency: str = "USD",
    prices: PathLike | None = None,
) -> None:
    """The numbers of ``dsh-audit cache`` keep what the thresholds demand, e.g. ``"hit_rate>=0.95", "busts<=1"``.

    Args:
        thresholds: ``METRIC OP NUMBER``, each of which must *hold* (``--fail-on`` of the command is the opposite).
        prices: a price file instead of the built-in one.

    Raises:
        AssertionError: one does not hold, or its number is not known.
        UsageError: not a threshold, or an unknown metric.
    """
    __tracebackhide__ = True
    report = _cache_report(log, deployment, session, currency, prices)
    measures = measure_summary(to_json(report.summary))
    failed = []
    for text in thresholds:
        limit, where = parse_limit(_denied(text), METRICS), report.log.where()
        failed += [(text, finding) for finding in check_limits([limit], measures, None, THRESHOLD, where)]
    if failed:
        lines = [f"  {text}: {finding.message.partition(': ')[2]}" for text, finding in failed]
        busts = [f"  request {row.index}: {row.bust.why.cause}" for row in report.rows if row.bust is not None]
        raise AssertionError("\n".join([f"{log}: the cache does not keep up", *lines, *busts[:10]]))


def _denied(text: str) -> str:
    """The threshold that fails exactly when ``text`` does not hold."""
    for sign in (">=", "<=", "==", "!="):
        if sign in text:
            return text.replace(sign, _OPPOSITE[sign], 1)
    if "<" in text:
        return text.replace("<", ">=", 1)
    return text.replace(">", "<=", 1)


def _cache_report(
    log: PathLike,
    deployment: Deployed,
    session: str | None,
    currency: str = "USD",
    prices: PathLike | None = None,
) -> CacheReport:
    history, findings = read_log(str(log), session)
    return audit_cache(history, _deployment(deployment), read_cache_options(currency, prices), None, findings)


@dataclass(frozen=True, slots=True)
class GoldenCheck:
    """What a golden check in a test may do.

    Args:
        folder: where the cases are.
        may_write: what changed may be written beside the golden files.
        update: the golden files themselves are written.
        root: logs outside of it are not remembered in a case.
    """

    folder: Path
    may_write: bool = False
    update: bool = False
    root: Path | None = None


def check_golden(
    log: PathLike,
    name: str,
    check: GoldenCheck,
    *,
    normalise: Iterable[str] | None = None,
    full: bool = False,
    deployment: PathLike | None = None,
    session: str | None = None,
) -> CaseResult:
    """Check one log against one golden case; what ``dsh_golden.check`` does without failing."""
    declared = None if normalise is None else tuple(map(parse_normaliser, normalise))
    return check_case(
        Task(
            case=case_file(check.folder, case_name(name)),
            log=str(log),
            session=session,
            deployment=DeploymentChoice(None if deployment is None else str(deployment)),
            may_write=check.may_write,
            update=check.update,
            recipe=Recipe(normalisers=declared or (), full=full),
            normalisers=declared,
            root=check.root,
        )
    )


def describe_result(result: CaseResult) -> str:
    """A result in plain text."""
    return _plain("\n".join(render_case_result(result)))


def _deployment(deployment: Deployed) -> Deployment:
    if isinstance(deployment, Deployment):
        return deployment
    return load_deployment(deployment)


def _plain(text: str) -> str:
    return click.unstyle(text)
