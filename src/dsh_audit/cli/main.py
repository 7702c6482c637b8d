"""``dsh-audit``: the command group, and how errors leave the program."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from dsh_audit import __version__
from dsh_audit.cli.config import META_KEY, build_defaults, find_config, prepare_command, read_config
from dsh_audit.cli.options import MEMORY_LIMIT
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.text.budget import BudgetError

# Nearly everything that a command makes lives until it ends; looking for cycles in it takes a tenth of the time.
gc.set_threshold(50_000, 20, 50)

_COMMANDS = {
    "sessions": "List the sessions of a harness home, and whether they are sound.",
    "inspect": "Say what a log is: format, size, turns, requests, health.",
    "lint": "Say whether sessions will open, migrate and be accepted.",
    "export": "Print the events of a log as plain JSONL, for jq and grep.",
    "requests": "List every model request of a log.",
    "render": "Print what the model was sent in one request.",
    "encode": "Print the exact body of one request given as JSON.",
    "capture": "Say what an archive of captured requests holds.",
    "deployment": "Propose a deployment file from logs and captures.",
    "verify": "Compare captured requests with the log, byte for byte.",
    "drift": "List changes of settings, system prompt and tools.",
    "diff": "Compare two runs of one task request by request.",
    "cache": "Say why the prompt cache stopped hitting, and what it cost.",
    "uploads": "List what of the session log was sent to a provider.",
    "report": "Write a session as one HTML page.",
    "golden": "Pin what the model sees, and find out when it changes.",
    "schema": "Print the JSON Schema of a report or an input file.",
    "rules": "List every finding code.",
    "explain": "Say what a finding code means and what to do about it.",
    "completion": "Print the completion script of a shell.",
}
"""Name → summary; the module of the same name is imported when it is used."""


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
        except ValueError as error:
            if "embedded null" not in str(error):  # as every call of the system says it of a path
                raise
            raise UsageError("a path holds a null character: no file has such a name") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return _load_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@functools.cache
def _load_command(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"dsh_audit.cli.{name}").command
    command.short_help = _COMMANDS[name]
    prepare_command(command, f"DSH_AUDIT_{name}")
    return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dsh-audit")
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
@MEMORY_LIMIT
@click.option("--debug", is_flag=True, envvar="DSH_AUDIT_DEBUG", help="Show the traceback of an internal error.")
@click.pass_context
def cli(context: click.Context, config: str | None, no_config: bool, color: str, debug: bool) -> None:
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
    context.meta[META_KEY] = file
    context.default_map = build_defaults(file, cli)
    if context.get_parameter_source("color") is ParameterSource.DEFAULT:
        context.params["color"] = context.default_map.get("color", "auto")


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; an error is one line, never a traceback unless ``--debug`` asks for it."""
    arguments, debug = _take_debug(sys.argv[1:] if argv is None else argv)
    try:
        status = copy_context().run(cli.main, args=arguments, prog_name="dsh-audit", standalone_mode=False)
    except AuditError as error:
        _fail(error.message, error.hint)
    except click.ClickException as error:
        error.show()
        _hint_at_dashes(error, arguments)
        status = 2
    except click.exceptions.Exit as error:
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", None)
    except (BrokenPipeError, _OutputClosedError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 2
    except BudgetError as error:
        _fail(str(error), None)
    except MemoryError:
        _fail("not enough memory for this input", None)
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        _fail(f"internal error: {type(error).__name__}", None if debug else "please report it; --debug shows where")
    sys.exit(status if isinstance(status, int) else 0)


def run() -> NoReturn:
    """The program: as ``main``, without taking the interpreter apart afterwards, a sixth of a short command's time."""
    status: Any = 0
    try:
        main()
    except SystemExit as done:
        status = done.code
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


def _take_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without ``--debug``, which may stand behind the command, too; and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [item for item in arguments[:end] if item != "--debug"]
    debug = len(kept) < end or os.environ.get("DSH_AUDIT_DEBUG", "").lower() in ("1", "true", "yes", "on")
    return [*kept, *arguments[end:]], debug


def _hint_at_dashes(error: click.ClickException, arguments: Sequence[str]) -> None:
    """Harness logs lie in directories whose names begin with ``--``."""
    if isinstance(error, click.NoSuchOption):
        paths = [item for item in arguments if item.startswith("-") and ("/" in item or Path(item).exists())]
        if paths:
            click.echo(
                "hint: a path that begins with - goes behind --, as the last arguments, or is written ./-…", err=True
            )


def _fail(message: str, hint: str | None) -> Any:
    from dsh_audit.report.text import clean

    click.echo(f"error: {clean(message)}", err=True)
    if hint:
        click.echo(f"hint: {clean(hint)}", err=True)
    sys.exit(2)
