"""Reading what a command line names, and progress."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import orjson

from dsh_audit.cli.config import tell_outside
from dsh_audit.cli.outputs import note_input, write_output
from dsh_audit.deployment import Deployment, parse_deployment
from dsh_audit.errors import AuditError, LogError, UsageError
from dsh_audit.finding import Finding, Where
from dsh_audit.log.generations import SessionHistory, build_history
from dsh_audit.log.locate import (
    SessionFiles,
    default_home,
    find_home,
    is_folder,
    parse_generation,
    read_sessions,
    require_one,
)
from dsh_audit.log.session_log import SessionLog, open_log
from dsh_audit.report.json import render_json
from dsh_audit.rules import log as rules

if TYPE_CHECKING:
    from dsh_audit.replay.inspection import Inspection

_PACKAGE = Path(__file__).parents[1]

_MAX_FILE_BYTES = 64_000_000
"""No deployment, price or text file is larger; a device may have no end."""

if TYPE_CHECKING:
    from dsh_audit.attachments.store import AttachmentStore

T = TypeVar("T")


def read_schema(name: str) -> dict[str, Any]:
    """A JSON Schema of this project by file name without ``.schema.json``."""
    packaged = _PACKAGE / "schemas" / f"{name}.schema.json"
    source = packaged if packaged.is_file() else _PACKAGE.parents[1] / "schemas" / packaged.name
    if not source.is_file():
        raise UsageError(f"there is no JSON Schema {name}.schema.json")
    schema: dict[str, Any] = orjson.loads(source.read_bytes())
    return schema


def read_data(name: str) -> bytes:
    """A data file of this package."""
    return (_PACKAGE / "data" / name).read_bytes()


def open_input(path: str) -> BinaryIO:
    """A file to read; what has no end or waits for another program is not opened, a pipe of the shell is.

    Raises:
        OSError: it cannot be opened.
        ValueError: no file has such a name.
        UsageError: it is a directory, a device, a socket or a named pipe.
    """
    mode = Path(path).stat().st_mode
    is_shell_pipe = stat.S_ISFIFO(mode) and path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/stdin"))
    if not stat.S_ISREG(mode) and not is_shell_pipe:
        raise UsageError(f"{path}: cannot be read: not a regular file")
    return Path(path).open("rb")


def read_binary_file(path: str, what: str = "") -> bytes:
    """A file that the user named.

    Args:
        what: it is, for the message.

    Raises:
        UsageError: it cannot be read, or is larger than any such file.
    """
    named = f"{what} {path}" if what else path
    note_input(Path(path))
    try:
        with open_input(path) as stream:
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


def read_deployment(
    deployment_file: str | None, constants: Iterable[str] = (), catalog: str | Path | None = None
) -> Deployment:
    """The deployment that ``--deployment``, ``--constant`` and ``--catalog`` describe."""
    texts: dict[str, str] = {}
    for item in constants:
        name, separator, path = item.partition("=")
        if not separator or not name or not path:
            raise UsageError(f"--constant {item}: expected NAME=FILE")
        texts[name] = read_text_file(path, "constant")
    if deployment_file is None:
        return _checked(Deployment({}, texts))
    data = read_binary_file(deployment_file)
    folder = Path(deployment_file).parent
    deployment = parse_deployment(
        data,
        name=deployment_file,
        schema=read_schema("deployment"),
        constants=texts,
        read_constant=lambda path: _read_constant(folder / path),
    )
    _checked(deployment)
    named = deployment.look_up("pi_ai", "catalog")
    directory = catalog or (folder / named if isinstance(named, str) else None)
    if directory is not None and catalog is None:
        tell_outside("deployment_file", Path(directory))
    return (
        deployment if directory is None else replace(deployment, catalog=_read_catalogues(deployment, Path(directory)))
    )


def _checked(deployment: Deployment) -> Deployment:
    """A deployment whose fixed texts are those of the harness."""
    if deployment.constants:
        from dsh_audit.wire.constants import check_constants

        check_constants(deployment.constants)
    return deployment


def _read_constant(path: Path) -> str:
    tell_outside("deployment_file", path)
    return read_text_file(str(path), "constant")


def _read_catalogues(deployment: Deployment, directory: Path) -> dict[str, Any]:
    """The catalogue of each provider that the deployment names."""
    from dsh_audit.wire.pi.catalogue import read_catalog

    found = {name: read_catalog(directory, name) for name in deployment.look_up("providers") or {}}
    return {name: catalogue for name, catalogue in found.items() if catalogue is not None}


def read_history(log: SessionLog, files: SessionFiles) -> SessionHistory:
    """The log with those older generations beside it that can be read."""
    older: list[SessionLog] = []
    for source in files.predecessors(log.source):
        with suppress(LogError):
            older.append(open_log(source))
    history = build_history(log, older)
    home = _home_of(files.label)
    return history if home is None else replace(history, attachments=read_attachments((home,)))


def _home_of(label: str) -> Path | None:
    """The home that a session lies in; sessions named by id lie in the default one."""
    path = Path(label)
    try:
        return find_home(path if path.exists() else default_home() / label)
    except (OSError, ValueError):
        return None


def with_attachments(deployment: Deployment, files: SessionFiles) -> Deployment:
    """The deployment with the attachments of the home that a session lies in, unless it names some."""
    home = None if deployment.attachments is not None else _home_of(files.label)
    return deployment if home is None else replace(deployment, attachments=read_attachments((home,)))


def read_attachments(homes: Iterable[str | Path], objects: Iterable[str | Path] = ()) -> AttachmentStore:
    """The attachments of homes and folders that the user named.

    Raises:
        UsageError: there is nothing of the kind.
    """
    from dsh_audit.attachments.store import AttachmentStore

    places, folders = tuple(map(Path, homes)), tuple(map(Path, objects))
    for home in places:
        if not is_folder(home / "attachments"):
            raise UsageError(f"{home}: no harness home with attachments", hint="--objects names a folder of objects")
    for folder in folders:
        if not is_folder(folder):
            raise UsageError(f"{folder}: no folder of objects")
    return AttachmentStore(places, folders)


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
                raise _with_place(error, names) from None
            findings.append(unreadable(files, error))
            continue
        findings += name_findings(log)
        logs.append((log, files))
    if not logs:
        raise LogError(f"none of {len(found)} logs could be read", hint=findings[-1].message)
    return logs, findings


def _with_place(error: LogError, names: Iterable[str]) -> LogError:
    """The error, and that the file lies in the wrong folder, where it names a session."""
    from dsh_audit.checks.lint.placement import check_marked
    from dsh_audit.log.strays import find_strays

    places = [finding.message for finding in check_marked(find_strays(names))]
    hints = [*([error.hint] if error.hint else []), *places]
    return LogError(error.message, hint="; ".join(hints) or None)


def inspect_all(
    names: Iterable[str],
    opened: Sequence[tuple[SessionLog, SessionFiles]],
    inspect: Callable[[SessionLog], Inspection],
    label: str,
) -> tuple[list[Inspection], list[Finding]]:
    """Every log inspected, with what its place and the sessions beside it show; and what is about no log."""
    from dsh_audit.checks.lint.placement import check_placement
    from dsh_audit.log.strays import find_strays, is_in_home
    from dsh_audit.replay.inspection import relate

    inspections = relate([inspect(log) for log, _files in with_progress(opened, label, len(opened))])
    by_log: dict[str, list[Finding]] = {one.log.source.label: [] for one in inspections}
    loose: list[Finding] = []
    for finding in check_placement(inspections, find_strays(names), is_in_home):
        by_log.get(str(finding.details.get("log", finding.where.source)), loose).append(finding)
    return [one.with_findings(by_log[one.log.source.label]) for one in inspections], loose


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
    import click

    with click.progressbar(items, length=length, label=label, file=sys.stderr) as bar:
        yield from bar
