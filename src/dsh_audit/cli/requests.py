"""``requests``: every model request of a log."""

from __future__ import annotations

import click

from dsh_audit.audit import audit_requests
from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.report.model import Report
from dsh_audit.report.requests import report_requests


@click.command("requests", short_help="List every model request of a log.")
@click.argument("named", metavar="LOG")
@common.log_options
@common.deployment_options
@reporting
def command(
    named: str,
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
) -> Report:
    """List every model request of LOG: when it was sent, what it can have seen, and the size and digest of its body.

    WIRE is how many HTTP requests the log allows (min..max). CLAIM is the strongest comparison that the log alone
    supports: bytes, json, logical or none.
    """
    deployment = common.read_deployment(deployment_file, constants)
    log, files, findings = common.open_one(named, session, generation)
    return report_requests(audit_requests(common.read_history(log, files), deployment, through, findings))
