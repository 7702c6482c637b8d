"""``report``: one HTML file a person can look at."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from dsh_audit.audit import audit_cache
from dsh_audit.cli import common
from dsh_audit.cli.cache import price_options, read_options
from dsh_audit.errors import UsageError
from dsh_audit.finding import has_errors, sort_findings
from dsh_audit.report.html import render_html


@click.command("report", short_help="Write a session as one HTML page.")
@click.argument("named", metavar="LOG")
@price_options
@common.log_options
@common.deployment_options
@common.OUTPUT_OPTION
def command(
    named: str,
    prices: str | None,
    currency: str,
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
    output: str | None,
) -> None:
    """Write LOG as one self-contained HTML page: summary, timeline, header changes, ledger, findings.

    The page needs no network and works on a phone, in dark mode and without JavaScript.
    """
    if output is None:
        raise UsageError("report needs -o FILE", hint="for example: dsh-audit report LOG -o report.html")
    deployment = common.read_deployment(deployment_file, constants)
    log, files, findings = common.open_one(named, session, generation)
    options = read_options(prices, currency)
    report = audit_cache(common.read_history(log, files), deployment, options, through)
    report = replace(report, findings=tuple(sort_findings([*findings, *report.findings])))
    common.write_output(render_html(report).encode("utf-8", "backslashreplace"), output)
    sys.exit(1 if has_errors(report.findings) else 0)
