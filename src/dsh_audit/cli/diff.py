"""``diff``: two runs of the same task, from their logs or from their captures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dsh_audit.capture import IMPORTERS, read_capture
from dsh_audit.capture.files import read_head
from dsh_audit.checks.compare_runs import RunsDiff, check_runs, compare_runs
from dsh_audit.checks.run_requests import RunRequest, of_capture, of_rebuilt
from dsh_audit.cli.options import DEPLOYMENT, DeploymentChoice, LogChoice, normalise_option
from dsh_audit.cli.reporting import reporting
from dsh_audit.deployment import Deployment
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.events import SessionHeader
from dsh_audit.finding import Finding, sort_findings
from dsh_audit.golden.normalise import Normaliser, Normalising, parse_normaliser
from dsh_audit.log.locate import parse_generation, read_sessions
from dsh_audit.log.session_log import open_log
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Replay
from dsh_audit.report.diff import report_diff
from dsh_audit.report.model import Report
from dsh_audit.text.to_json import to_json


@dataclass(frozen=True, slots=True)
class _Run:
    requests: Sequence[RunRequest]
    session_header: SessionHeader
    findings: Sequence[Finding]


@click.command("diff")
@click.argument("first", metavar="FIRST")
@click.argument("second", metavar="SECOND")
@click.option("--session", metavar="ID", help="Session id, or a unique prefix, inside a home or export.")
@click.option("--second-session", metavar="ID", help="The same for SECOND; default: as --session.")
@click.option(
    "--kind", type=click.Choice(["auto", "logs", "captures"]), default="auto", show_default=True, help="What both are."
)
@normalise_option
@DEPLOYMENT
@reporting
def command(
    first: str,
    second: str,
    session: str | None,
    second_session: str | None,
    kind: str,
    normalise: tuple[str, ...],
    deployment: DeploymentChoice,
) -> Report:
    """Compare two runs of the same task request by request: two LOGs, or two CAPTUREs.

    Requests of logs are paired by turn, step and attempt; captured ones by content, then by order. For each pair: the
    layers that differ (tools, system, messages, settings, or only their encoding), the first JSON pointer, both texts.
    Extension fields are not compared.
    """
    declared = tuple(map(parse_normaliser, normalise))
    kinds = {kind} if kind != "auto" else {_detect(first), _detect(second)}
    if len(kinds) > 1:
        raise UsageError("one of these is a log, the other a capture", hint="dsh-audit verify LOG --capture PATH")
    settings = deployment.read()
    if kinds == {"logs"}:
        one, two = _log(first, session, settings), _log(second, second_session or session, settings)
    else:
        one, two = _capture(first), _capture(second)
    sides = Normalising(declared, one.session_header), Normalising(declared, two.session_header)
    diffs = compare_runs(one.requests, two.requests, (sides[0].value, sides[1].value) if declared else None)
    found = sort_findings([*one.findings, *two.findings, *check_runs(diffs, second)])
    rows = tuple(_normaliser_row(item, sides) for item in declared)
    return report_diff(RunsDiff(kinds.pop(), first, second, rows, tuple(diffs), tuple(found)))


def _normaliser_row(item: Normaliser, sides: tuple[Normalising, Normalising]) -> dict[str, object]:
    return {**to_json(item), "replaced": sum(side.replaced[item.name] for side in sides)}


def _detect(named: str) -> str:
    """``logs`` or ``captures``: a name or first line that says so, else whatever reads it."""
    path = Path(named)
    if not path.exists() or parse_generation(path.name) is not None:
        return "logs"
    if path.is_dir():
        return "captures" if any(path.glob("*.meta.json")) or any(path.glob("*.body")) else "logs"
    try:
        for files in read_sessions(named):
            open_log(files.choose())
        return "logs"
    except AuditError:
        head = read_head(path)
        return "captures" if any(importer.detect(path, head) for importer in IMPORTERS) else "logs"


def _log(named: str, session: str | None, deployment: Deployment) -> _Run:
    history, findings = LogChoice((named,), session).read_one()
    replay = Replay(history, deployment)
    requests = [of_rebuilt(rebuilt) for rebuilt in replay]
    return _Run(requests, history.current.session_header, [*findings, *replay.findings])


def _capture(named: str) -> _Run:
    archive = read_capture(Path(named))
    ident = next((exchange.session_id for exchange in archive.exchanges if exchange.session_id), "")
    header = SessionHeader(0, ident, 0, None, None, None, None, None, 0, None, {})
    return _Run(list(of_capture([archive])), header, archive.findings)
