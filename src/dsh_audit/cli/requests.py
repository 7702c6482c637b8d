"""``requests``: every model request of a log."""

from __future__ import annotations

import click

from dsh_audit.audit import audit_requests
from dsh_audit.cli.options import DEPLOYMENT, ONE_LOG, DeploymentChoice, LogChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.report.model import Report
from dsh_audit.report.requests import report_requests


@click.command("requests")
@ONE_LOG
@DEPLOYMENT
@reporting
def command(logs: LogChoice, deployment: DeploymentChoice) -> Report:
    """List every model request of LOG: when it was sent, what it can have seen, and the size and digest of its body.

    WIRE is how many HTTP requests the log allows (min..max). CLAIM is the strongest comparison that the log alone
    supports: bytes, json, logical or none.
    """
    settings = deployment.read()
    history, findings = logs.read_one()
    return report_requests(audit_requests(history, settings, logs.through, findings))
