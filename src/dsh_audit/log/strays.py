"""What lies beside the logs: copies under near-miss names, folders without a log, and where a session should lie.

This is a disk edge: it lists folders and opens files for reading. Source: spec session-log 2.1, 2.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsh_audit.log.container import MAGIC
from dsh_audit.log.damage import MARKS, read_identity
from dsh_audit.log.locate import file_source, is_folder, parse_generation
from dsh_audit.log.session_log import LogSource
from dsh_audit.record import dataclass

_NEAR_MISS = re.compile(r"session.*\.?jsonl", re.IGNORECASE)
_LOCK = "session.lock"
_MAX_DEPTH = 12
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Stray:
    """A folder with something in it that is no log.

    Args:
        folder: as the user named it.
        copies: files under near-miss names.
        has_log: a log lies there, too.
        has_lock: a lock lies there.
        marked: files that begin with a byte order mark, with the id and cwd that they name.
    """

    folder: str
    copies: tuple[LogSource, ...]
    has_log: bool
    has_lock: bool
    marked: tuple[tuple[str, str, str | None], ...] = ()


def find_strays(names: Iterable[str]) -> list[Stray]:
    """Every such folder below the arguments; that of a named file counts, ZIP files and ids do not."""
    found: dict[str, Stray] = {}
    for named in names:
        path = Path(named)
        if path.is_file() and parse_generation(path.name) is not None:
            named = named[: -len(path.name)].rstrip("/") or "."
            found.update((stray.folder, stray) for stray in _look(path.parent, named, 1))
        elif is_folder(path):
            found.update((stray.folder, stray) for stray in _look(path, named.rstrip("/") or named, _MAX_DEPTH))
    return [found[folder] for folder in sorted(found)]


def _look(path: Path, label: str, depth: int) -> Iterator[Stray]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        files = [entry.name for entry in entries if entry.is_file()]
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return
    logs = [name for name in files if parse_generation(name) is not None]
    near = [name for name in files if name not in logs and _NEAR_MISS.search(name)]
    marked = tuple(_marked(path, label, logs))
    if near or marked or (_LOCK in files and not logs):
        copies = tuple(file_source(path / name, f"{label}/{name}") for name in near)
        yield Stray(label, copies, bool(logs), _LOCK in files, marked)
    for name in folders if depth > 1 else ():
        yield from _look(path / name, f"{label}/{name}", depth - 1)


def _marked(path: Path, label: str, names: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    for name in names:
        try:
            with (path / name).open("rb") as stream:
                head = stream.read(_HEAD_BYTES)
        except OSError:
            continue
        is_marked = not head.startswith(MAGIC) and any(head.startswith(mark) for mark, _ in MARKS)
        if is_marked and (identity := read_identity(head)) is not None:
            yield f"{label}/{name}", *identity


def is_in_home(source: str, session_id: str) -> bool:
    """Whether a log of the session lies in the home of another log, under whatever project."""
    root = Path(source).parent.parent.parent
    try:
        return any(is_folder(project / session_segment(session_id)) for project in root.iterdir())
    except OSError:
        return False


def session_segment(session_id: str) -> str:
    """Name of the folder of a session."""
    if session_id in (".", ".."):
        return session_id.replace(".", "~002E")
    return "".join(unit if _is_kept(unit) else f"~{ord(unit):04X}" for unit in _code_units(session_id))


def project_key(cwd: str | None) -> str:
    """Name of the folder of the sessions that work in a directory."""
    if cwd is None:
        return "_no-cwd"
    joined = re.sub(r"[/\\:]+", "-", cwd)
    key = "".join(unit if _is_kept(unit) else f"~{ord(unit):04X}" for unit in _code_units(joined))
    return f"--{(key.lstrip('-') or 'root')[:251]}--"


def _is_kept(unit: str) -> bool:
    return unit.isascii() and (unit.isalnum() or unit in "._-")


def _code_units(text: str) -> Iterator[str]:
    data = text.encode("utf-16-le", "surrogatepass")
    return (chr(data[at] | data[at + 1] << 8) for at in range(0, len(data), 2))
