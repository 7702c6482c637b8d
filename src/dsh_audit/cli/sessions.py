"""``sessions``: the sessions of a home."""

from __future__ import annotations

import sys

import click

from dsh_audit.cli import common
from dsh_audit.errors import LogError
from dsh_audit.finding import has_errors, sort_findings
from dsh_audit.inspection import inspect_log
from dsh_audit.locate import default_home
from dsh_audit.report.inspect import newest_first, render_sessions


@click.command("sessions")
@click.argument("root", required=False)
@common.output_options
def command(root: str | None, output_format: str, output: str | None) -> None:
    """List the sessions below ROOT (default: $DSH_HOME, else ~/.dsh), newest first."""
    home = default_home()
    if root is None and not home.is_dir():
        raise LogError("there is no harness home", hint="set DSH_HOME, or name a directory: dsh-audit sessions ROOT")
    logs, findings = common.open_many([root or str(home)], None, None)
    inspections = [inspect_log(log) for log, _files in common.with_progress(logs, "reading", len(logs))]
    common.write_report(
        output_format,
        output,
        as_json=lambda: {
            "schema": "dsh-audit/sessions/1",
            "sessions": [inspection.to_json() for inspection in newest_first(inspections)],
            "findings": [finding.to_json() for finding in sort_findings(findings)],
        },
        as_text=lambda: render_sessions(inspections, findings),
    )
    every = [*findings, *(finding for inspection in inspections for finding in inspection.findings)]
    sys.exit(1 if has_errors(every) else 0)
