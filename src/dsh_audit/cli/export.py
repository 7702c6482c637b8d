"""``export``: the events of a log as plain JSONL."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from dsh_audit.cli.options import ONE_LOG, OUTPUT, LogChoice
from dsh_audit.cli.outputs import guard_output, wants_colour, write_chunks
from dsh_audit.finding import has_errors
from dsh_audit.log.session_log import EventReader, SessionLog
from dsh_audit.report.text import findings_block
from dsh_audit.text import ecma


@click.command("export")
@ONE_LOG
@OUTPUT
def command(logs: LogChoice, output: str | None) -> None:
    """Print LOG as plain JSONL for jq and grep: the session header, then one event a line, packed rows expanded.

    Findings go to stderr. The lines are those the harness itself would write uncompressed and unpacked.
    """
    log, _files, findings = logs.open_one()
    reader = log.events(logs.through)
    lines = _lines(log, reader)
    if output is None:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    else:
        write_chunks(output, guard_output(output), lines)
    found = [*findings, *log.open_findings, *reader.findings]
    for text in findings_block(found):
        click.echo(text, err=True, color=wants_colour(sys.stderr))
    sys.exit(1 if has_errors(found) else 0)


def _lines(log: SessionLog, reader: EventReader) -> Iterator[bytes]:
    if log.session_header.raw:
        yield ecma.stringify(log.session_header.raw) + b"\n"
    for event in reader:
        yield ecma.stringify(log.format.encode_row(event)) + b"\n"
