"""``explain``: one finding code in full."""

from __future__ import annotations

import click

from dsh_audit.cli import common
from dsh_audit.cli.options import output_options
from dsh_audit.errors import UsageError
from dsh_audit.report.rules import render_rule, rules_json
from dsh_audit.rules import RULES


@click.command("explain")
@click.argument("code", metavar="CODE")
@output_options
def command(code: str, output_format: str, output: str | None) -> None:
    """Say what a finding CODE means and what to do about it, e.g. log/torn-tail."""
    rule = RULES.get(code)
    if rule is None:
        raise UsageError(f"there is no finding code {code}", hint=_hint(code))
    common.write_report(output_format, output, as_json=lambda: rules_json([rule]), as_text=lambda: render_rule(rule))


def _hint(code: str) -> str:
    """The codes that may have been meant: the same name in any family, else those spelled much alike."""
    from difflib import get_close_matches

    wanted = code.strip().lower()
    named = [known for known in RULES if wanted in (known, known.partition("/")[2])]
    close = named or get_close_matches(wanted[:100], RULES, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else "dsh-audit rules lists them all"
