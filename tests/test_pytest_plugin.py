"""The pytest plugin, run on the example project as its users would run it; mostly inside this process, to be fast."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsh_audit import pytest_plugin
from dsh_audit.golden.store import case_name

# Imported here, so that the runs inside this process need not import them each.
from tests.golden_logs import EDITS, GOLDEN, TOOLS_LOG, Edit, add_tool, edited, nothing

pytest_plugins = ["pytester"]

EXAMPLE = GOLDEN / "example-project"
SOURCE = Path(__file__).parent.parent / "src"
OPTIONS = ("-p", "dsh_audit.pytest_plugin", "-p", "no:cacheprovider")
ONLY_GOLDEN = "tests/test_errands.py::test_the_model_sees_what_it_saw"


@dataclass
class Project:
    """A copy of the example project."""

    folder: Path
    pytester: pytest.Pytester
    monkeypatch: pytest.MonkeyPatch

    @property
    def log(self) -> Path:
        return self.folder / "logs" / "errands" / "session.jsonl"

    @property
    def golden(self) -> Path:
        return self.folder / "tests" / "golden" / "errands.golden.json"

    def edit(self, edit: Edit) -> None:
        edited(TOOLS_LOG, self.log, edit)

    def add_test(self, name: str, body: str) -> None:
        (self.folder / "tests" / f"test_{name}.py").write_text(f"from pathlib import Path\nimport pytest\n\n{body}\n")

    def listing(self) -> dict[str, bytes]:
        files = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and "cache" not in str(path))
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}

    def pytest(self, *arguments: str, ci: str = "", status: int = 0) -> str:
        """Run the project's own tests; its output."""
        self.monkeypatch.setenv("CI", ci)
        result = self.pytester.runpytest_inprocess(*OPTIONS, *arguments)
        text = str(result.stdout) + str(result.stderr)
        assert result.ret == status, text
        return text

    def pytest_process(self, *arguments: str, ci: str = "", status: int = 0) -> str:
        """The same in a process of its own."""
        environ = {**os.environ, "PYTHONPATH": str(SOURCE), "CI": ci}
        command = [sys.executable, "-m", "pytest", *OPTIONS, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return Project(pytester.path, pytester, monkeypatch)


def test_the_example_passes_and_keeps_no_prompt(project: Project) -> None:
    before = project.listing()
    assert "golden cases: 1 matched" in project.pytest_process(ci="1")
    assert project.listing() == before
    assert not [text for text in (b"village", b"Visit", b"house") if text in project.golden.read_bytes()]


@pytest.mark.parametrize("name", ["tool-added", "prompt-edited", "tools-reordered", "message-changed"])
def test_a_change_fails_with_its_reason_until_it_is_accepted(name: str, project: Project) -> None:
    edit, _cause, message, _pointer = EDITS[name]
    project.edit(edit)
    before = project.listing()
    text = project.pytest(ONLY_GOLDEN, ci="1", status=1)
    assert "GoldenMismatchError: golden case changed errands" in text
    assert message in text
    assert "requests 0–4" in text
    assert project.listing() == before
    assert "written beside" in project.pytest(ONLY_GOLDEN, status=1)
    assert project.listing().keys() - before.keys() == {"tests/golden/errands.golden.json.new"}
    assert "CI is set" in project.pytest("--dsh-golden-update", ci="1", status=4)
    assert "golden cases: 1 updated" in project.pytest(ONLY_GOLDEN, "--dsh-golden-update")
    assert project.listing().keys() == before.keys()
    project.pytest(ONLY_GOLDEN, ci="1")


def test_identical_and_prefix_helpers_fail_readably(project: Project) -> None:
    project.edit(EDITS["prompt-edited"][0])
    text = project.pytest("tests/test_errands.py", "-k", "sent", ci="1", status=1)
    assert "FAIL 5 captured requests" in text
    assert "test_nothing_sent_earlier_ever_changes" not in text


IDS = ["x", "a-b", "a b", "a/b", "a\\b", "a::b", "a-b-", "-", "", "é", "è", "a[b]", "a" * 80 + " ", "a" * 80 + "/"]
SECOND = """
LOG = Path(__file__).parent.parent / "logs" / "errands"

def test_by_name_of_the_test(dsh_golden):
    dsh_golden.check(LOG)
    dsh_golden.check(LOG, normalise=["uuids"])

@pytest.mark.parametrize("kind", ["a/b", "c d"])
def test_many(dsh_golden, kind):
    dsh_golden.check(LOG)
"""


def test_new_cases_wait_and_update_writes_them(project: Project) -> None:
    project.add_test("second", SECOND)
    before = project.listing()
    text = project.pytest("tests/test_second.py", ci="1", status=1)
    assert "missing test_second/test_by_name_of_the_test" in text
    assert project.listing() == before
    text = project.pytest("tests/test_second.py", status=1)
    assert "new test_second/test_by_name_of_the_test" in text
    project.pytest("tests/test_second.py", "--dsh-golden-update")
    names = {name.removeprefix("tests/golden/test_second/") for name in project.listing().keys() - before.keys()}
    assert names == {
        "test_by_name_of_the_test.golden.json",
        "test_by_name_of_the_test-2.golden.json",
        "test_many-a-b-c14cddc0.golden.json",
        "test_many-c-d-b561f19f.golden.json",
    }
    assert "golden cases: 5 matched" in project.pytest(ci="1")


def add_unused(project: Project) -> str:
    shutil.copy(project.golden, project.golden.with_name("old.golden.json"))
    return f"unused golden case: {Path('tests', 'golden', 'old.golden.json')}"


def test_unused_cases_are_told_only_after_complete_runs(project: Project) -> None:
    unused = add_unused(project)
    assert unused in project.pytest(ci="1", status=1)
    assert unused in project.pytest("tests", ci="1", status=1)
    assert unused in project.pytest("--dsh-golden-unused=warn", ci="1")
    assert "unused golden" not in project.pytest("--dsh-golden-unused=ignore", ci="1")
    for part in (("-k", "model"), ("-k", "sent"), (ONLY_GOLDEN,), ("tests/test_errands.py",), ("--collect-only",)):
        assert "unused golden" not in project.pytest(*part, ci="1")


def test_workers_of_xdist_see_together_what_is_used(project: Project) -> None:
    unused = add_unused(project)
    project.edit(add_tool)
    workers = ("-p", "xdist", "-n", "2")
    text = project.pytest_process(*workers, "-k", "model", ci="1", status=1)
    assert "tool added: weather" in text
    assert "unused golden" not in text
    project.edit(nothing)
    text = project.pytest_process(*workers, ci="1", status=1)
    assert "golden cases: 1 matched, 1 unused" in text
    assert unused in text


def test_unused_is_not_told_when_a_test_did_not_get_there(project: Project) -> None:
    project.add_test("skips", "def test_later(dsh_golden):\n    pytest.skip('not today')")
    add_unused(project)
    assert "unused golden" not in project.pytest(ci="1")


def test_the_configured_directory_is_judged_even_when_no_test_uses_it(project: Project) -> None:
    cases = project.folder / "cases"
    (project.folder / "tests" / "golden").rename(cases)
    text = project.pytest("--dsh-golden-dir", "cases", ci="1")
    assert "golden cases: 1 matched" in text
    (project.folder / "tests" / "test_errands.py").write_text("def test_nothing(): pass\n")
    assert "unused golden case: " in project.pytest("--dsh-golden-dir", "cases", ci="1", status=1)


def test_a_log_outside_the_project_is_not_remembered(project: Project, tmp_path: Path) -> None:
    outside = edited(TOOLS_LOG, tmp_path / "elsewhere" / "session.jsonl", nothing)
    project.add_test("outside", f"def test_it(dsh_golden):\n    dsh_golden.check({str(outside)!r})")
    project.pytest("tests/test_outside.py", "--dsh-golden-update")
    data = (project.folder / "tests" / "golden" / "test_outside" / "test_it.golden.json").read_bytes()
    assert b"elsewhere" not in data
    edited(TOOLS_LOG, outside, add_tool)
    assert "tool added: weather" in project.pytest("tests/test_outside.py", ci="1", status=1)


def test_start_up_imports_nothing_heavy() -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import dsh_audit.pytest_plugin; "
        "print(sorted(name for name in set(sys.modules) - before if not name.startswith('dsh_audit')))"
    )
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ids_that_fold_to_one_text_have_cases_of_their_own() -> None:
    names = {ident: case_name(pytest_plugin._test_name(f"t/test_a.py::TestB::test_c[{ident}]")) for ident in IDS}
    assert len({name.casefold() for name in names.values()}) == len(IDS)
    assert names["x"] == "test_a/TestB/test_c-x" and names["a-b"] == "test_a/TestB/test_c-a-b"
    assert all(name.startswith("test_a/TestB/test_c") and name.count("/") == 2 for name in names.values())


def test_the_hooks_are_in_the_form_that_old_pluggies_know() -> None:
    impl = pytest_plugin.Session.pytest_runtest_makereport.pytest_impl  # type: ignore[attr-defined]
    assert impl["hookwrapper"] is True and not impl.get("wrapper")
    assert "StashKey" not in Path(pytest_plugin.__file__).read_text("utf-8")
