"""Findings about a session log as a file: container, rows, envelope, generations."""

from dsh_audit.finding import Rule, Severity

TORN_TAIL = Rule(
    code="log/torn-tail",
    severity=Severity.WARNING,
    title="The log ends inside a row or frame; the harness drops this tail on the next resume.",
    advice="Nothing is lost but the last append; audit again after the session was resumed.",
    example="torn tail: 37 bytes after the last complete row are not used",
)
