"""``inspect``: what a log is and how healthy it is."""

from __future__ import annotations

import sys

import click

from dsh_audit.cli import common
from dsh_audit.finding import has_errors, sort_findings
from dsh_audit.inspection import inspect_log
from dsh_audit.report.inspect import render_inspections
from dsh_audit.schema_check import check_rows


@click.command("inspect")
@click.argument("names", metavar="LOG...", nargs=-1, required=True)
@click.option("--schema", "use_schema", is_flag=True, help="Also validate rows against their format's JSON Schema.")
@common.log_options
@common.output_options
def command(
    names: tuple[str, ...],
    use_schema: bool,
    session: str | None,
    generation: int | None,
    through: int | None,
    output_format: str,
    output: str | None,
) -> None:
    """Say what each LOG is: format, size, digest, events, turns, requests, and whether it is sound."""
    logs, findings = common.open_many(names, session, generation)
    inspections = []
    for log, _files in common.with_progress(logs, "inspecting", len(logs)):
        extra = check_rows(log, common.read_schema(f"rows-v{log.version}")) if use_schema else []
        inspections.append(inspect_log(log, through, extra))
    common.write_report(
        output_format,
        output,
        as_json=lambda: {
            "schema": "dsh-audit/inspect/1",
            "logs": [inspection.to_json() for inspection in inspections],
            "findings": [finding.to_json() for finding in sort_findings(findings)],
        },
        as_text=lambda: render_inspections(inspections, findings),
    )
    every = [*findings, *(finding for inspection in inspections for finding in inspection.findings)]
    sys.exit(1 if has_errors(every) else 0)
