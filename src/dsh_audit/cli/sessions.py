"""``sessions``: the sessions of a home."""

from __future__ import annotations

import click

from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.errors import LogError
from dsh_audit.log.locate import default_home, is_folder
from dsh_audit.replay.inspection import inspect_log
from dsh_audit.report.inspect import report_sessions
from dsh_audit.report.model import Report


@click.command("sessions", short_help="List the sessions of a harness home, and whether they are sound.")
@click.argument("root", required=False)
@reporting
def command(root: str | None) -> Report:
    """List the sessions below ROOT (default: $DSH_HOME, else ~/.dsh), newest first."""
    home = default_home()
    if not root and not is_folder(home):
        raise LogError("there is no harness home", hint="set DSH_HOME, or name a directory: dsh-audit sessions ROOT")
    logs, findings = common.open_many([root or str(home)], None, None)
    inspections = [inspect_log(log) for log, _files in common.with_progress(logs, "reading", len(logs))]
    return report_sessions(inspections, findings)
