"""Golden cases against logs on disk: one case at a time, and many in parallel."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from itertools import takewhile
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any

from dsh_audit import __version__
from dsh_audit.cli import common
from dsh_audit.cli.options import DeploymentChoice
from dsh_audit.cli.outputs import GuardedFiles
from dsh_audit.deployment import Deployment
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.finding import Finding
from dsh_audit.golden.build import Recipe, Recorded, recipe_of, record_case, without_verdicts
from dsh_audit.golden.case import GoldenCase
from dsh_audit.golden.compare import compare_cases
from dsh_audit.golden.explain import explain_changes
from dsh_audit.golden.normalise import Normaliser
from dsh_audit.golden.result import CaseResult
from dsh_audit.golden.store import (
    CaseFile,
    case_file,
    case_name,
    is_ci,
    reject_case,
    relative_to_case,
    write_case,
)
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.locate import SessionFiles, decode_segment, read_sessions, require_one
from dsh_audit.log.session_log import open_log
from dsh_audit.record import dataclass
from dsh_audit.text.to_json import to_json

_SERIAL_CASES = 24
"""So few cases are checked faster here than in processes that must be started first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One case to check.

    Args:
        case: its files.
        log: the log or session to use instead of the remembered one.
        session: directory name of the session where ``log`` holds several.
        deployment: as on the command line; it wins over the remembered file.
        may_write: pending files may be written and removed.
        update: write the golden file itself, at once.
        recipe: how to record a case that does not exist yet.
        normalisers: to use instead of the declared ones; a difference counts as a change.
        root: a log outside this directory is not remembered; None remembers every log.
    """

    case: CaseFile
    log: str | None = None
    session: str | None = None
    deployment: DeploymentChoice = field(default_factory=DeploymentChoice)
    may_write: bool = False
    update: bool = False
    recipe: Recipe = field(default_factory=Recipe)
    normalisers: tuple[Normaliser, ...] | None = None
    root: Path | None = None


def version() -> str:
    """This release, as cases remember it."""
    return f"dsh-audit {__version__}"


def may_write(force: bool) -> bool:
    """Whether pending files may be written: not under CI unless forced."""
    return force or not is_ci(os.environ)


def require_writable(force: bool) -> None:
    """Refuse to change golden files under CI.

    Raises:
        UsageError: ``CI`` is set and nothing forces.
    """
    if not may_write(force):
        raise UsageError("CI is set: golden files are not written", hint="--force writes them all the same")


def read_log(named: str, session: str | None = None) -> tuple[SessionHistory, list[Finding]]:
    """The session that a path names; of several the one with this id."""
    found = read_sessions(named)
    if len(found) > 1 and session:
        found = read_sessions(named, session=session)
    files = require_one(found, named)
    log = open_log(files.choose())
    return common.read_history(log, files), [*files.findings, *common.name_findings(log)]


def check_case(task: Task) -> CaseResult:
    """Compare one case with its log, or record it where there is none yet.

    What cannot be read is the state ``missing`` with a reason, so that one bad case does not hide the others.
    """
    case = task.case
    try:
        if not case.is_recorded:
            return _new(task)
        return _check(task, case.read())
    except AuditError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return CaseResult(case.name, "missing", str(case.path), task.log, f"{error.message}{hint}")


def _new(task: Task) -> CaseResult:
    case = task.case
    if task.log is None:
        count = len(case.read_pending().requests)
        reason = f"{count} requests wait to be accepted"
        return CaseResult(case.name, "new", str(case.path), None, reason, requests=count)
    recorded = record(case, task.log, task.session, task.recipe, task.deployment)
    count = len(recorded.case.requests)
    result = CaseResult(
        case.name,
        "new",
        str(case.path),
        task.log,
        f"{count} requests wait to be accepted",
        requests=count,
        normalisers=recorded.case.normalisers,
        replaced=recorded.replaced,
    )
    if task.may_write:
        is_outside = task.root is not None and not Path(task.log).resolve().is_relative_to(task.root.resolve())
        content = replace(recorded.case, log=None) if is_outside else recorded.case
        _write(task, task.log, content)
        return replace(result, is_written=True)
    if case.is_pending:
        return result
    return replace(result, state="missing", reason="there is no golden case for this log, and none may be written")


def _files(task: Task, log: str) -> GuardedFiles:
    return GuardedFiles(log, task.deployment.deployment_file)


def _write(task: Task, log: str, content: GoldenCase) -> None:
    """Write what waits, or the golden file itself."""
    files = _files(task, log)
    write_case(task.case, content, files, pending=not task.update)
    if task.update:
        reject_case(task.case, files)


def _check(task: Task, golden: GoldenCase) -> CaseResult:
    case = task.case
    if task.log is None and golden.log is None:
        raise UsageError("the case does not remember its log", hint="name it with --log")
    named = task.log or str(case.resolve(golden.log or ""))
    deployment = _deployment(case, golden.deployment, task.deployment)
    history, findings = read_log(named, task.session or golden.session_id)
    recipe = recipe_of(golden, version())
    if task.normalisers is not None:
        recipe = replace(recipe, normalisers=task.normalisers)
    fresh = record_case(history, deployment, recipe, findings)
    changes = compare_cases(golden, fresh.case)
    if changes:
        changes = explain_changes(changes, fresh.rebuilt, history, deployment)
    if task.may_write:
        _write_outcome(task, named, fresh, [index for change in changes for index in change.requests], bool(changes))
    return CaseResult(
        name=case.name,
        state="changed" if changes else "matched",
        path=str(case.path),
        log=named,
        changes=tuple(changes),
        requests=len(fresh.case.requests),
        normalisers=fresh.case.normalisers,
        replaced=fresh.replaced,
        is_written=bool(changes) and task.may_write,
    )


def _write_outcome(task: Task, log: str, fresh: Recorded, changed: Sequence[int], is_changed: bool) -> None:
    """Leave what would be accepted; nothing where the case holds again."""
    if is_changed:
        _write(task, log, without_verdicts(fresh.case, changed))
    elif task.case.is_pending:
        reject_case(task.case, _files(task, log))


def record(
    case: CaseFile,
    named: str,
    session: str | None,
    recipe: Recipe,
    choice: DeploymentChoice,
) -> Recorded:
    """A fresh case of a log, with the paths it is to remember."""
    history, findings = read_log(named, session)
    named_file = choice.deployment_file
    remembered = None if named_file is None else relative_to_case(case, Path(named_file))
    full = replace(recipe, log=relative_to_case(case, Path(named)), deployment_path=remembered, recorded_by=version())
    return record_case(history, choice.read(), full, findings)


def _deployment(case: CaseFile, remembered: str | None, choice: DeploymentChoice) -> Deployment:
    if choice.deployment_file is None and remembered is not None:
        choice = replace(choice, deployment_file=str(case.resolve(remembered)))
    return choice.read()


def check_cases(tasks: Sequence[Task], jobs: int | None = None) -> list[CaseResult]:
    """Check many cases, in processes where that pays; the order of the tasks is kept."""
    jobs = limit_jobs(jobs or min(os.cpu_count() or 1, 1 + len(tasks) // _SERIAL_CASES), sys.platform)
    if jobs == 1 or len(tasks) < 2:
        return list(common.with_progress(map(check_case, tasks), "checking", len(tasks)))
    return list(common.with_progress(_in_parallel(tasks, min(jobs, len(tasks))), "checking", len(tasks)))


def limit_jobs(jobs: int, platform: str) -> int:
    """So many processes as a pool can wait for: 61 on Windows. Source: concurrent.futures."""
    return min(jobs, 61) if platform == "win32" else jobs


def _in_parallel(tasks: Sequence[Task], jobs: int) -> Iterator[CaseResult]:
    # Forking saves each process its imports, but is sound only while this one has a single thread.
    is_sound = sys.platform == "linux" and threading.active_count() == 1
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork" if is_sound else "spawn")) as pool:
        yield from pool.map(check_case, tasks, chunksize=max(1, len(tasks) // (jobs * 8)))


def tasks_for_logs(
    root: Path, cases: Sequence[CaseFile], named: str, session: str | None, base: Task
) -> tuple[list[Task], list[CaseFile]]:
    """Which case belongs to which session below ``named``; then the cases that none belongs to.

    A single case and a single session belong together whatever their ids; else the session id decides, then the name.
    Of several cases with one id the one is taken whose remembered path ends most alike.

    Args:
        root: where the case of a session that has none would lie.
        session: id of the only session to take.
    """
    found = [place_of(named, files) for files in read_sessions(named, session=session)]
    if len(found) == 1 and len(cases) == 1:
        return [replace(base, case=cases[0], log=found[0].named, session=found[0].directory)], []
    waiting = _by_session_id(cases)
    known = {case.name: case for case in cases}
    tasks: list[Task] = []
    for place in found:
        name = case_name(place.session_id)
        own = waiting.get(place.session_id)
        case = _take_nearest(own, place.named) if own else known.get(name) or case_file(root, name)
        tasks.append(replace(base, case=case, log=place.named, session=place.directory))
    used = {task.case.name for task in tasks}
    return tasks, [case for case in cases if case.name not in used]


def _by_session_id(cases: Iterable[CaseFile]) -> dict[str, list[tuple[CaseFile, str]]]:
    """Recorded cases with their remembered path by the session they pin; unreadable ones are left to their check."""
    found: dict[str, list[tuple[CaseFile, str]]] = {}
    for case in cases:
        with suppress(AuditError):
            content = case.read()
            found.setdefault(content.session_id, []).append((case, content.log or ""))
    return found


def _take_nearest(cases: list[tuple[CaseFile, str]], named: str) -> CaseFile:
    """Remove and return the case whose remembered path has most last parts in common with a path."""
    parts = PurePosixPath(Path(named).as_posix()).parts[::-1]

    def alike(remembered: str) -> int:
        pairs = zip(parts, PurePosixPath(remembered).parts[::-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    nearest = max(range(len(cases)), key=lambda at: (alike(cases[at][1]), -at))
    return cases.pop(nearest)[0]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """How a session can be named again.

    Args:
        named: a path that exists.
        directory: the session's directory name, where the path alone names several.
        session_id: as its log says.
    """

    named: str
    directory: str | None
    session_id: str


def place_of(named: str, files: SessionFiles) -> LogPlace:
    """The narrowest path that names one session: its directory, else what the user named."""
    segment = decode_segment(PurePosixPath(files.label).name)
    try:
        session_id = open_log(files.choose()).session_id
    except AuditError:
        session_id = segment
    if Path(files.label).exists():
        return LogPlace(files.label, None, session_id or segment)
    return LogPlace(named, segment, session_id or segment)


def list_cases(cases: Iterable[CaseFile]) -> list[dict[str, Any]]:
    """One row a case (schemas/golden-list.schema.json)."""
    return [_listed(case) for case in cases]


def _listed(case: CaseFile) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": case.name,
        "path": case.path.as_posix(),
        "recorded": case.is_recorded,
        "pending": case.is_pending,
        "log": None,
        "requests": None,
        "full": None,
        "normalisers": [],
        "error": None,
    }
    try:
        content = case.read() if case.is_recorded else case.read_pending()
    except AuditError as error:
        return {**row, "error": error.message}
    return {
        **row,
        "log": content.log,
        "requests": len(content.requests),
        "full": content.full,
        "normalisers": to_json(content.normalisers),
    }
