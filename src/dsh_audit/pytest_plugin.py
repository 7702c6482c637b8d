"""pytest plugin: the ``dsh_golden`` fixture and its options.

Only pytest and the standard library are imported at start-up; the rest when a test first asks for it. Under
pytest-xdist each worker hands what it used to the controller, which alone judges what is unused.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Iterable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dsh_audit.record import dataclass

if TYPE_CHECKING:
    from dsh_audit.golden.result import CaseResult

_SUFFIX = ".golden.json"
_NAME = "dsh-golden"
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]*[A-Za-z0-9_]")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option group."""
    group = parser.getgroup("dsh-golden", "golden cases of dsh-audit")
    group.addoption(
        "--dsh-golden-update", action="store_true", help="write golden cases instead of failing; refused under CI"
    )
    group.addoption("--dsh-golden-force", action="store_true", help="write golden cases although CI is set")
    group.addoption(
        "--dsh-golden-dir",
        metavar="DIR",
        help="directory of golden cases, relative to the root directory (default: golden beside the test file)",
    )
    group.addoption(
        "--dsh-golden-unused",
        choices=("fail", "warn", "ignore"),
        help="what golden cases mean that no test used (default: fail); told only after complete runs",
    )
    parser.addini("dsh_golden_dir", "see --dsh-golden-dir", default="")
    parser.addini("dsh_golden_unused", "see --dsh-golden-unused", default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to update under CI."""
    if config.getoption("--dsh-golden-update") and _is_ci() and not config.getoption("--dsh-golden-force"):
        raise pytest.UsageError("CI is set: golden cases are not updated; --dsh-golden-force does it all the same")
    config.pluginmanager.register(Session(config), _NAME)


@dataclass(eq=False)
class Session:
    """What one process has seen of golden cases; a plugin that watches the run.

    Attributes:
        used: golden files that a test asked for, by directory.
        counts: how many checks gave each state.
        doubts: why unused cases cannot be told; empty for a complete run.
        unused: golden files that no test used, relative to the root directory.
    """

    config: pytest.Config
    used: dict[str, set[str]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def unused_means(self) -> str:
        """``fail``, ``warn`` or ``ignore``."""
        return str(self.config.getoption("--dsh-golden-unused") or self.config.getini("dsh_golden_unused"))

    @property
    def may_write(self) -> bool:
        """Whether any file may be written."""
        return bool(self.config.getoption("--dsh-golden-force")) or not _is_ci()

    @property
    def update(self) -> bool:
        """Whether the golden files themselves are to be written."""
        return bool(self.config.getoption("--dsh-golden-update"))

    def own_folder(self) -> Path | None:
        """The configured directory."""
        named = self.config.getoption("--dsh-golden-dir") or self.config.getini("dsh_golden_dir")
        return self.config.rootpath / named if named else None

    def note(self, folder: Path, name: str, state: str) -> None:
        """One check."""
        self.used.setdefault(str(folder), set()).add(name)
        self.counts[state] = self.counts.get(state, 0) + 1

    def to_worker_output(self) -> dict[str, Any]:
        """What a worker tells the controller."""
        used = {folder: sorted(names) for folder, names in self.used.items()}
        return {"used": used, "counts": self.counts, "doubts": self.doubts}

    def add(self, output: dict[str, Any]) -> None:
        """What a worker has told."""
        for folder, names in output["used"].items():
            self.used.setdefault(folder, set()).update(names)
        for state, count in output["counts"].items():
            self.counts[state] = self.counts.get(state, 0) + count
        for why in output["doubts"]:
            self.doubt(why)

    def find_unused(self) -> list[str]:
        """Golden files that no test used, in directories whose tests have all run."""
        own = self.own_folder()
        folders = {Path(folder) for folder in self.used} | ({own} if own is not None else set())
        return sorted(
            os.path.relpath(path, self.config.rootpath)
            for folder in folders
            if folder.is_dir() and self._is_covered(folder)
            for path in folder.rglob(f"*{_SUFFIX}")
            if path.relative_to(folder).as_posix().removesuffix(_SUFFIX) not in self.used.get(str(folder), set())
        )

    def _is_covered(self, folder: Path) -> bool:
        """Whether the arguments of pytest take in all tests around a directory."""
        if any("::" in argument for argument in self.config.args):
            return False
        start = self.config.invocation_params.dir
        chosen = [(start / argument).resolve() for argument in self.config.args]
        wanted = [folder.parent.resolve()]
        if folder == self.own_folder():
            paths = self.config.getini("testpaths")
            wanted = [(self.config.rootpath / path).resolve() for path in paths] or wanted
        return all(any(path.is_relative_to(one) for one in chosen) for path in wanted)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Tests that do not run may use any case."""
        if items:
            self.doubt("some tests were deselected")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that is not imported may use any case."""
        if not report.passed:
            self.doubt("some tests were not collected")

    # The older form of a wrapper, which every pluggy knows.
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """A test that did not run to its end may have had more cases to check."""
        outcome = yield
        if "dsh_golden" in getattr(item, "fixturenames", ()) and not outcome.get_result().passed:
            self.doubt("some tests did not run to their end")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of pytest-xdist is done."""
        output = getattr(node, "workeroutput", {}).get("dsh_golden")
        if output is None:
            self.doubt("a worker did not finish")
        else:
            self.add(output)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge what is unused, in the process that sees the whole run."""
        is_whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if not is_whole or session.shouldstop or session.shouldfail or self.config.option.collectonly:
            self.doubt("the run was cut short")
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["dsh_golden"] = self.to_worker_output()
            return
        if self.doubts or self.unused_means == "ignore":
            return
        self.unused = self.find_unused()
        if self.unused and self.unused_means == "fail" and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Counts by state, and the cases that no test used."""
        if not self.counts and not self.unused:
            return
        parts = [f"{count} {state}" for state, count in sorted(self.counts.items())]
        if self.unused:
            parts.append(f"{len(self.unused)} unused")
        terminalreporter.write_line(f"golden cases: {', '.join(parts)}")
        is_bad = self.unused_means == "fail"
        for path in self.unused:
            terminalreporter.write_line(f"unused golden case: {path}", red=is_bad, yellow=not is_bad)

    def doubt(self, why: str) -> None:
        """A reason why unused cases cannot be told."""
        if why not in self.doubts:
            self.doubts.append(why)


class DshGolden:
    """The ``dsh_golden`` fixture: checks logs against golden cases.

    Args:
        session: of this process.
        request: of the test.
    """

    def __init__(self, session: Session, request: pytest.FixtureRequest) -> None:
        self._session = session
        self._test = _test_name(request.node.nodeid)
        self._count = 0
        self.folder = session.own_folder() or _path_of(request).parent / "golden"

    def check(
        self,
        log: str | Path,
        name: str | None = None,
        *,
        normalise: Iterable[str] | None = None,
        full: bool = False,
        deployment: str | Path | None = None,
        session: str | None = None,
    ) -> CaseResult:
        """Fail unless every request of the log is what the golden case pins.

        Args:
            log: a log, a session directory, or a tree with ``session``.
            name: of the case; default: the test's name, numbered from the second check on.
            normalise: what varies legitimately, as ``golden record --normalise`` takes it; None: as in the case.
            full: keep texts in a case that is recorded now, not only digests.
            deployment: a deployment file.

        Raises:
            GoldenMismatchError: changed, missing or new.
        """
        __tracebackhide__ = True
        from dsh_audit import testing
        from dsh_audit.golden.store import case_name

        self._count += 1
        if name is None:
            name = self._test if self._count == 1 else f"{self._test}-{self._count}"
        may_write = self._session.may_write
        check = testing.GoldenCheck(
            self.folder, may_write, self._session.update and may_write, self._session.config.rootpath
        )
        result = testing.check_golden(
            log, name, check, normalise=normalise, full=full, deployment=deployment, session=session
        )
        is_updated = check.update and result.is_written
        self._session.note(self.folder, case_name(name), "updated" if is_updated else result.state)
        if result.state != "matched" and not is_updated:
            raise testing.GoldenMismatchError(_explain(testing.describe_result(result), result, self._session))
        return result


def _explain(text: str, result: CaseResult, session: Session) -> str:
    lines = [f"golden case {text}"]
    if result.is_written:
        lines.append(f"written beside the golden file: {os.path.relpath(result.path, session.config.rootpath)}.new")
    if result.state in ("changed", "new") or "golden case for this log" in result.reason:
        lines.append("if this is meant: dsh-audit golden accept DIR, or pytest --dsh-golden-update")
    return "\n".join(lines)


@pytest.fixture
def dsh_golden(request: pytest.FixtureRequest) -> DshGolden:
    """Checks harness logs against golden cases: ``dsh_golden.check(log)``."""
    session: Any = request.config.pluginmanager.get_plugin(_NAME)
    return DshGolden(session, request)


def _path_of(request: pytest.FixtureRequest) -> Path:
    """The file of a test; before pytest 7 there was another attribute for it."""
    named: Any = getattr(request, "path", None) or request.node.fspath
    return Path(named)


def _test_name(nodeid: str) -> str:
    """``tests/test_a.py::TestB::test_c[x]`` as ``test_a/TestB/test_c-x``; ids never fold to one name."""
    path, _, rest = nodeid.partition("::")
    test, bracket, ident = rest.partition("[")
    ident = ident.removesuffix("]")
    if bracket and not _PLAIN_ID.fullmatch(ident):
        folded = re.sub(r"[^A-Za-z0-9._-]+", "-", ident).strip(".-")
        ident = f"{folded[:80]}-{hashlib.sha256(ident.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}".lstrip("-")
    return "/".join([Path(path).stem, *test.split("::")]) + (f"-{ident}" if bracket else "")


def _is_ci() -> bool:
    from dsh_audit.golden.store import is_ci

    return is_ci(os.environ)
