"""How a checking command ends: its Report is printed, written in other formats, and decides the exit status."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from dsh_audit import __version__
from dsh_audit.cli.options import OUTPUT, F, format_option
from dsh_audit.cli.outputs import guard_output, wants_colour, write_output, write_report_file
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.record import dataclass
from dsh_audit.report.model import Report, error_report
from dsh_audit.report.renderers import FORMATS, render_report

_STDOUT = "-"
_WORKFLOW_COMMAND = re.compile(r"^(?:\x1b\[[0-9;]*m|\s)*::|##\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where the result goes.

    Args:
        output_format: of the main output.
        output: file for the main output; None is stdout.
        reports: (format, path) of ``--report``; ``-`` is stdout, and text then moves to stderr.
        exit_zero: exit with 0 although the verdict is ``failed``.
    """

    output_format: str = "text"
    output: str | None = None
    reports: tuple[tuple[str, str], ...] = ()
    exit_zero: bool = False


def reporting(command: Callable[..., Report]) -> Callable[..., NoReturn]:
    """``--format``, ``-o``, ``--report``, ``--exit-zero`` for a function that returns a Report.

    Put it below the ``click.command`` and the other options. An audit that cannot run leaves ``error`` reports, so that
    no file of an earlier run is taken for this one's.
    """

    @functools.wraps(command)
    def wrapper(
        *args: Any, output_format: str, output: str | None, reports: tuple[str, ...], exit_zero: bool, **kwargs: Any
    ) -> NoReturn:
        to = parse_destinations(output_format, output, reports, exit_zero)
        try:
            report = command(*args, **kwargs)
        except Exception as error:
            known = error if isinstance(error, AuditError) else AuditError(f"internal error: {type(error).__name__}")
            _write_files(error_report(_command_name(click.get_current_context()), known), to.reports)
            raise
        emit(report, to)

    return _add_options(wrapper)


def _add_options(command: F) -> F:
    for option in (
        click.option("--exit-zero", is_flag=True, help="Exit with 0 although there are findings: report only."),
        click.option(
            "--report",
            "reports",
            multiple=True,
            metavar="FORMAT=PATH",
            help=f"Also write the result to PATH (- is stdout); FORMAT is {', '.join(FORMATS)}. Repeatable.",
        ),
        OUTPUT,
        format_option(*FORMATS),
    ):
        command = option(command)
    return command


def _command_name(context: click.Context) -> str:
    """``golden check`` of ``dsh-audit golden check``."""
    return context.command_path.partition(" ")[2]


def parse_destinations(
    output_format: str, output: str | None, reports: Iterable[str], exit_zero: bool = False
) -> Destinations:
    """Where the result goes, checked before any work is done.

    Raises:
        UsageError: a format is unknown, two results go to one place, or an input would be overwritten.
    """
    pairs = tuple(_parse_report(item) for item in reports)
    paths = [path for _, path in pairs]
    if _STDOUT in paths and output is None and output_format != "text":
        raise UsageError(f"--format {output_format} and --report …=- both go to stdout", hint="give one of them a file")
    files = [guard_output(path) for path in (*paths, *([output] if output else [])) if path != _STDOUT]
    if len(set(files)) < len(files) or paths.count(_STDOUT) > 1:
        raise UsageError("two reports go to the same place", hint="give each --report and -o a path of its own")
    return Destinations(output_format, output, pairs, exit_zero)


def _parse_report(item: str) -> tuple[str, str]:
    name, separator, path = item.partition("=")
    if not separator or not path:
        raise UsageError(f"--report {item}: expected FORMAT=PATH", hint=f"FORMAT is {', '.join(FORMATS)}")
    if name not in FORMATS:
        raise UsageError(f"--report {item}: there is no format {name}", hint=f"FORMAT is {', '.join(FORMATS)}")
    return name, path


def emit(report: Report, to: Destinations) -> NoReturn:
    """Print and write a report, then exit: 0 passed, 1 failed, whatever was printed where."""
    report = replace(report, version=__version__, root=Path.cwd())
    text = render_report(report, to.output_format)
    if to.output_format == "text" and os.environ.get("GITHUB_ACTIONS"):
        text = disarm(text)
    if to.output is None and any(path == _STDOUT for _, path in to.reports):
        click.echo(text, err=True, nl=False, color=wants_colour(sys.stderr))
    else:
        write_output(text, to.output)
    _write_files(report, to.reports)
    sys.exit(0 if to.exit_zero else report.exit_status)


def disarm(text: str) -> str:
    """Text in which GitHub's log reader finds no workflow commands: what a log holds must not steer the job."""
    return _WORKFLOW_COMMAND.sub(lambda match: match.group()[:-1] + f"\\u{ord(match.group()[-1]):04x}", text)


def _write_files(report: Report, reports: Iterable[tuple[str, str]]) -> None:
    for name, path in reports:
        text = render_report(report, name)
        if path == _STDOUT:
            write_output(text, None)
            continue
        # The summary of a GitHub step is shared, so it is appended to.
        append = name == "markdown" and path == os.environ.get("GITHUB_STEP_SUMMARY")
        data = (text if append else click.unstyle(text)).encode("utf-8", "backslashreplace")
        write_report_file(path, data, append=append)
