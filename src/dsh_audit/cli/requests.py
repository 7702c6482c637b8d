"""``requests``: every model request of a log."""

from __future__ import annotations

import sys

import click

from dsh_audit.audit import audit_requests
from dsh_audit.cli import common
from dsh_audit.finding import has_errors
from dsh_audit.report.requests import render_requests


@click.command("requests")
@click.argument("named", metavar="LOG")
@common.log_options
@common.deployment_options
@common.output_options
def command(
    named: str,
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
    output_format: str,
    output: str | None,
) -> None:
    """List every model request of LOG: when it was sent, what it can have seen, and the size and digest of its body.

    WIRE is how many HTTP requests the log allows (min..max). CLAIM is the strongest comparison that the log alone
    supports: bytes, json, logical or none.
    """
    deployment = common.read_deployment(deployment_file, constants)
    log, files, findings = common.open_one(named, session, generation)
    report = audit_requests(common.read_history(log, files), deployment, through, findings)
    common.write_report(output_format, output, as_json=report.to_json, as_text=lambda: render_requests(report))
    sys.exit(1 if has_errors(report.findings) else 0)
