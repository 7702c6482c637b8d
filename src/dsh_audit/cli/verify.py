"""``verify``: captured requests against the log."""

from __future__ import annotations

import click

from dsh_audit.cli.options import DEPLOYMENT, LOGS, CaptureChoice, DeploymentChoice, LogChoice, capture_options
from dsh_audit.cli.reporting import reporting
from dsh_audit.replay.verification import verify
from dsh_audit.report.model import Report
from dsh_audit.report.verify import report_verify


@click.command("verify")
@LOGS
@capture_options(required=True)
@DEPLOYMENT
@reporting
def command(logs: LogChoice, captures: CaptureChoice, deployment: DeploymentChoice) -> Report:
    """Compare every captured request with the request that the LOGs stand for, byte for byte.

    LOG may be a directory tree of sessions; requests are attributed by their session. Verdicts: identical;
    identical-except-unlogged (only the named top-level members, which no log explains, are extra); same-json;
    different; unexplained (no dispatch explains it); not-checked; other (uploads, searches, other sessions);
    not-captured (a dispatch that no capture shows).
    """
    settings = deployment.read()
    archives = captures.read()
    histories, findings = logs.read_all()
    return report_verify(verify(histories, archives, settings, logs.through, findings))
