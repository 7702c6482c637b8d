"""``drift``: what changed between the request headers of consecutive requests, or of two logs."""

from __future__ import annotations

import click

from dsh_audit.audit import audit_drift, audit_drift_between
from dsh_audit.cli.options import DEPLOYMENT, ONE_LOG, DeploymentChoice, LogChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.errors import UsageError
from dsh_audit.report.drift import report_drift
from dsh_audit.report.model import Report


@click.command("drift")
@ONE_LOG
@click.argument("other", metavar="[OTHER]", required=False)
@DEPLOYMENT
@reporting
def command(logs: LogChoice, other: str | None, deployment: DeploymentChoice) -> Report:
    """List every change of settings, system prompt or tools between consecutive step requests of LOG.

    A change is declared when the log shows who asked for it (a model, effort or mode switch, a resume, a
    compaction), otherwise unexplained. A change in the history is told to the model in a later message, so that what
    was sent before stays as it is and the cache holds. With OTHER, the requests of the two logs are compared one by
    one.
    """
    settings = deployment.read()
    history, findings = logs.read_one()
    if other is None:
        return report_drift(audit_drift(history, settings, logs.through, findings))
    if logs.through is not None:
        raise UsageError("--through goes with one LOG only")
    second, more = LogChoice((other,), None, logs.generation).read_one()
    return report_drift(audit_drift_between(history, second, settings, [*findings, *more]))
