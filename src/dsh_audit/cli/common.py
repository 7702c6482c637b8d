"""Options, output and progress shared by all commands."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from dsh_audit.cli.config import META_KEY
from dsh_audit.deployment import Deployment, parse_deployment
from dsh_audit.errors import AuditError, LogError, UsageError
from dsh_audit.finding import Finding, Where
from dsh_audit.log.generations import SessionHistory, build_history
from dsh_audit.log.locate import SessionFiles, parse_generation, read_sessions, require_one
from dsh_audit.log.session_log import SessionLog, open_log
from dsh_audit.report.json import render_json
from dsh_audit.rules import log as rules
from dsh_audit.wire.pi.catalogue import read_catalog

_INPUT_SUFFIXES = (".body", ".meta.json", ".har", ".zstd", ".zip", ".golden.json", ".golden.json.new")
"""Files that no report is written over, wherever they lie."""

_MAX_FILE_BYTES = 64_000_000
"""No deployment, price or text file is larger; a device may have no end."""

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


OUTPUT_OPTION = click.option(
    "-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write here, not to stdout."
)


_CATALOG = "dsh_audit.catalog"


def _keep_catalog(ctx: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    ctx.meta[_CATALOG] = value
    return value


def catalog_directory() -> Path | None:
    """What ``--catalog`` names."""
    context = click.get_current_context(silent=True)
    named = None if context is None else context.meta.get(_CATALOG)
    return None if named is None else Path(named)


def log_options(command: F) -> F:
    """``--session``, ``--generation``, ``--through``."""
    for option in (
        click.option("--through", type=click.IntRange(min=0), metavar="SEQ", help="Read events up to this seq only."),
        click.option(
            "--generation", type=click.IntRange(min=0), metavar="N", help="Format version to read, if several exist."
        ),
        click.option("--session", metavar="ID", help="Session id, or a unique prefix, inside a home or export."),
    ):
        command = option(command)
    return command


def deployment_options(command: F) -> F:
    """``--deployment``, ``--constant``, ``--catalog``."""
    for option in (
        click.option(
            "--catalog",
            type=click.Path(file_okay=False),
            metavar="DIR",
            expose_value=False,
            callback=_keep_catalog,
            help="Installed pi-ai package, or a directory with it in node_modules, to read its model list from.",
        ),
        click.option(
            "--constant",
            "constants",
            multiple=True,
            metavar="NAME=FILE",
            help="Exact text of a long fixed text of the harness, e.g. compaction-instruction=FILE.",
        ),
        click.option(
            "--deployment",
            "deployment_file",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="TOML or JSON file with what the log cannot know (schemas/deployment.schema.json).",
        ),
    ):
        command = option(command)
    return command


def output_options(command: F) -> F:
    """``--format``, ``-o``."""
    for option in (
        OUTPUT_OPTION,
        click.option(
            "--format", "output_format", type=click.Choice(["text", "json"]), default="text", show_default=True
        ),
    ):
        command = option(command)
    return command


def read_schema(name: str) -> dict[str, Any]:
    """A JSON Schema of this project by file name without ``.schema.json``."""
    packaged = resources.files("dsh_audit") / "schemas" / f"{name}.schema.json"
    source = packaged if packaged.is_file() else Path(__file__).parents[3] / "schemas" / f"{name}.schema.json"
    if not source.is_file():
        raise UsageError(f"there is no JSON Schema {name}.schema.json")
    data = source.read_bytes()
    schema: dict[str, Any] = orjson.loads(data)
    return schema


def read_binary_file(path: str, what: str = "") -> bytes:
    """A file that the user named.

    Args:
        what: it is, for the message.

    Raises:
        UsageError: it cannot be read, or is larger than any such file.
    """
    named = f"{what} {path}" if what else path
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{named}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{named}: cannot be read: no file has such a name") from None
    if len(data) > _MAX_FILE_BYTES:
        raise UsageError(f"{named}: larger than {_MAX_FILE_BYTES} bytes")
    return data


def read_text_file(path: str, what: str) -> str:
    """A UTF-8 text file that the user named."""
    try:
        return read_binary_file(path, what).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{what} {path}: not UTF-8 text") from None


def read_deployment(deployment_file: str | None, constants: Iterable[str]) -> Deployment:
    """The deployment that ``--deployment`` and ``--constant`` describe."""
    texts: dict[str, str] = {}
    for item in constants:
        name, separator, path = item.partition("=")
        if not separator or not name or not path:
            raise UsageError(f"--constant {item}: expected NAME=FILE")
        texts[name] = read_text_file(path, "constant")
    if deployment_file is None:
        return Deployment({}, texts)
    data = read_binary_file(deployment_file)
    folder = Path(deployment_file).parent
    deployment = parse_deployment(
        data,
        name=deployment_file,
        schema=read_schema("deployment"),
        constants=texts,
        read_constant=lambda path: read_text_file(str(folder / path), "constant"),
    )
    named = deployment.look_up("pi_ai", "catalog")
    directory = catalog_directory() or (folder / named if isinstance(named, str) else None)
    return deployment if directory is None else replace(deployment, catalog=_read_catalogues(deployment, directory))


def _read_catalogues(deployment: Deployment, directory: Path) -> dict[str, Any]:
    """The catalogue of each provider that the deployment names."""
    found = {name: read_catalog(directory, name) for name in deployment.look_up("providers") or {}}
    return {name: catalogue for name, catalogue in found.items() if catalogue is not None}


def read_history(log: SessionLog, files: SessionFiles) -> SessionHistory:
    """The log with those older generations beside it that can be read."""
    older: list[SessionLog] = []
    for source in files.predecessors(log.source):
        with suppress(LogError):
            older.append(open_log(source))
    return build_history(log, older)


def open_generation(files: SessionFiles, generation: int | None) -> SessionLog:
    """The current log of a session or the generation asked for.

    Raises:
        LogError: it cannot be read; the hint names the older generations that lie beside it.
    """
    source = files.choose(generation)
    try:
        return open_log(source)
    except LogError as error:
        older = [str(parse_generation(other.file_name)) for other in files.predecessors(source)]
        if not older:
            raise
        hint = f"older generations are here: --generation {' or '.join(older)}"
        raise LogError(error.message, hint=f"{error.hint}; {hint}" if error.hint else hint) from None


def open_one(named: str, session: str | None, generation: int | None) -> tuple[SessionLog, SessionFiles, list[Finding]]:
    """The only log that an argument names."""
    files = require_one(read_sessions(named, session=session), named)
    log = open_generation(files, generation)
    return log, files, [*files.findings, *name_findings(log)]


def open_many(
    names: Iterable[str], session: str | None, generation: int | None
) -> tuple[list[tuple[SessionLog, SessionFiles]], list[Finding]]:
    """Every log that the arguments name; one that cannot be read becomes a finding when there are others.

    Raises:
        LogError: nothing at all could be read.
    """
    found = [files for named in names for files in read_sessions(named, session=session)]
    logs: list[tuple[SessionLog, SessionFiles]] = []
    findings: list[Finding] = []
    for files in found:
        findings += files.findings
        try:
            log = open_generation(files, generation)
        except LogError as error:
            if len(found) == 1:
                raise
            findings.append(unreadable(files, error))
            continue
        findings += name_findings(log)
        logs.append((log, files))
    if not logs:
        raise LogError(f"none of {len(found)} logs could be read", hint=findings[-1].message)
    return logs, findings


def unreadable(files: SessionFiles, error: AuditError) -> Finding:
    """The error of one log among several, as a finding."""
    message = error.message.removeprefix(f"{files.label}/").removeprefix(f"{files.label}: ")
    return Finding(rules.UNREADABLE, message, Where(source=files.label))


def name_findings(log: SessionLog) -> list[Finding]:
    """Whether the file name and the session header agree on the format version."""
    named = parse_generation(log.source.file_name)
    if named is None or named == log.version or not log.session_header.raw:
        return []
    message = f"{log.source.file_name} holds format {log.version}"
    return [Finding(rules.NAME_MISMATCH, message, log.where())]


def write_output(text: str | bytes, output: str | None) -> None:
    """Print a report, or write it to the file that ``-o`` names."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    if output is not None:
        guard_output(output)
        plain = data if isinstance(text, bytes) else click.unstyle(text).encode("utf-8", "backslashreplace")
        try:
            Path(output).write_bytes(plain)
        except OSError as error:
            raise UsageError(f"{output}: cannot be written: {error.strerror}") from None
        return
    if isinstance(text, str) and not wants_colour(sys.stdout):
        data = click.unstyle(text).encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def guard_output(output: str) -> None:
    """Refuse to overwrite anything that may be a log or a capture: audits are read-only.

    Raises:
        UsageError: the file exists and looks like an input, or has a second name that may be one.
    """
    path = Path(output)
    try:
        status = path.stat()
    except (OSError, ValueError):
        return  # nothing there, or nothing that can be written: opening it will say so
    is_input = parse_generation(path.name) is not None or path.name.endswith(_INPUT_SUFFIXES)
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise UsageError(f"{output}: a file with several names (hard links) is not overwritten")
    if is_input or path.resolve() in _inputs():
        hint = "choose another file; inputs are never changed"
        raise UsageError(f"{output}: this would overwrite an input", hint=hint)


