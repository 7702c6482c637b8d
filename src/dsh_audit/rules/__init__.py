"""Every finding code, one module a family; ``RULES`` lists them once."""

from dsh_audit.finding import Rule
from dsh_audit.rules import attachments, cache, capture, diff, drift, golden, lint, log, uploads, wire

_FAMILIES = (log, lint, attachments, capture, wire, drift, cache, uploads, golden, diff)

RULES: dict[str, Rule] = {
    rule.code: rule
    for family in _FAMILIES
    for rule in sorted(
        (value for value in vars(family).values() if isinstance(value, Rule)), key=lambda rule: rule.code
    )
}
"""Code → rule, ordered by family and code."""
