"""``dsh-audit``: the command group, and how errors leave the program."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dsh_audit.cli.config import META_KEY, build_defaults, find_config, name_environment, read_config
from dsh_audit.errors import AuditError, UsageError

_COMMANDS = (
    "sessions",
    "inspect",
    "export",
    "requests",
    "render",
    "encode",
    "deployment",
    "verify",
    "drift",
    "diff",
    "cache",
    "uploads",
    "report",
    "golden",
    "schema",
    "rules",
    "explain",
    "completion",
)


class _OutputClosedError(Exception):
    """Whoever read the output has gone."""


class _Commands(click.Group):
    """Imports a command only when it is used, so that start-up stays short."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would end a closed pipe with 1, which here means findings."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _OutputClosedError from None
        except OSError as error:
            raise AuditError(f"reading or writing failed: {error.strerror or type(error).__name__}") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"dsh_audit.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        name_environment(command, f"DSH_AUDIT_{cmd_name}")
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="dsh-audit", prog_name="dsh-audit")
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    envvar="DSH_AUDIT_CONFIG",
    metavar="FILE",
    help="Defaults of options, instead of the nearest dsh-audit.toml or pyproject.toml with [tool.dsh-audit].",
)
@click.option("--no-config", is_flag=True, envvar="DSH_AUDIT_NO_CONFIG", help="Read no such file.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    envvar="DSH_AUDIT_COLOR",
    help="auto: on a terminal, and as NO_COLOR and FORCE_COLOR say.",
)
@click.pass_context
def cli(context: click.Context, config: str | None, no_config: bool, color: str) -> None:
    """Replay and audit DeepSeek Harness session logs, offline and read-only.

    LOG is a session.jsonl or session.vN.jsonl file (plain or .zstd), a session directory, a harness home
    (choose with --session), an exported ZIP, or a session id in the default home ($DSH_HOME, else ~/.dsh).

    Options may also come from DSH_AUDIT_<COMMAND>_<OPTION> and from a configuration file, in this order.

    Exit status: 0 no errors (warnings do not count), 1 findings that are errors, 2 the audit could not run.
    """
    if context.invoked_subcommand != "completion" and not no_config:
        _apply_config(context, config)


def _apply_config(context: click.Context, path: str | None) -> None:
    """Make the settings of the configuration file the defaults of all options."""
    file = find_config(Path.cwd()) if path is None else read_config(path)
    if file is None:
        if path is not None:
            raise UsageError(f"{path}: there is no [tool.dsh-audit] in it")
        return
    context.meta[META_KEY] = file.path
    context.default_map = build_defaults(file, cli)
    if context.get_parameter_source("color") is ParameterSource.DEFAULT:
        context.params["color"] = context.default_map.get("color", "auto")


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
    except (BrokenPipeError, _OutputClosedError):
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
