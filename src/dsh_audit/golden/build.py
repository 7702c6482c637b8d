"""One session → its golden case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json
from dsh_audit.finding import Finding, Severity
from dsh_audit.golden.case import GoldenCase
from dsh_audit.golden.normalise import Normaliser, Normalising
from dsh_audit.golden.pin import Pinner
from dsh_audit.log.generations import SessionHistory
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt, Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a case is made: all of it is kept in the case, so that a check makes the new one alike.

    Args:
        log, deployment_path: relative to the golden file; None where not to be remembered.
        normalisers: in order.
        full: keep values beside digests.
        assumed: deployment values that a capture proved.
        verified: request index → verdict of the capture that shows it.
        recorded_by: release that makes the case.
    """

    log: str | None = None
    deployment_path: str | None = None
    normalisers: tuple[Normaliser, ...] = ()
    full: bool = False
    assumed: Mapping[str, Json] = field(default_factory=dict)
    verified: Mapping[int, str] = field(default_factory=dict)
    recorded_by: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A fresh case with what explains it.

    Args:
        case: the case.
        rebuilt: its requests in order.
        findings: about the log.
        replaced: normaliser → how many texts it replaced.
    """

    case: GoldenCase
    rebuilt: tuple[Rebuilt, ...]
    findings: tuple[Finding, ...]
    replaced: Mapping[str, int]


def recipe_of(case: GoldenCase, recorded_by: str = "") -> Recipe:
    """How a case was made; the verdicts of its capture are kept only while nothing changed."""
    verified = {request.index: request.verified for request in case.requests if request.verified is not None}
    return Recipe(
        log=case.log,
        deployment_path=case.deployment,
        normalisers=case.normalisers,
        full=case.full,
        assumed=case.assumed,
        verified=verified,
        recorded_by=recorded_by,
    )


def record_case(
    history: SessionHistory, deployment: Deployment, recipe: Recipe, findings: Iterable[Finding] = ()
) -> Recorded:
    """Replay a session and pin every request.

    Args:
        findings: made while the log was opened.
    """
    log = history.current
    normalising = Normalising(recipe.normalisers, log.session_header)
    pinner = Pinner(normalising, recipe.full)
    assumed = tuple(Used(name, value, "capture") for name, value in recipe.assumed.items())
    replay = Replay(history, deployment, assumed=assumed)
    rebuilts: list[Rebuilt] = []
    for rebuilt in replay:
        pinner.see(rebuilt, recipe.verified.get(rebuilt.index))
        rebuilts.append(rebuilt)
    found = (*findings, *replay.findings)
    case = GoldenCase(
        log=recipe.log,
        session_id=log.session_id,
        format_version=log.version,
        deployment=recipe.deployment_path,
        recorded_by=recipe.recorded_by,
        full=recipe.full,
        normalisers=recipe.normalisers,
        assumed=recipe.assumed,
        findings=_counted(found),
        systems=tuple(pinner.systems),
        tools=tuple(pinner.tools),
        threads=pinner.threads,
        requests=tuple(pinner.requests),
    )
    replaced = {item.name: normalising.replaced[item.name] for item in recipe.normalisers}
    return Recorded(case, tuple(rebuilts), found, replaced)


def without_verdicts(case: GoldenCase, indexes: Sequence[int]) -> GoldenCase:
    """A case whose changed requests no longer claim what a capture showed of the old ones."""
    gone = set(indexes)
    requests = (replace(one, verified=None) if one.index in gone else one for one in case.requests)
    return replace(case, requests=tuple(requests))


def _counted(findings: Iterable[Finding]) -> dict[str, int]:
    counts = Counter(finding.code for finding in findings if finding.severity is not Severity.INFO)
    return dict(sorted(counts.items()))
