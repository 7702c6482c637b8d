"""``uploads``: what of the session log left this machine inside requests."""

from __future__ import annotations

from pathlib import Path

import click

from dsh_audit.capture import read_capture
from dsh_audit.checks.uploads_run import run_uploads
from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.cli.verify import CAPTURE_FIELD_OPTION, read_fields
from dsh_audit.report.model import Report
from dsh_audit.report.uploads import report_uploads


@click.command("uploads", short_help="List what of the session log was sent to a provider.")
@click.argument("names", metavar="LOG...", nargs=-1, required=True)
@click.option(
    "--capture",
    "captures",
    multiple=True,
    type=click.Path(),
    metavar="PATH",
    help="Captured requests that prove what was sent, as for verify. Repeatable.",
)
@CAPTURE_FIELD_OPTION
@click.option("--fail-on-upload", is_flag=True, help="Exit with 1 when any upload is proven.")
@common.log_options
@common.deployment_options
@reporting
def command(
    names: tuple[str, ...],
    captures: tuple[str, ...],
    capture_fields: tuple[str, ...],
    fail_on_upload: bool,
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
) -> Report:
    """List what of the LOGs was sent to a provider inside requests (the field dsh_session_log).

    Delivery markers in a log prove what the provider accepted; --capture also shows refused requests, and
    compares each captured field with the log byte for byte.
    """
    deployment = common.read_deployment(deployment_file, constants)
    fields = read_fields(capture_fields)
    archives = [read_capture(Path(path), fields=fields) for path in captures]
    logs, findings = common.open_many(names, session, generation)
    histories = [common.read_history(log, files) for log, files in common.with_progress(logs, "reading", len(logs))]
    report = run_uploads(histories, archives, deployment, through, findings)
    return report_uploads(report, fail_on_upload=fail_on_upload)
