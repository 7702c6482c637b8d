"""Defaults of options from ``dsh-audit.toml`` or ``[tool.dsh-audit]`` in ``pyproject.toml``.

A key is the long name of an option. At the top it is the default of every command that has the option; in a table named
after a command, of that command. Command line and environment come before the file. Relative paths are relative to the
file. Anything unknown is an error: a misspelled key must not silently weaken a check.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dsh_audit.errors import UsageError
from dsh_audit.record import dataclass

OWN_NAME = "dsh-audit.toml"
PROJECT_NAME = "pyproject.toml"
META_KEY = "dsh_audit.config"
"""``ctx.meta`` key of the ConfigFile that was read."""

_MAX_BYTES = 1 << 20
_PAIRS_WITH_PATH = ("constants", "reports")
_NOT_IN_FILES = ("help", "version", "config", "no_config", "debug", "memory_limit")


class OutputPath(click.Path):
    """A path that is written."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file.

    Args:
        path: as shown in errors, relative to the working directory where possible.
        section: how its top table is called in errors.
        table: the parsed settings.
        is_found: nobody named it; it may have come with the directory that is audited.
        outside: settings of a found file with which a command reads outside the directory of that file.
    """

    path: str
    section: str
    table: dict[str, Any]
    is_found: bool = False
    outside: set[str] = field(default_factory=set)

    def fail(self, keys: Iterable[str], message: str, hint: str | None = None) -> UsageError:
        """The error of one key."""
        place = ".".join((self.section, *keys)).strip(".")
        return UsageError(f"{self.path}: {place}: {message}", hint=hint)


def find_config(start: Path) -> ConfigFile | None:
    """The nearest file with settings, from a directory upward; in one directory dsh-audit.toml comes first."""
    for folder in (start, *start.parents):
        for name in (OWN_NAME, PROJECT_NAME):
            if (folder / name).is_file():
                found = read_config(os.path.relpath(folder / name))
                if found is not None:
                    return replace(found, is_found=True)
    return None


def read_config(path: str) -> ConfigFile | None:
    """The settings of a file; None for a pyproject.toml without ``[tool.dsh-audit]``.

    Raises:
        UsageError: the file cannot be read or is not TOML.
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    is_project = Path(path).name == PROJECT_NAME
    if is_project and b"dsh-audit" not in data:
        return None
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{path}: larger than {_MAX_BYTES} bytes")
    import tomllib

    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {str(error)[:200]}") from None
    if not is_project:
        return ConfigFile(path, "", table)
    tools = table.get("tool")
    own = tools.get("dsh-audit") if isinstance(tools, dict) else None
    if own is None:
        return None
    config = ConfigFile(path, "tool.dsh-audit", own if isinstance(own, dict) else {})
    if not isinstance(own, dict):
        raise config.fail((), "expected a table")
    return config


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Long option name without dashes → option, of those that a file may set."""
    found: dict[str, click.Option] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in _NOT_IN_FILES:
            long = next((name for name in parameter.opts if name.startswith("--")), None)
            if long is not None:
                found[long[2:]] = parameter
    return found


def commands_of(group: click.Group) -> dict[str, click.Command]:
    """Name → command."""
    context = click.Context(group)
    named = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return {name: command for name, command in named if command is not None}


def build_defaults(config: ConfigFile, group: click.Group) -> dict[str, Any]:
    """The settings as click's ``default_map`` of the group: parameter name → value, command name → map.

    Raises:
        UsageError: a key is unknown or a value does not fit.
    """
    return dict(_defaults(config, config.table, group, (), {}))


def _defaults(
    config: ConfigFile, table: Mapping[str, Any], group: click.Group, keys: tuple[str, ...], above: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    commands, own = commands_of(group), options_of(group)
    # ``deployment`` is a command and an option of others: a table is the former, a text the latter.
    below = {name for command in _leaves(group) for name in options_of(command)}
    sections = {name for name in commands if isinstance(table.get(name, {}), dict) or name not in below}
    shared = {key: value for key, value in table.items() if key not in sections and key not in own}
    _check_shared(config, shared, group, keys)
    for key in own.keys() & table.keys():
        yield str(own[key].name), _convert(config, (*keys, key), own[key], table[key])
    for name, command in commands.items():
        section = table.get(name, {}) if name in sections else {}
        if not isinstance(section, dict):
            raise config.fail((*keys, name), "expected a table with the options of this command")
        inherited = {**above, **shared}
        if isinstance(command, click.Group):
            yield name, dict(_defaults(config, section, command, (*keys, name), inherited))
        else:
            yield name, _command_defaults(config, section, command, (*keys, name), inherited)


def _check_shared(config: ConfigFile, shared: Mapping[str, Any], group: click.Group, keys: tuple[str, ...]) -> None:
    """Every shared key is an option of some command below, and its value fits at least one of them."""
    for key, value in shared.items():
        options = [options[key] for command in _leaves(group) if key in (options := options_of(command))]
        if not options:
            below = {name for command in _leaves(group) for name in options_of(command)}
            raise _unknown(config, (*keys, key), {*below, *commands_of(group), *options_of(group)})
        if not any(_fits(option, value) for option in options):
            _convert(config, (*keys, key), options[0], value)


def _leaves(group: click.Group) -> Iterator[click.Command]:
    for command in commands_of(group).values():
        if isinstance(command, click.Group):
            yield from _leaves(command)
        else:
            yield command


def _command_defaults(
    config: ConfigFile,
    section: Mapping[str, Any],
    command: click.Command,
    keys: tuple[str, ...],
    shared: Mapping[str, Any],
) -> dict[str, Any]:
    options = options_of(command)
    defaults: dict[str, Any] = {}
    for key, value in shared.items():
        if key in options and _fits(options[key], value):
            defaults[str(options[key].name)] = _convert(config, (key,), options[key], value)
    for key, value in section.items():
        if key not in options:
            raise _unknown(config, (*keys, key), options)
        defaults[str(options[key].name)] = _convert(config, (*keys, key), options[key], value)
    return defaults


def _unknown(config: ConfigFile, keys: tuple[str, ...], known: Iterable[str]) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(keys[-1].replace("_", "-")[:100], sorted(known), n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else "keys are the long names of options, see --help"
    return config.fail(keys, "unknown key", hint)


def _fits(option: click.Option, value: Any) -> bool:
    return _misfit(option, value) is None


def _misfit(option: click.Option, value: Any) -> str | None:
    """What is wrong with a value, or None."""
    if option.is_flag:
        return None if isinstance(value, bool) else "expected true or false"
    items = value if option.multiple and isinstance(value, list) else [value]
    for item in items:
        kind, expected = _python_type(option)
        if isinstance(item, bool) or not isinstance(item, kind):
            return f"expected {expected}" + (" or a list of such" if option.multiple else "")
        try:
            option.type.convert(item, option, None)
        except click.BadParameter as error:
            return error.message.rstrip(".")
    return None


def _python_type(option: click.Option) -> tuple[type | tuple[type, ...], str]:
    if isinstance(option.type, click.types.IntParamType):
        return int, "an integer"
    return ((int, float), "a number") if isinstance(option.type, click.types.FloatParamType) else (str, "a string")


def _convert(config: ConfigFile, keys: tuple[str, ...], option: click.Option, value: Any) -> Any:
    """The value as click takes it, paths relative to the working directory."""
    message = _misfit(option, value)
    if message is not None:
        raise config.fail(keys, message)
    if not option.multiple:
        return _from_file(config, keys, option, value)
    return [_from_file(config, keys, option, item) for item in (value if isinstance(value, list) else [value])]


def _from_file(config: ConfigFile, keys: tuple[str, ...], option: click.Option, value: Any) -> Any:
    """A setting with its path, if it has one, relative to the file; one that was only found reaches not everywhere."""
    is_path = isinstance(option.type, click.Path)
    name, separator, path = value.partition("=") if option.name in _PAIRS_WITH_PATH else ("", "", "")
    folder = Path(config.path).parent
    if is_path:
        full = text = str(folder / value)
    elif separator and path not in ("", "-"):
        full = str(folder / path)
        text = f"{name}={full}"
    elif option.name == "log":
        full = text = value
    else:
        return value
    if config.is_found and not _is_below(full, folder):
        if is_output(option):
            hint = f"--config {config.path} allows it"
            raise config.fail(keys, "a file that nobody named writes nothing outside its own directory", hint)
        config.outside.add(text)
    return text


def _is_below(path: str | Path, folder: Path) -> bool:
    try:
        return Path(path).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        return False


def tell_outside(option: str, path: Path) -> None:
    """Say on stderr when an option that a found file has set leads to a path outside the directory of that file."""
    context = click.get_current_context(silent=True)
    config = None if context is None else context.meta.get(META_KEY)
    if config is None or context is None or not config.is_found or _is_below(path, Path(config.path).parent):
        return
    if context.get_parameter_source(option) is ParameterSource.DEFAULT_MAP:
        _tell(config, str(path))


def _tell(config: ConfigFile, text: str) -> None:
    click.echo(f"note: {config.path} makes this read {text!r}, outside its directory", err=True)


def is_output(option: click.Parameter) -> bool:
    """Whether a parameter says where to write."""
    return isinstance(option.type, OutputPath) or option.name == "reports"


def prepare_command(command: click.Command, prefix: str) -> None:
    """Give every option its environment variable, ``<PREFIX>_<LONG_OPTION>``, and tell what a found file reads."""
    for long, option in options_of(command).items():
        if option.envvar is None:
            option.envvar = f"{prefix}_{long}".upper().replace("-", "_")
    if isinstance(command, click.Group):
        for name, below in commands_of(command).items():
            prepare_command(below, f"{prefix}_{name}")
    elif command.callback is not None:
        command.callback = _telling(command.callback)


def _telling(callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def told(*args: Any, **values: Any) -> Any:
        context = click.get_current_context()
        config = context.meta.get(META_KEY)
        if config is not None and config.outside:
            _tell_all(config, context)
        return callback(*args, **values)

    return told


def _tell_all(config: ConfigFile, context: click.Context) -> None:
    for name, value in context.params.items():
        if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
            items = value if isinstance(value, tuple) else (value,)
            for text in sorted({item for item in items if isinstance(item, str)} & config.outside):
                _tell(config, text)
