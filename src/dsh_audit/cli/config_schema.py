"""The JSON Schema of configuration files, made from the options themselves.

``python -m dsh_audit.cli.config_schema > schemas/config.schema.json`` after an option has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from dsh_audit.cli.config import commands_of, options_of
from dsh_audit.report.json import render_json


def build_schema(group: click.Group) -> dict[str, Any]:
    """The schema of dsh-audit.toml, which is also that of ``[tool.dsh-audit]``."""
    shared: dict[str, list[dict[str, Any]]] = {}
    for key, schema in _every_option(group):
        known = shared.setdefault(key, [])
        if schema not in known:
            known.append(schema)
    own = {key: _option(option) for key, option in options_of(group).items()}
    tops = {key: known[0] if len(known) == 1 else {"anyOf": known} for key, known in sorted(shared.items())}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "dsh-audit/config/1",
        "title": "dsh-audit.toml, or [tool.dsh-audit] in pyproject.toml: defaults of options by their long names",
        **_table(_joined({**own, **tops}, _commands(group))),
    }


def _joined(options: dict[str, Any], commands: dict[str, Any]) -> dict[str, Any]:
    """A name that is both an option and a command takes either."""
    both = {name: {"anyOf": [options[name], commands[name]]} for name in options.keys() & commands.keys()}
    return {**options, **commands, **both}


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _commands(group: click.Group) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in commands_of(group).items():
        below = _commands(command) if isinstance(command, click.Group) else {}
        properties = {**{key: _option(option) for key, option in options_of(command).items()}, **below}
        if properties:
            found[name] = _table(properties)
    return found


def _every_option(group: click.Group) -> Iterator[tuple[str, dict[str, Any]]]:
    for command in commands_of(group).values():
        if isinstance(command, click.Group):
            yield from _every_option(command)
        else:
            yield from ((key, _option(option)) for key, option in options_of(command).items())


def _option(option: click.Option) -> dict[str, Any]:
    value = _value(option)
    if option.multiple:
        value = {"anyOf": [value, {"type": "array", "items": value}]}
    return {"description": option.help, **value} if option.help else value


def _value(option: click.Option) -> dict[str, Any]:
    kind = option.type
    if option.is_flag:
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"enum": list(kind.choices)}
    if isinstance(kind, click.IntRange):
        limits = {"minimum": kind.min, "maximum": kind.max}
        return {"type": "integer", **{name: limit for name, limit in limits.items() if limit is not None}}
    if isinstance(kind, click.types.IntParamType):
        return {"type": "integer"}
    return {"type": "number"} if isinstance(kind, click.types.FloatParamType) else {"type": "string"}


if __name__ == "__main__":
    from dsh_audit.cli.main import cli

    click.echo(render_json(build_schema(cli)), nl=False)
