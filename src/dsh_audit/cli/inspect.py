"""``inspect``: what a log is and how healthy it is."""

from __future__ import annotations

import click

from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.log.row_schema import check_rows
from dsh_audit.replay.inspection import inspect_log
from dsh_audit.report.inspect import report_inspections
from dsh_audit.report.model import Report


@click.command("inspect", short_help="Say what a log is: format, size, turns, requests, health.")
@click.argument("names", metavar="LOG...", nargs=-1, required=True)
@click.option("--schema", "use_schema", is_flag=True, help="Also validate rows against their format's JSON Schema.")
@common.log_options
@reporting
def command(
    names: tuple[str, ...],
    use_schema: bool,
    session: str | None,
    generation: int | None,
    through: int | None,
) -> Report:
    """Say what each LOG is: format, size, digest, events, turns, requests, and whether it is sound."""
    logs, findings = common.open_many(names, session, generation)
    inspections = []
    for log, _files in common.with_progress(logs, "inspecting", len(logs)):
        extra = check_rows(log, common.read_schema(f"rows-v{log.version}")) if use_schema else []
        inspections.append(inspect_log(log, through, extra))
    return report_inspections(inspections, findings)
