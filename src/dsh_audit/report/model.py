"""The value that every checking command produces, from which every report format is rendered."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath, PurePosixPath
from typing import Any, Literal

from dsh_audit.errors import AuditError
from dsh_audit.finding import Finding, Severity, has_errors
from dsh_audit.record import dataclass
from dsh_audit.report.text import clean, place, plural

Outcome = Literal["passed", "failed", "error", "skipped"]
Verdict = Literal["passed", "failed", "error"]

MAX_TEXT = 2000
_MORE_UNSAFE = re.compile("[\u2028\u2029\ufdd0-\ufdef\ufffe\uffff]")
_LEVELS = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was judged, a test case in JUnit's words.

    Args:
        name: unique in its group.
        group: what it belongs to: a session id, a file.
        outcome: ``failed`` counts against the verdict; ``error`` could not be judged although it should have been;
            ``skipped`` could not be judged, and that alone fails nothing.
        message: one line; why, when not passed.
    """

    name: str
    group: str
    outcome: Outcome
    message: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one command.

    Args:
        command: as typed, e.g. ``verify`` or ``golden check``.
        verdict: alone decides the exit status: 0 passed, 1 failed, 2 error (the audit could not run).
        as_json: makes the payload of ``--format json``, with its ``schema`` member.
        as_text: makes the text for people; may hold ANSI colours.
        findings: all of them, sorted.
        summary: (name, number) in the order to show.
        cases: what was judged; holds a failed or error case exactly when the verdict is not ``passed``.
        version: of this program; empty when it does not matter.
        root: directory that absolute paths of logs are shown relative to; None leaves only their last parts.
    """

    command: str
    verdict: Verdict
    as_json: Callable[[], Any]
    as_text: Callable[[], str]
    findings: tuple[Finding, ...] = ()
    summary: tuple[tuple[str, int], ...] = ()
    cases: tuple[Case, ...] = ()
    version: str = ""
    root: PurePath | None = None

    @property
    def passed(self) -> bool:
        """Whether the exit status is 0."""
        return self.verdict == "passed"

    @property
    def exit_status(self) -> int:
        """0, 1 or 2."""
        return ("passed", "failed", "error").index(self.verdict)

    def sentence(self) -> str:
        """Command, verdict and numbers in one line."""
        counts = ", ".join(f"{count} {name}" for name, count in self.summary if count)
        return f"{self.command} {self.verdict}" + (f": {counts}" if counts else "")


def build_report(
    command: str,
    *,
    as_json: Callable[[], Any],
    as_text: Callable[[], str],
    findings: Sequence[Finding],
    summary: Iterable[tuple[str, int]] = (),
    cases: Iterable[Case] = (),
    loose: Iterable[Finding] | None = None,
    failed: bool = False,
) -> Report:
    """A report whose verdict follows from its findings and cases.

    Args:
        command, as_json, as_text, findings, summary, cases: see :class:`Report`.
        loose: findings that no case speaks for, each error of which gets a case of its own; default: all of them.
        failed: fail even without error findings and failed cases.
    """
    every = [*cases, *error_cases(findings if loose is None else loose)]
    has_bad_case = any(case.outcome in ("failed", "error") for case in every)
    failed = failed or has_bad_case or has_errors(findings)
    if failed and not has_bad_case:
        every.append(Case("verdict", command, "failed", f"{command} failed"))
    verdict: Verdict = "failed" if failed else "passed"
    return Report(command, verdict, as_json, as_text, tuple(findings), tuple(summary), tuple(every))


def error_report(command: str, error: AuditError) -> Report:
    """The report of an audit that could not run."""
    message = error.message + (f" ({error.hint})" if error.hint else "")
    return Report(
        command=command,
        verdict="error",
        as_json=lambda: {
            "schema": "dsh-audit/error/1",
            "command": command,
            "error": error.message,
            "hint": error.hint,
        },
        as_text=lambda: f"error: {clean(message)}\n",
        cases=(Case("audit", command, "error", message),),
    )


def error_cases(findings: Iterable[Finding]) -> list[Case]:
    """A failed case for each error finding, grouped by the file or session that it is about."""
    cases: list[Case] = []
    for finding in findings:
        if finding.severity is Severity.ERROR:
            group = finding.where.session or finding.where.source or "findings"
            name = f"{finding.code} at {where}" if (where := place(finding)) else finding.code
            cases.append(Case(name, group, "failed", finding.message))
    return cases


def count_findings(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    """(``errors`` | ``warnings`` | ``notes``, number) for a summary."""
    levels = [finding.severity for finding in findings]
    names = ("errors", "warnings", "notes")
    return [(name, levels.count(level)) for name, level in zip(names, _LEVELS, strict=True)]


def describe_counts(findings: Iterable[Finding]) -> str:
    """``2 errors, 1 warning``; empty without findings."""
    counts = count_findings(findings)
    return ", ".join(plural(count, name.removesuffix("s")) for name, count in counts if count)


def heaviest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, warnings, notes; otherwise in the order given."""
    return sorted(findings, key=lambda finding: _LEVELS.index(finding.severity))


def safe(text: str, limit: int = MAX_TEXT) -> str:
    """One line of text that any format may hold: at most ``limit`` characters of it, nothing unprintable."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return _MORE_UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", clean(short))


def relative_path(source: str, root: PurePath | None) -> str:
    """A source as a relative path with slashes, without ``.`` and leading ``..``.

    Absolute paths below ``root`` become relative to it; of others the last two parts stay, so that a report does not
    depend on the machine.
    """
    path = PurePath(source)
    if path.is_absolute():
        below = root is not None and path.is_relative_to(root)
        path = path.relative_to(root) if root is not None and below else PurePath(*path.parts[1:][-2:])
    parts = PurePosixPath(posixpath.normpath(path.as_posix())).parts
    return "/".join(part for part in parts if part not in ("..", "/", "//")) or "."
