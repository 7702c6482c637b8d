"""``uploads``: what of the session log left this machine inside requests."""

from __future__ import annotations

import click

from dsh_audit.checks.uploads_run import run_uploads
from dsh_audit.cli.options import DEPLOYMENT, LOGS, CaptureChoice, DeploymentChoice, LogChoice, capture_options
from dsh_audit.cli.reporting import reporting
from dsh_audit.report.model import Report
from dsh_audit.report.uploads import report_uploads


@click.command("uploads")
@LOGS
@capture_options("Captured requests that prove what was sent, as for verify. Repeatable.")
@click.option("--fail-on-upload", is_flag=True, help="Exit with 1 when any upload is proven.")
@DEPLOYMENT
@reporting
def command(logs: LogChoice, captures: CaptureChoice, fail_on_upload: bool, deployment: DeploymentChoice) -> Report:
    """List what of the LOGs was sent to a provider inside requests (the field dsh_session_log).

    Delivery markers in a log prove what the provider accepted; --capture also shows refused requests, and
    compares each captured field with the log byte for byte.
    """
    settings = deployment.read()
    archives = captures.read()
    histories, findings = logs.read_all()
    report = run_uploads(histories, archives, settings, logs.through, findings)
    return report_uploads(report, fail_on_upload=fail_on_upload)
