"""``sessions``: the sessions of a home."""

from __future__ import annotations

from dataclasses import replace

import click

from dsh_audit.checks.lint import Facts, LintPass
from dsh_audit.cli import common
from dsh_audit.cli.options import ANY_LOGS, LogChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.errors import LogError
from dsh_audit.log.locate import default_home, is_folder
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.inspection import Inspection, inspect_log
from dsh_audit.report.inspect import report_sessions
from dsh_audit.report.model import Report


@click.command("sessions")
@ANY_LOGS
@reporting
def command(logs: LogChoice) -> Report:
    """List the sessions below the LOGs (default: $DSH_HOME, else ~/.dsh), newest first."""
    home = default_home()
    if not any(logs.names) and not is_folder(home):
        raise LogError(
            "there is no harness home", hint="set DSH_HOME, or name a directory: dsh-audit sessions DIRECTORY"
        )
    chosen = replace(logs, names=tuple(filter(None, logs.names)) or (str(home),))
    opened, findings = chosen.open_all()


    def inspect(log: SessionLog) -> Inspection:
        return inspect_log(log, logs.through, (), LintPass(Facts(log)))

    inspections, loose = common.inspect_all(chosen.names, opened, inspect, "reading")
    return report_sessions(inspections, [*findings, *loose])
