"""GitHub workflow commands: annotations on a pull request, few enough that GitHub shows all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dsh_audit.finding import Finding, Severity
from dsh_audit.report.model import Report, relative_path, safe
from dsh_audit.report.text import place, plural

MAX_PER_LEVEL = 10
"""GitHub shows ten annotations of a level per step and silently drops the rest."""

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_MAX_CODES = 20


def render_github(report: Report) -> str:
    """At most ten lines a level: the verdict, then findings, the last line counting those without their own."""
    lines: list[str] = []
    for level, command in _COMMANDS.items():
        found = [finding for finding in report.findings if finding.severity is level]
        own = [_verdict(report)] if command == _verdict_command(report) else []
        room = MAX_PER_LEVEL - len(own)
        shown = found if len(found) <= room else found[: room - 1]
        lines += own + [_annotation(command, finding, report) for finding in shown]
        if len(shown) < len(found):
            lines.append(_rest(command, found[len(shown) :], report))
    return "".join(f"{line}\n" for line in lines)


def escape_data(text: str) -> str:
    """The message of a workflow command. Source: actions/toolkit, packages/core, command.ts, escapeData."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """A property of a workflow command. Source: actions/toolkit, packages/core, command.ts, escapeProperty."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _command(name: str, message: str, properties: Iterable[tuple[str, str]]) -> str:
    shown = ",".join(f"{key}={escape_property(value)}" for key, value in properties)
    return f"::{name} {shown}::{escape_data(message)}"


def _verdict_command(report: Report) -> str:
    return "notice" if report.passed else "error"


def _verdict(report: Report) -> str:
    reasons = [safe(case.message) for case in report.cases if case.outcome == "error"]
    message = "\n".join([safe(report.sentence()), *reasons[:1]])
    return _command(_verdict_command(report), message, (("title", f"dsh-audit {report.command}"),))


def _annotation(command: str, finding: Finding, report: Report) -> str:
    where = finding.where
    properties = [("title", finding.code)]
    if where.source is not None:
        properties.append(("file", safe(relative_path(where.source, report.root))))
        if where.line is not None:
            properties.append(("line", str(where.line)))
    lines = [safe(finding.message), *([f"at {safe(place(finding))}"] if place(finding) else []), finding.rule.advice]
    return _command(command, "\n".join(lines), properties)


def _rest(command: str, findings: list[Finding], report: Report) -> str:
    codes = Counter(finding.code for finding in findings)
    shown = [f"{code} × {count}" for code, count in sorted(codes.items(), key=lambda item: (-item[1], item[0]))]
    more = [f"and {plural(len(shown) - _MAX_CODES, 'more code')}"] if len(shown) > _MAX_CODES else []
    message = f"{plural(len(findings), 'more finding')}: " + ", ".join([*shown[:_MAX_CODES], *more])
    return _command(command, message, (("title", f"dsh-audit {report.command}"),))
