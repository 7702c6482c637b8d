"""``dsh-audit``: the command group, and how errors leave the program."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from dsh_audit.errors import AuditError

_COMMANDS = (
    "sessions",
    "inspect",
    "export",
    "requests",
    "render",
    "verify",
    "drift",
    "cache",
    "uploads",
    "rules",
    "explain",
    "completion",
)


class _Commands(click.Group):
    """Imports a command only when it is used, so that start-up stays short."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"dsh_audit.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="dsh-audit", prog_name="dsh-audit")
def cli() -> None:
    """Replay and audit DeepSeek Harness session logs, offline and read-only.

    LOG is a session.jsonl or session.vN.jsonl file (plain or .zstd), a session directory, a harness home
    (choose with --session), an exported ZIP, or a session id in the default home ($DSH_HOME, else ~/.dsh).

    Exit status: 0 clean, 1 findings, 2 the audit could not run.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; an error is one line, never a traceback."""
    try:
        status = cli.main(args=argv, prog_name="dsh-audit", standalone_mode=False)
    except AuditError as error:
        _fail(error.message, error.hint)
    except click.ClickException as error:
        error.show()
        status = 2
    except click.exceptions.Exit as error:
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", None)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 2
    except MemoryError:
        _fail("not enough memory for this input", None)
    except Exception as error:
        if os.environ.get("DSH_AUDIT_TRACEBACK"):
            raise
        _fail(f"internal error: {type(error).__name__}", "please report it; DSH_AUDIT_TRACEBACK=1 shows where")
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, hint: str | None) -> Any:
    from dsh_audit.report.text import clean

    click.echo(f"error: {clean(message)}", err=True)
    if hint:
        click.echo(f"hint: {clean(hint)}", err=True)
    sys.exit(2)
