"""``lint``: whether a session still opens, migrates and is accepted."""

from __future__ import annotations

import click

from dsh_audit.checks.lint import Facts, LintPass
from dsh_audit.checks.lint.model import Need
from dsh_audit.cli import common
from dsh_audit.cli.options import DEPLOYMENT, LOGS, DeploymentChoice, LogChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.errors import UsageError
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.inspection import Inspection, inspect_log
from dsh_audit.report.lint import report_lint
from dsh_audit.report.model import Report

_NEEDS: frozenset[Need] = frozenset({"pass", "bodies"})


@click.command("lint")
@LOGS
@click.option("--for", "release", metavar="VERSION", help="Judge for this release of the harness only.")
@click.option("--route", metavar="PROVIDER/MODEL", help="Judge for this route, not for the one in the log.")
@DEPLOYMENT
@reporting
def command(logs: LogChoice, release: str | None, route: str | None, deployment: DeploymentChoice) -> Report:
    """Say what will stop the LOGs: what a release refuses to open or migrate, and what a provider refuses to answer.

    Without --for every known release from the log's own to the newest is judged: what the provider of the log or the
    log's own release refuses is an error, what a later release refuses is a warning.
    """
    if route is not None and not all(route.partition("/")):
        raise UsageError(f"--route {route}: expected PROVIDER/MODEL")
    settings = deployment.read()
    opened, findings = logs.open_all()
    facts = {
        log.source.label: Facts(log, common.with_attachments(settings, files), release, route) for log, files in opened
    }
    judged = [one.releases for one in facts.values()]

    def inspect(log: SessionLog) -> Inspection:
        return inspect_log(log, logs.through, observer=LintPass(facts[log.source.label], _NEEDS))

    inspections, loose = common.inspect_all(logs.names, opened, inspect, "checking")
    return report_lint(inspections, judged, [*findings, *loose])
