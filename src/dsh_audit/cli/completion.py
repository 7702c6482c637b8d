"""``completion``: a script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
    bash: eval "$(dsh-audit completion bash)"              in ~/.bashrc
    zsh:  eval "$(dsh-audit completion zsh)"               in ~/.zshrc
    fish: dsh-audit completion fish > ~/.config/fish/completions/dsh-audit.fish
    """
    root = click.get_current_context().find_root()
    complete = _SHELLS[shell](root.command, {}, "dsh-audit", "_DSH_AUDIT_COMPLETE")
    # Not complete.source(): for bash that runs a program to learn its version.
    click.echo(ShellComplete.source(complete))
