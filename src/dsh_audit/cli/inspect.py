"""``inspect``: what a log is and how healthy it is."""

from __future__ import annotations

import click

from dsh_audit.checks.lint import Facts, LintPass
from dsh_audit.cli import common
from dsh_audit.cli.options import LOGS, LogChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.inspection import Inspection, inspect_log
from dsh_audit.report.inspect import report_inspections
from dsh_audit.report.model import Report


@click.command("inspect")
@LOGS
@click.option("--schema", "use_schema", is_flag=True, help="Also validate rows against their format's JSON Schema.")
@reporting
def command(logs: LogChoice, use_schema: bool) -> Report:
    """Say what each LOG is: format, size, digest, events, turns, requests, and whether it is sound.

    Of the checks of lint those that need one pass are run: ok (quick) says that they found nothing.
    """
    opened, findings = logs.open_all()

    def inspect(log: SessionLog) -> Inspection:
        return inspect_log(log, logs.through, _check_rows(log) if use_schema else [], LintPass(Facts(log)))

    inspections, loose = common.inspect_all(logs.names, opened, inspect, "inspecting")
    return report_inspections(inspections, [*findings, *loose])


def _check_rows(log: SessionLog) -> list[Finding]:
    from dsh_audit.log.row_schema import check_rows

    return check_rows(log, common.read_schema(f"rows-v{log.version}"))
