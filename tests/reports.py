"""Reports for tests of the renderers, with text that tries to break out of each format."""

from __future__ import annotations

from typing import Any

from dsh_audit.finding import Finding, Rule, Severity, Where
from dsh_audit.report.model import Case, Report, build_report
from dsh_audit.rules import wire

HOSTILE = [
    "]]><failure/>",
    "</script><script>alert(1)</script>",
    "first\nsecond\r\nthird",
    "100% %0A %25",
    "::error file=x::owned",
    "##[add-mask]e",
    "a | b || c",
    "`code` **bold** [link](https://evil.example) ![i](x) https://evil.example www.evil.example @someone #12",
    "<!-- <details> &amp; &lt;",
    "汉字 🐋 e\u0301",
    "lone \ud83d and \udc00",
    "\x00\x01\x08\x0b\x1b[31m\x7f\x9b\u2028\u2029\ufffe\uffff",
    "\u202eright to left\u2066",
    "a:b,c=d;e",
    "../../etc/passwd",
    "",
    "x" * 100_000,
]

NOTE = Rule("test/note", Severity.INFO, "A note.", "Nothing to do.", "note")


def finding(text: str = "differs", rule: Rule = wire.DIFFERENT, **where: Any) -> Finding:
    return Finding(rule, text, Where(**where))


def report_of(*findings: Finding, cases: tuple[Case, ...] = (), **changes: Any) -> Report:
    return build_report(
        changes.pop("command", "verify"),
        as_json=lambda: {"schema": "dsh-audit/test/1"},
        as_text=lambda: "text\n",
        findings=findings,
        summary=(("captured", 3), ("different", 0)),
        cases=cases,
        **changes,
    )


def hostile_report(text: str) -> Report:
    """One finding and one case with the text everywhere that a log or a capture can put it."""
    where = Where(source=f"logs/{text}", session=text, line=3, pointer=f"/messages/{text}", request=1, captured=text)
    case = Case(text, text, "failed", text)
    return report_of(Finding(wire.DIFFERENT, text, where), Finding(NOTE, text, where), cases=(case,))