def _inputs() -> set[Path]:
    """The configuration file and whatever this command line names, also as NAME=FILE; output options aside."""
    context = click.get_current_context(silent=True)
    if context is None:
        return set()
    config = context.meta.get(META_KEY)
    named = set() if config is None else {Path(config).resolve()}
    for parameter, value in context.params.items():
        if parameter not in ("output", "reports"):
            values = value if isinstance(value, tuple) else (value,)
            texts = [str(item) for item in values if isinstance(item, (str, os.PathLike)) and str(item)]
            pairs = [item.partition("=")[2] for item in texts if "=" in item]
            named |= {Path(item).resolve() for item in (*texts, *filter(None, pairs))}
    return named


def wants_colour(stream: Any) -> bool:
    """Colour on a terminal only; ``--color`` wins, then NO_COLOR (non-empty), FORCE_COLOR. Source: no-color.org."""
    context = click.get_current_context(silent=True)
    choice = context.find_root().params.get("color") if context is not None else None
    if choice in ("always", "never"):
        return bool(choice == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def write_report(
    output_format: str, output: str | None, *, as_json: Callable[[], Any], as_text: Callable[[], str]
) -> None:
    """Print one result in the format asked for."""
    write_output(render_json(as_json()) if output_format == "json" else as_text(), output)


def with_progress(items: Iterable[T], label: str, length: int | None = None) -> Iterator[T]:
    """The items, with a progress line on stderr when it is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield from items
        return
    with click.progressbar(items, length=length, label=label, file=sys.stderr) as bar:
        yield from bar
