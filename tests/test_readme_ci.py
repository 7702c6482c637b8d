"""The README as written: its examples and the commands for CI run, its settings are valid, its hooks exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.cli import Done, run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.partition("\n## In CI\n")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"^dsh-audit .*golden/\S*/.*$", README.partition("\n## In CI\n")[0], re.MULTILINE)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))


def block(title: str) -> Any:
    """A fenced block by its first line, parsed."""
    ((kind, text),) = [(kind, text) for kind, text in BLOCKS if text.startswith(f"# {title}\n")]
    return tomllib.loads(text) if kind == "toml" else yaml.safe_load(text)


def commands(*lines: str) -> list[list[str]]:
    """The dsh-audit commands among shell lines, as words; everything else installs."""
    found: list[list[str]] = []
    for line in lines:
        words = [os.path.expandvars(word) for word in shlex.split(line)]
        if words[0] == "dsh-audit":
            found.append(words[1:])
        else:
            assert words[:2] == ["pip", "install"]
    return found


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository as the section describes it, with its goldens recorded."""
    for name in ("sessions", "captures"):
        shutil.copytree(ROOT / "golden" / "v0-tools" / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.delenv("CI", raising=False)
    (text,) = [text for kind, text in BLOCKS if kind == "sh"]
    (words,) = commands(text)
    assert_passes(run(*words))
    monkeypatch.setenv("CI", "true")
    return tmp_path


def assert_passes(done: Done) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "golden").symlink_to(ROOT / "golden")
    monkeypatch.chdir(tmp_path)
    assert len(EXAMPLES) == 7
    for line in EXAMPLES:
        (words,) = commands(line.partition(" | ")[0])
        assert_passes(run(*words))


def github_commands() -> list[list[str]]:
    steps = block(".github/workflows/dsh-audit.yml")["jobs"]["audit"]["steps"]
    return commands(*(step["run"] for step in steps if "run" in step))


def test_the_github_workflow_runs(project: Path) -> None:
    ran = github_commands()
    assert [words[0] for words in ran] == ["verify", "golden", "cache"]
    for words in ran:
        done = run(*words, env={"GITHUB_ACTIONS": "true"})
        assert_passes(done)
        assert all(line.startswith(b"::") for line in done.stdout.splitlines())
    assert (project / "summary.md").read_text("utf-8").count("\n## dsh-audit") == 2
    uploads = [step["with"]["sarif_file"] for step in workflow_steps() if "upload-sarif" in step.get("uses", "")]
    assert [json.loads((project / name).read_bytes())["version"] for name in uploads] == ["2.1.0"]
    assert_junit(project)


def workflow_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = block(".github/workflows/dsh-audit.yml")["jobs"]["audit"]["steps"]
    return steps


def assert_junit(project: Path) -> None:
    names = {path.name for path in (project / "reports").glob("*.xml")}
    assert names == {"verify.xml", "golden.xml", "cache.xml"}
    for name in names:
        assert int(ElementTree.parse(project / "reports" / name).getroot().get("tests", "")) > 0


def test_a_changed_session_fails_the_job(project: Path) -> None:
    (log,) = (project / "sessions").rglob("session.jsonl")
    log.write_bytes(log.read_bytes().replace(b"You run errands", b"You ran errands"))
    statuses = {words[0]: run(*words).returncode for words in github_commands()}
    assert (statuses["verify"], statuses["golden"]) == (1, 1)
    assert not list((project / "golden").rglob("*.new*"))


def test_the_gitlab_job_runs(project: Path) -> None:
    job = block(".gitlab-ci.yml")["dsh-audit"]
    for words in commands(*job["script"]):
        assert_passes(run(*words))
    assert job["artifacts"]["reports"]["junit"] == "reports/*.xml"
    assert_junit(project)


def test_the_settings_are_valid_and_used(project: Path) -> None:
    settings = block("dsh-audit.toml")
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(settings)
    (text,) = [text for kind, text in BLOCKS if kind == "toml"]
    (project / "dsh-audit.toml").write_text(text, "utf-8")
    (project / "deployment.toml").write_text("", "utf-8")
    for command in (["verify", "sessions"], ["cache", "sessions"], ["golden", "check", "golden"]):
        assert_passes(run(*command))
    assert json.loads((project / "reports" / "verify.json").read_bytes())["summary"]["identical"] == 5


def test_environment_variables_of_the_section_exist(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = dict(re.findall(r"`(DSH_AUDIT_[A-Z_]+)=([^`]+)`", SECTION))
    assert len(pairs) == 2
    assert_passes(run("verify", "sessions", env=pairs))
    bad = run("golden", "check", "golden", env=pairs | {"DSH_AUDIT_GOLDEN_CHECK_UNUSED": "nonsense"})
    assert bad.returncode == 2


def test_the_hooks_exist_and_run(project: Path) -> None:
    by_id = {hook["id"]: hook for hook in HOOKS}
    used = block(".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert [hook["id"] for hook in used] == list(by_id)
    wanted = by_id["dsh-audit-inspect"]["files"]
    logs = [str(path) for path in sorted(project.rglob("*")) if re.search(wanted, str(path))]
    assert logs
    for hook in used:
        entry = commands(by_id[hook["id"]]["entry"])[0]
        files = logs if by_id[hook["id"]].get("pass_filenames", True) else []
        assert_passes(run(*entry, *hook.get("args", []), *files))


@pytest.mark.parametrize("hook", HOOKS, ids=[hook["id"] for hook in HOOKS])
def test_hooks_have_what_pre_commit_needs(hook: dict[str, Any]) -> None:
    assert {"id", "name", "entry", "language"} <= set(hook)
    re.compile(hook.get("files", ""))


def test_places_for_contributors_are_there() -> None:
    """Every file that the section names exists, and defines the name that is said to be in it."""
    section = README.partition("\n## Adding to it\n")[2].partition("\n## ")[0]
    source = ROOT / "src" / "dsh_audit"
    paths = [path for path in re.findall(r"`([a-z_/]+\.py)`", section) if not path.startswith("tests/")]
    assert len(paths) >= 9 and [path for path in paths if not (source / path).is_file()] == []
    for name, path in re.findall(r"`([A-Za-z_]+)` in `([a-z_/]+\.py)`", section):
        assert re.search(rf"^(def )?{name}\b", (source / path).read_text("utf-8"), re.MULTILINE), (name, path)
