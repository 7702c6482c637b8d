"""The one guard of everything that is written: audits are read-only, whatever an output is called or linked to.

A place is judged after all links are resolved, a file by device and inode. Refused are inputs of this run, files that
look like inputs, files with a second name, and whatever lies in a session directory, in a home's sessions, attachments
or cache, or in a capture bundle. A regular file is replaced in one step; devices and pipes are written as they are.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import click

from dsh_audit.cli.config import META_KEY, is_output
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.log.locate import decode_segment, default_home, parse_generation

_INPUT_SUFFIXES = (".body", ".meta.json", ".har", ".zstd", ".zip", ".golden.json", ".golden.json.new")
"""Files that no report is written over, wherever they lie."""

_HOME_FOLDERS = ("sessions", "attachments", "cache")
_READ = "dsh_audit.read"
_HINT = "choose another file; inputs are never changed"


def note_input(path: Path) -> None:
    """Remember a file that was read although no option names it, so that no output replaces it."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.setdefault(_READ, set()).add(path)


def named_inputs() -> set[Path]:
    """Whatever this command line names and has read, also as NAME=FILE; output options aside."""
    context = click.get_current_context(silent=True)
    if context is None:
        return set()
    found: set[Path] = set(context.meta.get(_READ, ()))
    if META_KEY in context.meta:
        found.add(Path(context.meta[META_KEY].path))
    outputs = {option.name for option in context.command.params if is_output(option)}
    for name, value in context.params.items():
        if name not in outputs:
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, (str, os.PathLike)) and (text := os.fspath(item)):
                    found |= {Path(text), Path(text.partition("=")[2] or text)}
    return found


def guard_output(output: str | Path, inputs: Iterable[Path] | None = None) -> Path:
    """Where an output really goes, which need not exist.

    Args:
        inputs: what this run reads; default: what the command line names.

    Raises:
        UsageError: it must not be written.
    """
    path = Path(output)
    target, folders = guard_place(path, named_inputs() if inputs is None else inputs, is_own=False)
    if _looks_like_input(target) and not target.exists() and not folders.isdisjoint(target.parents):
        raise UsageError(f"{path}: the next run would read this as an input", hint="choose another name")
    return target


def _looks_like_input(path: Path) -> bool:
    return parse_generation(path.name) is not None or path.name.endswith(_INPUT_SUFFIXES)


def guard_place(path: Path, inputs: Iterable[Path], *, is_own: bool = True) -> tuple[Path, set[Path]]:
    """The target behind all links, and the input folders, resolved.

    Args:
        is_own: the file is of this program's own kind, so that its name may be that of an input.

    Raises:
        UsageError: the target is an input, has a second name, or lies where only the harness or a capture writes.
    """
    try:
        target = path.resolve()
        status = target.stat()
    except FileNotFoundError:
        status = None
    except (OSError, ValueError, RuntimeError) as error:
        raise _unwritable(path, error) from None
    resolved = {item for one in inputs if (item := _resolved(one)) is not None}
    if status is not None and stat.S_ISREG(status.st_mode):
        if (not is_own and _looks_like_input(target)) or any(_is_same(item, status) for item in resolved):
            raise UsageError(f"{path}: this would overwrite an input", hint=_HINT)
        if status.st_nlink > 1:
            raise UsageError(f"{path}: a file with several names (hard links) is not overwritten")
    folders = {item for item in resolved if item.is_dir()}
    for folder in target.parents:
        if (what := _kept_for(folder, folder in folders)) is not None:
            raise UsageError(f"{path}: nothing is written inside {what}", hint="choose another directory")
    return target, folders


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "no file has such a name"


