"""``capture``: archives of captured requests, looked at without any log."""

from __future__ import annotations

from dataclasses import replace

import click

from dsh_audit.capture import IMPORTERS, CaptureArchive
from dsh_audit.capture.inspection import ArchiveSummary, inspect_archive
from dsh_audit.cli.options import CAPTURE_READING, CaptureChoice
from dsh_audit.cli.reporting import reporting
from dsh_audit.report.capture import report_archives
from dsh_audit.report.model import Report


@click.group("capture")
def command() -> None:
    """Archives of captured requests; every other command takes them with --capture."""


@command.command("inspect", short_help="Say what an archive holds, and what can be claimed from it.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@CAPTURE_READING
@reporting
def inspect_command(paths: tuple[str, ...], reading: CaptureChoice) -> Report:
    """Say what each archive of captured requests holds, and the strongest verdict that it allows.

    Shown are the format and the tool that wrote it, what was kept of each body, the sessions named, which HTTP headers
    were masked, and what the answers say. No key, cookie or token is printed.
    """
    choice = replace(reading, captures=paths)
    return report_archives([_summary(name, archive) for name, archive in zip(paths, choice.read(), strict=True)])


def _summary(name: str, archive: CaptureArchive) -> ArchiveSummary:
    (importer,) = (importer for importer in IMPORTERS if importer.format == archive.format)
    tool = archive.tool or importer.writer or "an unknown tool"
    verified = any(tool.startswith(known) for known in importer.tools)
    return inspect_archive(archive, name, tool, verified, importer.keeps)
