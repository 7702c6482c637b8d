"""Golden files on disk: finding, reading, promoting. The only module of the package that reads files.

A case ``NAME`` is ``NAME.golden.json``; what waits to be accepted lies beside it as ``NAME.golden.json.new``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from dsh_audit.errors import UsageError
from dsh_audit.golden.case import GoldenCase, GoldenError, parse_case, render_case
from dsh_audit.record import dataclass

SUFFIX = ".golden.json"
PENDING = ".new"


class FileWriter(Protocol):
    """What changes files; raises UsageError where one must not or cannot be changed."""

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file in one step, directories included."""

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One case on disk, recorded, pending or both.

    Args:
        name: path below the golden directory without suffix, with slashes.
        path: of the golden file, which need not exist.
    """

    name: str
    path: Path

    @property
    def pending(self) -> Path:
        """Where a changed or new case waits."""
        return self.path.with_name(self.path.name + PENDING)

    @property
    def is_recorded(self) -> bool:
        """Whether there is an accepted golden file."""
        return self.path.is_file()

    @property
    def is_pending(self) -> bool:
        """Whether something waits to be accepted."""
        return self.pending.is_file()

    def read(self) -> GoldenCase:
        """The accepted case.

        Raises:
            GoldenError: missing, unreadable or malformed.
        """
        return _read(self.path, self.name)

    def read_pending(self) -> GoldenCase:
        """The case that waits.

        Raises:
            GoldenError: as for ``read``.
        """
        return _read(self.pending, f"{self.name} (pending)")

    def resolve(self, relative: str) -> Path:
        """A path that the case remembers."""
        return Path(os.path.normpath(self.path.parent / PurePosixPath(relative)))


def _read(path: Path, name: str) -> GoldenCase:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GoldenError(f"{name}: cannot be read: {error.strerror}") from None
    return parse_case(data, name=name)


def is_ci(environ: Mapping[str, str]) -> bool:
    """Whether ``CI`` says that this is an automatic run, in which nothing is written."""
    return environ.get("CI", "").strip().lower() not in ("", "0", "false")


def find_cases(root: Path) -> list[CaseFile]:
    """Every case below a directory, or the one file, by name.

    Raises:
        UsageError: there is no such directory or golden file.
    """
    if root.name.endswith((SUFFIX, SUFFIX + PENDING)) and root.is_file():
        name = root.name.removesuffix(PENDING)
        return [CaseFile(name.removesuffix(SUFFIX), root.with_name(name))]
    if not root.is_dir():
        hint = "dsh-audit golden record LOG -o DIR makes one"
        raise UsageError(f"{root}: no such directory of golden cases", hint=hint)
    names = {
        path.relative_to(root).as_posix().removesuffix(PENDING).removesuffix(SUFFIX)
        for pattern in (f"*{SUFFIX}", f"*{SUFFIX}{PENDING}")
        for path in root.rglob(pattern)
        if path.is_file()
    }
    return [case_file(root, name) for name in sorted(names)]


def case_file(root: Path, name: str) -> CaseFile:
    """The files of a case by name, whether they exist or not."""
    return CaseFile(name, root / f"{name}{SUFFIX}")


def choose_cases(cases: Sequence[CaseFile], names: Sequence[str]) -> list[CaseFile]:
    """The named cases, all without names.

    Raises:
        UsageError: no case of that name.
    """
    known = {case.name: case for case in cases}
    missing = [name for name in names if name not in known]
    if missing:
        some = ", ".join(list(known)[:5]) or "none"
        raise UsageError(f"there is no golden case {missing[0]!r}", hint=f"here are: {some}")
    return [known[name] for name in dict.fromkeys(names)] if names else list(cases)


def case_name(text: str) -> str:
    """A session id as the name of a case: plain characters only, slashes kept."""
    parts = (re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip(".-") for part in text.split("/"))
    return "/".join(part for part in parts if part) or "session"


def relative_to_case(case: CaseFile, path: Path) -> str | None:
    """A path as the case remembers it; None where it lies on another drive."""
    try:
        return Path(os.path.relpath(path, case.path.parent)).as_posix()
    except ValueError:
        return None


def write_case(case: CaseFile, content: GoldenCase, files: FileWriter, *, pending: bool) -> None:
    """Write a golden file, or what waits beside it, in one step."""
    files.write(case.pending if pending else case.path, render_case(content))


def accept_case(case: CaseFile, files: FileWriter) -> None:
    """Make what waits the golden file."""
    files.write(case.path, render_case(case.read_pending()))
    files.remove(case.pending)


def reject_case(case: CaseFile, files: FileWriter) -> None:
    """Throw away what waits."""
    files.remove(case.pending)
