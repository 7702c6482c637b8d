"""``rules`` and ``explain`` as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from dsh_audit.finding import Rule, Severity
from dsh_audit.report import text

_STYLES = {Severity.ERROR: text.bad, Severity.WARNING: text.warn, Severity.INFO: text.dim}
_EFFECTS = {
    Severity.ERROR: "error: the run exits with 1",
    Severity.WARNING: "warning: shown, and the run still exits with 0",
    Severity.INFO: "info: a remark",
}


def rules_json(rules: Iterable[Rule]) -> dict[str, Any]:
    """schemas/rules.schema.json."""
    return {
        "schema": "dsh-audit/rules/1",
        "rules": [
            {
                "code": rule.code,
                "severity": str(rule.severity),
                "title": rule.title,
                "advice": rule.advice,
                "example": rule.example,
            }
            for rule in rules
        ],
    }


def render_rules(rules: Iterable[Rule]) -> str:
    """Every code with its meaning, an example and what to do, by family."""
    lines: list[str] = []
    for family, members in groupby(rules, key=lambda rule: rule.code.partition("/")[0]):
        lines += [text.bold(family), ""]
        for rule in members:
            lines += [f"  {_STYLES[rule.severity](rule.code)}  {rule.severity}", *_block(rule, "      "), ""]
    return "\n".join(lines).rstrip() + "\n"


def render_rule(rule: Rule) -> str:
    """One rule in full."""
    return "\n".join([text.bold(rule.code), f"  {_EFFECTS[rule.severity]}", *_block(rule, "  ")]) + "\n"


def _block(rule: Rule, indent: str) -> list[str]:
    return [
        f"{indent}{rule.title}",
        f"{indent}{text.dim('example')}  {rule.example}",
        f"{indent}{text.dim('do')}       {rule.advice}",
    ]
