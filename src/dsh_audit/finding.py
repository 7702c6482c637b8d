"""Findings: values that say what is wrong with the data, with a stable code and a place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Any, ClassVar

from dsh_audit.record import dataclass


class Severity(StrEnum):
    """How much a finding weighs: only ``error`` makes a run exit with 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding.

    Args:
        code: stable dotted name, ``family/name``, e.g. ``log/torn-tail``.
        severity: of findings with this code, unless a finding says otherwise.
        title: what it means, one line.
        advice: what to do about it, one line.
        example: one message as it would be printed.
    """

    code: str
    severity: Severity
    title: str
    advice: str
    example: str


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a finding; members that do not apply are None.

    Args:
        source: the log, capture or file as the user named it (or relative to that).
        session: session id.
        frame: index of the zstd frame, from 0.
        at: byte offset from 0, in the file for containers, in the body for captures.
        line: line number from 1 in the decoded text (the session header is line 1).
        seq: event sequence number from 0.
        pointer: JSON pointer (RFC 6901) inside the row, event or body.
        request: index of the request in its session, from 0.
        captured: id of the captured exchange.
    """

    source: str | None = None
    session: str | None = None
    frame: int | None = None
    at: int | None = None
    line: int | None = None
    seq: int | None = None
    pointer: str | None = None
    request: int | None = None
    captured: str | None = None

    JSON: ClassVar = "source? session? frame? at? line? seq? pointer? request? captured?"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with, or remarkable in, the data.

    Args:
        rule: the kind; gives code, severity and advice.
        message: one line that names the values involved; never a secret.
        where: the place.
        details: further JSON values, e.g. sides of a difference.
        level: severity of this one, where it depends on more than the rule.
    """

    rule: Rule
    message: str
    where: Where = Where()
    details: dict[str, Any] = field(default_factory=dict)
    level: Severity | None = None

    JSON: ClassVar = "code severity message where details?"

    @property
    def code(self) -> str:
        """The stable code of the rule."""
        return self.rule.code

    @property
    def severity(self) -> Severity:
        """That of the rule, unless this one weighs otherwise."""
        return self.level or self.rule.severity


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in report order: by source, session, place and code; stable across runs."""

    def key(finding: Finding) -> tuple[Any, ...]:
        where = finding.where
        place = (where.frame, where.line, where.seq, where.request, where.at)
        numbers = tuple(-1 if value is None else value for value in place)
        return (where.source or "", where.session or "", numbers, finding.code, where.captured or "", finding.message)

    return sorted(findings, key=key)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether any finding makes the run exit with 1."""
    return any(finding.severity is Severity.ERROR for finding in findings)
