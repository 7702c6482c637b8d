"""``rules``: every finding code."""

from __future__ import annotations

import click

from dsh_audit.cli import common
from dsh_audit.cli.options import output_options
from dsh_audit.errors import UsageError
from dsh_audit.report.rules import render_rules, rules_json
from dsh_audit.rules import RULES


@click.command("rules")
@click.argument("families", metavar="[FAMILY]...", nargs=-1)
@output_options
def command(families: tuple[str, ...], output_format: str, output: str | None) -> None:
    """List every finding code with its meaning, an example and what to do; FAMILY is the part before the slash."""
    known = list(dict.fromkeys(code.partition("/")[0] for code in RULES))
    for family in families:
        if family not in known:
            raise UsageError(f"there is no family {family}", hint=f"families: {', '.join(known)}")
    chosen = [rule for code, rule in RULES.items() if not families or code.partition("/")[0] in families]
    common.write_report(output_format, output, as_json=lambda: rules_json(chosen), as_text=lambda: render_rules(chosen))
