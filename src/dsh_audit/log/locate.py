"""What the user named → log files: a file, a session directory, a home, a ZIP export or a session id.

This is the disk edge of reading logs: it opens files for reading and nothing else. Source: spec session-log 2.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, Literal

from dsh_audit.errors import LogError, UsageError
from dsh_audit.finding import Finding, Where
from dsh_audit.log.container import MAGIC
from dsh_audit.log.session_log import LogSource
from dsh_audit.record import dataclass
from dsh_audit.rules import log as rules

_GENERATION = re.compile(r"session(?:\.v([1-9][0-9]*))?\.jsonl(\.zstd)?\Z", re.ASCII)
_MAX_DEPTH = 12


def parse_generation(file_name: str) -> int | None:
    """Format version that a file name claims; None for a name that is no generation.

    ``session.jsonl`` is version 0, ``session.vN.jsonl`` version N, each also with ``.zstd``; leading zeros and
    ``v0`` are not canonical and ignored.
    """
    match = _GENERATION.match(file_name)
    return None if match is None else int(match.group(1) or 0)


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """All generations of one session, newest first.

    Args:
        label: the session directory or file as the user named it.
        sources: one log each; the first is current.
        findings: about names and encodings.
    """

    label: str
    sources: tuple[LogSource, ...]
    findings: tuple[Finding, ...] = ()

    def choose(self, generation: int | None = None) -> LogSource:
        """The current generation, or the one asked for.

        Raises:
            LogError: no such generation lies here.
        """
        if generation is None:
            return self.sources[0]
        for source in self.sources:
            if parse_generation(source.file_name) == generation:
                return source
        present = ", ".join(str(parse_generation(source.file_name)) for source in self.sources)
        raise LogError(f"{self.label}: no generation {generation}", hint=f"generations here: {present}")

    def predecessors(self, source: LogSource) -> tuple[LogSource, ...]:
        """The generations older than ``source``, newest first."""
        version = parse_generation(source.file_name)
        if version is None:
            return ()
        return tuple(s for s in self.sources if (parse_generation(s.file_name) or 0) < version)


@dataclass(slots=True)
class _Group:
    sources: list[LogSource] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def default_home() -> Path:
    """``$DSH_HOME``, else ``~/.dsh``."""
    configured = os.environ.get("DSH_HOME")
    return Path(configured) if configured else Path.home() / ".dsh"


def find_home(path: Path) -> Path | None:
    """The home that a log lies in: the nearest folder above it with ``sessions`` on the way and attachments beside."""
    try:
        parents = (path.resolve() / "log").parents
        for parent in parents[:5]:
            if parent.name == "sessions" and (parent.parent / "attachments" / "v1").is_dir():
                return parent.parent
    except OSError:
        pass
    return None


def is_folder(path: Path) -> bool:
    """Whether there is a directory; False, too, where nobody may look."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_sessions(named: str, *, session: str | None = None, home: Path | None = None) -> list[SessionFiles]:
    """Every session that an argument names, in order of label.

    Args:
        named: a log file, a session directory, a home or any directory above sessions, a ZIP export, or (when no
            such path exists) a session id or a unique prefix of one in ``home``.
        session: keep only the session with this id or unique prefix (by directory name).
        home: where bare session ids are looked up; the default home when None.

    Raises:
        LogError: nothing there, nothing readable, or an ambiguous prefix.
    """
    path = Path(named)
    kind = _kind(path, named)
    if kind == "directory":
        found = _directory_sessions(path, named)
        missing = f"{named}: no session log below this directory"
    elif kind == "file":
        found = _zip_sessions(path, named) if _is_zip(path) else [_file_session(path, named)]
        missing = f"{named}: no session log in this ZIP"
    elif kind == "other":
        raise LogError(f"{named}: neither a file nor a directory")
    else:
        return [_session_by_id(named, home or default_home())]
    if not found:
        raise LogError(missing, hint="expected session.jsonl, session.jsonl.zstd or session.vN.jsonl[.zstd]")
    return [_only(found, session, named)] if session is not None else found


