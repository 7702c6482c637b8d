"""``drift``: what changed between the request headers of consecutive requests, or of two logs."""

from __future__ import annotations

import click

from dsh_audit.audit import audit_drift, audit_drift_between
from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.errors import UsageError
from dsh_audit.report.drift import report_drift
from dsh_audit.report.model import Report


@click.command("drift", short_help="List changes of settings, system prompt and tools.")
@click.argument("named", metavar="LOG")
@click.argument("other", metavar="[OTHER]", required=False)
@common.log_options
@common.deployment_options
@reporting
def command(
    named: str,
    other: str | None,
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
) -> Report:
    """List every change of settings, system prompt or tools between consecutive step requests of LOG.

    A change is declared when the log shows who asked for it (a model, effort or mode switch, a resume, a
    compaction), otherwise unexplained. A change in the history is told to the model in a later message, so that what
    was sent before stays as it is and the cache holds. With OTHER, the requests of the two logs are compared one by
    one.
    """
    deployment = common.read_deployment(deployment_file, constants)
    log, files, findings = common.open_one(named, session, generation)
    history = common.read_history(log, files)
    if other is None:
        report = audit_drift(history, deployment, through, findings)
    elif through is not None:
        raise UsageError("--through goes with one LOG only")
    else:
        second, its_files, more = common.open_one(other, None, generation)
        report = audit_drift_between(history, common.read_history(second, its_files), deployment, [*findings, *more])
    return report_drift(report)