def _resolved(path: Path) -> Path | None:
    try:
        target = path.resolve()
        return target if target.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _is_same(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def _kept_for(folder: Path, is_named: bool) -> str | None:
    """What a folder is where nobody but its owner writes."""
    from dsh_audit.capture.bundle import is_bundle_file

    if folder.name in _HOME_FOLDERS and _is_home(folder.parent):
        return f"the {folder.name} of a harness home"
    names = _names(folder)
    logs = [name for name in names if parse_generation(name) is not None]
    if logs and (is_named or any(_session_id(folder / name) == decode_segment(folder.name) for name in logs)):
        return "a session directory"
    return "a capture bundle" if any(map(is_bundle_file, names)) else None


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _session_id(log: Path) -> str | None:
    from dsh_audit.log.locate import read_sessions
    from dsh_audit.log.session_log import open_log

    try:
        return open_log(read_sessions(str(log))[0].choose()).session_id
    except AuditError:
        return None


def _is_home(folder: Path) -> bool:
    """A folder that the harness keeps: the default one, or one that holds what only the harness makes."""
    if folder == _resolved(default_home()) or (folder / "attachments" / "v1").is_dir():
        return True
    with suppress(OSError):
        sessions = (
            entry for project in (folder / "sessions").iterdir() if project.is_dir() for entry in project.iterdir()
        )
        return any(parse_generation(name) is not None for session in sessions for name in _names(session))
    return False


def write_chunks(output: str | Path, target: Path, chunks: Iterable[bytes], *, append: bool = False) -> None:
    """Write an output that the guard has let pass; a regular file appears when all is there, its mode kept.

    Args:
        output: as the user named it.
        target: what the guard has said.
        append: add to a file that others write, too.

    Raises:
        UsageError: it cannot be written.
    """
    is_direct = append or _is_special(output, target)
    try:
        mode = None if is_direct or not target.exists() else stat.S_IMODE(target.stat().st_mode)
        path, stream = _opened(Path(output), append) if is_direct else _temporary(target)
    except (OSError, ValueError) as error:
        raise _unwritable(output, error) from None
    try:
        with stream:
            for chunk in chunks:
                _put(stream, chunk, output)
            _put(stream, None, output)
        if not is_direct:
            _rename(path, target, mode, output)
    except BaseException:
        if not is_direct:
            with suppress(OSError):
                path.unlink()
        raise


def _is_special(output: str | Path, target: Path) -> bool:
    """Devices, pipes and descriptors of this process: there is nothing to rename over."""
    if os.fspath(output).startswith(("/dev/", "/proc/")):
        return True
    return target.exists() and not target.is_file() and not target.is_dir()


def _opened(path: Path, append: bool) -> tuple[Path, BinaryIO]:
    return path, path.open("ab" if append else "wb")


def _temporary(target: Path) -> tuple[Path, BinaryIO]:
    """A new file beside the target, never through a link that someone else has put there."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    for number in count():
        path = target.with_name(f".{target.name[:100]}.{os.getpid()}-{number}.tmp")
        with suppress(FileExistsError):
            return path, path.open("xb")
    raise AssertionError


def _put(stream: BinaryIO, chunk: bytes | None, output: str | Path) -> None:
    try:
        stream.flush() if chunk is None else stream.write(chunk)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(output, error) from None


def _rename(path: Path, target: Path, mode: int | None, output: str | Path) -> None:
    try:
        if mode is not None:
            path.chmod(mode)
        path.replace(target)
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: str | Path, error: Exception) -> UsageError:
    return UsageError(f"{output}: cannot be written: {_reason(error)}")


class GuardedFiles:
    """Changes files of this program's own, such as golden cases.

    Args:
        inputs: what is read besides what the command line names.
    """

    def __init__(self, *inputs: str | Path | None) -> None:
        self._inputs = {*named_inputs(), *(Path(path) for path in inputs if path is not None)}

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file in one step, directories included; nothing where it holds this already."""
        target, _folders = guard_place(path, self._inputs)
        if target.is_file() and target.read_bytes() == data:
            return
        _make_folder(path, target)
        write_chunks(path, target, (data,))

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""
        if not path.is_symlink() and not path.exists():
            return
        guard_place(path, self._inputs)
        try:
            path.unlink()
        except OSError as error:
            raise UsageError(f"{path}: cannot be removed: {_reason(error)}") from None


def write_report_file(output: str, data: bytes, *, append: bool = False) -> None:
    """Write a report, and its directories where they lack."""
    target = guard_output(output)
    _make_folder(output, target)
    write_chunks(output, target, (data,), append=append)


def _make_folder(output: str | Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(output, error) from None


def write_output(text: str | bytes, output: str | None) -> None:
    """Print a report, or write it to the file that ``-o`` names; only a terminal sees colours."""
    if isinstance(text, str):
        plain = output is not None or not wants_colour(sys.stdout)
        text = (click.unstyle(text) if plain else text).encode("utf-8", "backslashreplace")
    if output is None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
        return
    write_chunks(output, guard_output(output), (text,))


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
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb" and shows_ansi(sys.platform, os.environ)


def shows_ansi(platform: str, environ: Mapping[str, str]) -> bool:
    """Whether a terminal takes ANSI codes for colours: on Windows only one that says so."""
    return platform != "win32" or any(name in environ for name in ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM"))