def _kind(path: Path, label: str) -> Literal["directory", "file", "other", "nothing"]:
    """What a path leads to; a path that no file system can hold leads to nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "nothing"
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            return "nothing"
        raise LogError(f"{label}: cannot be read: {error.strerror}") from None
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _session_by_id(named: str, home: Path) -> SessionFiles:
    root = home / "sessions"
    if "/" in named or not is_folder(root):
        hint = None if "/" in named else "nor is it a session id: there is no harness home; set DSH_HOME"
        raise LogError(f"{named}: no such file or directory", hint=hint)
    try:
        return _only(_directory_sessions(root, "sessions"), named, named)
    except LogError:
        hint = "it was looked for as a path, and as a session id in the default home"
        raise LogError(f"{named}: no such file, directory or unique session id", hint=hint) from None


def decode_segment(segment: str) -> str:
    """The session id behind a directory name: ``~XXXX`` stands for one UTF-16 code unit. Spec session-log 2.1."""
    text = re.sub(r"~([0-9A-F]{4})", lambda match: chr(int(match.group(1), 16)), segment)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _only(found: list[SessionFiles], wanted: str, named: str) -> SessionFiles:
    names = {files.label: decode_segment(PurePosixPath(files.label).name) for files in found}
    exact = [files for files in found if names[files.label] == wanted]
    matches = exact or [files for files in found if names[files.label].startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise LogError(f"{named}: no session {wanted!r}")
    some = ", ".join(sorted(names[files.label] for files in matches)[:5])
    raise LogError(f"{named}: {len(matches)} sessions start with {wanted!r}", hint=f"among them {some}")


def file_source(path: Path, label: str) -> LogSource:
    """One file under a label; raises LogError when it cannot be looked at."""

    def opened() -> BinaryIO:
        try:
            return path.open("rb")
        except OSError as error:
            raise LogError(f"{label}: cannot be read: {error.strerror}") from None

    try:
        size = path.stat().st_size
    except OSError as error:
        raise LogError(f"{label}: cannot be read: {error.strerror}") from None
    return LogSource(label, path.name, size, opened)


def _file_session(path: Path, named: str) -> SessionFiles:
    """The named file first, then the older generations beside it."""
    source = file_source(path, named)
    version = parse_generation(path.name)
    if version is None:
        return SessionFiles(named, (source,))
    parent = named[: -len(path.name)] if named.endswith(path.name) else ""
    older = [
        file_source(entry, f"{parent}{entry.name}")
        for entry in sorted(path.parent.iterdir())
        if entry.is_file() and entry.name != path.name
        if (other := parse_generation(entry.name)) is not None and other < version
    ]
    older.sort(key=lambda item: parse_generation(item.file_name) or 0, reverse=True)
    return SessionFiles(named, (source, *older))


def _directory_sessions(path: Path, named: str) -> list[SessionFiles]:
    groups: dict[str, _Group] = {}
    label = named.rstrip("/") or named
    for parent, found in _walk(path):
        group = f"{label}/{parent}" if parent else label
        if isinstance(found, OSError):
            groups[group] = _Group([_unreadable_source(group, found)])
        else:
            groups.setdefault(group, _Group()).sources.append(file_source(found, f"{group}/{found.name}"))
    return [_grouped(label, group.sources) for label, group in sorted(groups.items())]


def _walk(path: Path) -> Iterator[tuple[str, Path | OSError]]:
    """Generation files below a directory with their folder, in sorted order; links to directories are not followed.

    A folder that cannot be listed comes with the error in the place of a file.
    """
    pending = [(path, "", 0)]
    while pending:
        folder, name, depth = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            files = [entry for entry in entries if parse_generation(entry.name) is not None and entry.is_file()]
            folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            yield name, error
            continue
        yield from ((name, folder / entry.name) for entry in files)
        if depth < _MAX_DEPTH:
            pending.extend((folder / inner, f"{name}/{inner}" if name else inner, depth + 1) for inner in folders)


def _unreadable_source(label: str, error: OSError) -> LogSource:
    """Stands for the logs of a folder that cannot be listed: opening it says why."""

    def opened() -> BinaryIO:
        raise LogError(f"{label}: cannot be read: {error.strerror}")

    return LogSource(label, "", 0, opened)


def _is_zip(path: Path) -> bool:
    """Whether a file is an export; what begins as a log does is one, whatever follows."""
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError:
        return False
    if head.startswith(b"{") or head == MAGIC:
        return False
    from dsh_audit.log.zip_export import is_zip

    return is_zip(path)


def _zip_sessions(path: Path, named: str) -> list[SessionFiles]:
    """Logs inside a ZIP; member names are only labels, nothing is extracted."""
    from dsh_audit.log.zip_export import read_members

    groups: dict[str, _Group] = {}
    for name, size, opener in read_members(path, named):
        if not _is_log_name(name):
            continue
        parent = "/".join(part for part in name.parts[:-1] if part not in ("..", ".", "/"))
        group = f"{named}!{parent}" if parent else f"{named}!{name.name}"
        source = LogSource(f"{named}!{name}", name.name, size, opener)
        groups.setdefault(group, _Group()).sources.append(source)
        if ".." in name.parts or name.is_absolute() or PureWindowsPath(name).drive:
            finding = Finding(rules.UNSAFE_MEMBER, f"member {name}", Where(source=f"{named}!{name}"))
            groups[group].findings.append(finding)
    return [_grouped(label, group.sources, group.findings) for label, group in sorted(groups.items())]


def _is_log_name(name: PurePosixPath) -> bool:
    return parse_generation(name.name) is not None or name.name.endswith((".jsonl", ".jsonl.zstd"))


def _grouped(label: str, sources: Iterable[LogSource], findings: Iterable[Finding] = ()) -> SessionFiles:
    ordered = sorted(sources, key=lambda s: (-(parse_generation(s.file_name) or 0), s.file_name))
    kinds = {source.file_name.endswith(".zstd") for source in ordered}
    found = list(findings)
    if len(kinds) > 1:
        names = " and ".join(source.file_name for source in ordered[:2])
        found.append(Finding(rules.MIXED_ENCODINGS, f"both {names} are present", Where(label)))
    return SessionFiles(label, tuple(ordered), tuple(found))


def require_one(sessions: list[SessionFiles], named: str) -> SessionFiles:
    """The only session that an argument names.

    Raises:
        UsageError: it names several.
    """
    if len(sessions) == 1:
        return sessions[0]
    some = ", ".join(decode_segment(PurePosixPath(files.label).name) for files in sessions[:5])
    raise UsageError(f"{named}: {len(sessions)} sessions here; choose one with --session", hint=f"among them {some}")
