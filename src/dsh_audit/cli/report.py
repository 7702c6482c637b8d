"""``report``: one HTML file a person can look at."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from dsh_audit.audit import audit_cache
from dsh_audit.cli.options import DEPLOYMENT, ONE_LOG, OUTPUT, PRICES, DeploymentChoice, LogChoice, PriceChoice
from dsh_audit.cli.outputs import guard_output, write_output
from dsh_audit.errors import UsageError
from dsh_audit.finding import has_errors, sort_findings
from dsh_audit.report.html import render_html


@click.command("report")
@ONE_LOG
@PRICES
@DEPLOYMENT
@OUTPUT
def command(logs: LogChoice, prices: PriceChoice, deployment: DeploymentChoice, output: str | None) -> None:
    """Write LOG as one self-contained HTML page: summary, timeline, header changes, ledger, findings.

    The page needs no network and works on a phone, in dark mode and without JavaScript.
    """
    if output is None:
        raise UsageError("report needs -o FILE", hint="for example: dsh-audit report LOG -o report.html")
    guard_output(output)
    settings = deployment.read()
    history, findings = logs.read_one()
    report = audit_cache(history, settings, prices.read(), logs.through)
    report = replace(report, findings=tuple(sort_findings([*findings, *report.findings])))
    write_output(render_html(report).encode("utf-8", "backslashreplace"), output)
    sys.exit(1 if has_errors(report.findings) else 0)
