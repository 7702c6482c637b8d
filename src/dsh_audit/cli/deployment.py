"""``deployment``: files that say what a log cannot know."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dsh_audit.cli.config import OutputPath
from dsh_audit.cli.options import (
    DEPLOYMENT,
    LOGS,
    CaptureChoice,
    DeploymentChoice,
    LogChoice,
    capture_options,
    format_option,
)
from dsh_audit.cli.outputs import guard_output, write_output
from dsh_audit.errors import UsageError
from dsh_audit.replay.learning import Learned, learn
from dsh_audit.report.json import render_json
from dsh_audit.report.text import clean
from dsh_audit.text.to_json import to_json


@click.group("deployment")
def command() -> None:
    """Deployment files: what no log holds, such as a provider's base URL and models; see --deployment elsewhere."""


@command.command("learn", short_help="Propose a file for routes of llm-pi-ai.")
@LOGS
@capture_options(required=True)
@DEPLOYMENT
@format_option("text", "json")
@click.option("-o", "--output", required=True, type=OutputPath(dir_okay=False), metavar="FILE", help="File to write.")
def learn_command(
    logs: LogChoice, captures: CaptureChoice, deployment: DeploymentChoice, output_format: str, output: str
) -> None:
    """Propose a deployment file for routes of the adapter llm-pi-ai, so that the captured bodies come out.

    The file is JSON, whatever --deployment names is kept in it. The report says which settings the evidence fixes
    and which it leaves open, with the other values that give the same bodies. Exit status 0 when every captured
    request of the logs is then explained.
    """
    if not output.endswith(".json"):
        raise UsageError(f"{output}: the proposed file is JSON", hint="give it a name that ends in .json")
    guard_output(output)
    settings, archives = deployment.read(), captures.read()
    histories, _findings = logs.read_all()
    learned = learn(histories, archives, settings)
    write_output(render_json(learned.raw), output)
    write_output(render_json(to_json(learned)) if output_format == "json" else _text(learned), None)
    summary = learned.report.summary
    sys.exit(1 if summary["different"] or summary["unexplained"] or summary["not_checked"] else 0)


def _text(learned: Learned) -> str:
    summary = ", ".join(f"{count} {name.replace('_', '-')}" for name, count in learned.report.summary.items() if count)
    routes = ", ".join(learned.routes) or "none"
    lines = [f"routes of llm-pi-ai: {routes}", f"with the proposed file: {summary}", ""]
    for setting in learned.settings:
        value = json.dumps(setting.value) if setting.is_set else "(left out)"
        other = "" if setting.status == "fixed" else f"; same bodies with {_values(setting.equals)}"
        lines.append(f"{setting.status:5}  {setting.name} = {value}{other}")
    return "".join(clean(line) + "\n" for line in lines)


def _values(values: tuple[Any, ...]) -> str:
    return ", ".join("(left out)" if value is None else json.dumps(value) for value in values)
