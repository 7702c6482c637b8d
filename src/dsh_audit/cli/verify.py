"""``verify``: captured requests against the log."""

from __future__ import annotations

from pathlib import Path

import click

from dsh_audit.capture import read_capture
from dsh_audit.cli import common
from dsh_audit.cli.output import reporting
from dsh_audit.errors import UsageError
from dsh_audit.replay.verification import verify
from dsh_audit.report.model import Report
from dsh_audit.report.verify import report_verify

CAPTURE_FIELD_OPTION = click.option(
    "--capture-field",
    "capture_fields",
    multiple=True,
    metavar="NAME=PATH",
    help="Where a JSONL record keeps something, as a dotted path, e.g. body=request.payload.",
)


def capture_options(command: common.F) -> common.F:
    """``--capture``, ``--capture-field``."""
    for option in (
        CAPTURE_FIELD_OPTION,
        click.option(
            "--capture",
            "captures",
            multiple=True,
            required=True,
            type=click.Path(),
            metavar="PATH",
            help="Captured requests: a directory of NNNN.body + NNNN.meta.json, a HAR file, or JSONL. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def read_fields(items: tuple[str, ...]) -> dict[str, str] | None:
    """``NAME=PATH`` options as a mapping."""
    fields: dict[str, str] = {}
    for item in items:
        name, separator, path = item.partition("=")
        if not separator or not name or not path:
            raise UsageError(f"--capture-field {item}: expected NAME=PATH")
        fields[name] = path
    return fields or None


@click.command("verify", short_help="Compare captured requests with the log, byte for byte.")
@click.argument("names", metavar="LOG...", nargs=-1, required=True)
@capture_options
@common.log_options
@common.deployment_options
@reporting
def command(
    names: tuple[str, ...],
    captures: tuple[str, ...],
    capture_fields: tuple[str, ...],
    session: str | None,
    generation: int | None,
    through: int | None,
    deployment_file: str | None,
    constants: tuple[str, ...],
) -> Report:
    """Compare every captured request with the request that the LOGs stand for, byte for byte.

    LOG may be a directory tree of sessions; requests are attributed by their session. Verdicts: identical;
    identical-except-unlogged (only the named top-level members, which no log explains, are extra); same-json;
    different; unexplained (no dispatch explains it); not-checked; other (uploads, searches, other sessions);
    not-captured (a dispatch that no capture shows).
    """
    deployment = common.read_deployment(deployment_file, constants)
    fields = read_fields(capture_fields)
    archives = [read_capture(Path(path), fields=fields) for path in captures]
    logs, findings = common.open_many(names, session, generation)
    histories = [common.read_history(log, files) for log, files in common.with_progress(logs, "reading", len(logs))]
    return report_verify(verify(histories, archives, deployment, through, findings))
