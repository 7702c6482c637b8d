"""Configuration files, environment variables, and what comes first."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from dsh_audit.cli.config import options_of
from dsh_audit.cli.config_schema import build_schema
from dsh_audit.cli.main import cli
from dsh_audit.wire.constants import CONSTANTS, Constant
from tests.cli import Done, run
from tests.logs import two_turns

SCHEMA_PATH = Path(__file__).parent.parent / "schemas" / "config.schema.json"
SCHEMA = json.loads(SCHEMA_PATH.read_text("utf-8"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project directory with a log, two directories deep, in which commands run."""
    folder = tmp_path / "project" / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(two_turns().plain())
    monkeypatch.chdir(folder)
    return tmp_path / "project"


def inspect(*before: str, after: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Done:
    return run(*before, "inspect", "session.jsonl", *after, env=env)


def is_json(done: Done) -> bool:
    assert done.returncode == 0, done.stderr
    return done.stdout.startswith(b"{")


def settings(project: Path, text: str) -> None:
    (project / "dsh-audit.toml").write_text(text, "utf-8")


def failure(done: Done) -> list[str]:
    assert done.returncode == 2, done.stdout
    return done.stderr.decode("utf-8").splitlines()


def test_nothing_is_needed(project: Path) -> None:
    assert not is_json(inspect())
    assert not is_json(inspect("--no-config"))


def test_a_command_table_and_a_top_level_default(project: Path) -> None:
    settings(project, '[inspect]\nformat = "json"\n')
    assert is_json(inspect())
    assert not run("requests", "session.jsonl").stdout.startswith(b"{")
    settings(project, 'format = "json"\n[inspect]\nformat = "text"\n')
    assert not is_json(inspect())
    assert run("requests", "session.jsonl").stdout.startswith(b"{")


def test_a_top_level_default_reaches_only_commands_that_take_it(project: Path) -> None:
    settings(project, 'format = "markdown"\n')
    assert inspect().stdout.startswith(b"## dsh-audit")
    assert run("rules").stdout.startswith(b"log\n")


def test_the_nearest_file_wins_and_the_own_name_comes_first(project: Path) -> None:
    settings(project, '[inspect]\nformat = "json"\n')
    (project / "a" / "pyproject.toml").write_text('[project]\nname = "dsh-audit-example"\n', "utf-8")
    assert is_json(inspect())
    (project / "a" / "pyproject.toml").write_text('[tool.dsh-audit.inspect]\nformat = "text"\n', "utf-8")
    assert not is_json(inspect())
    settings(project / "a", '[inspect]\nformat = "json"\n')
    assert is_json(inspect())


def test_a_named_file_and_none(project: Path) -> None:
    settings(project, '[inspect]\nformat = "json"\n')
    (project / "other.toml").write_text('[inspect]\nformat = "text"\n', "utf-8")
    other = str(project / "other.toml")
    assert not is_json(inspect("--config", other))
    assert not is_json(inspect("--no-config"))
    assert not is_json(inspect(env={"DSH_AUDIT_CONFIG": other}))
    assert not is_json(inspect(env={"DSH_AUDIT_NO_CONFIG": "1"}))
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n', "utf-8")
    assert "there is no [tool.dsh-audit] in it" in failure(inspect("--config", str(project / "pyproject.toml")))[0]
    assert "cannot be read" in failure(inspect("--config", "missing.toml"))[0]


def test_command_line_then_environment_then_file(project: Path) -> None:
    settings(project, '[inspect]\nformat = "json"\n')
    env = {"DSH_AUDIT_INSPECT_FORMAT": "markdown"}
    assert inspect(env=env).stdout.startswith(b"## dsh-audit")
    assert not is_json(inspect(after=("--format", "text"), env=env))
    assert is_json(inspect())


def test_flags_numbers_and_lists(project: Path) -> None:
    settings(project, '[inspect]\nthrough = 3\nexit-zero = true\nreport = ["json=x.json", "junit=-"]\n')
    done = inspect()
    assert done.stdout.startswith(b"<?xml")
    assert json.loads((project / "x.json").read_bytes())["logs"][0]["events"] == 4
    assert inspect(after=("--format", "json"), env={"DSH_AUDIT_INSPECT_REPORT": "sarif=a junit=b"}).returncode == 0
    assert {path.name for path in Path().iterdir()} == {"session.jsonl", "a", "b"}


def test_several_values_in_the_environment(project: Path) -> None:
    env = {"DSH_AUDIT_VERIFY_CAPTURE": os.pathsep.join(["one", "two"])}
    assert "one" in failure(run("verify", "session.jsonl", env=env))[0]
    Path("one").mkdir()
    (Path("one") / "0000.body").write_bytes(b"{}")
    (Path("one") / "0000.meta.json").write_bytes(b'{"method":"POST","path":"/","headers":[]}')
    assert "two" in failure(run("verify", "session.jsonl", env=env))[0]


def test_paths_are_relative_to_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "deployment.toml").write_text("", "utf-8")
    (project / "text").write_text("Summarise.", "utf-8")
    known = Constant("compaction-instruction", 10, hashlib.sha256(b"Summarise.").hexdigest())
    monkeypatch.setitem(CONSTANTS, known.name, known)
    settings(project, 'deployment = "deployment.toml"\nconstant = "compaction-instruction=text"\n')
    assert run("requests", "session.jsonl").returncode == 0
    (project / "deployment.toml").unlink()
    assert failure(run("requests", "session.jsonl"))[0].startswith("error: ../../deployment.toml: cannot be read")


def test_the_file_itself_is_not_overwritten(project: Path) -> None:
    settings(project, '[inspect]\nreport = "json=dsh-audit.toml"\n')
    assert "would overwrite an input" in failure(inspect())[0]


def test_colour(project: Path) -> None:
    plain = {"NO_COLOR": "", "FORCE_COLOR": ""}
    assert b"\x1b[" in inspect("--color", "always", env={"NO_COLOR": "1"}).stdout
    assert b"\x1b[" not in inspect("--color", "never", env={**plain, "FORCE_COLOR": "1"}).stdout
    assert b"\x1b[" in inspect("--color", "auto", env={**plain, "FORCE_COLOR": "1"}).stdout
    assert b"\x1b[" not in inspect(env=plain).stdout
    settings(project, 'color = "always"\n')
    assert b"\x1b[" in inspect().stdout
    assert b"\x1b[" not in inspect(env={"DSH_AUDIT_COLOR": "never"}).stdout
    assert b"\x1b[" not in inspect("--color", "auto").stdout


BAD = [
    ("[inspect]\nformt = 1\n", "inspect.formt: unknown key", "did you mean format?"),
    ("[inspekt]\n", "inspekt: unknown key", "did you mean inspect?"),
    ("exit_zero = true\n", "exit_zero: unknown key", "did you mean exit-zero?"),
    ("[inspect]\ncapture = 'x'\n", "inspect.capture: unknown key", "keys are the long names of options, see --help"),
    ("[inspect]\noutput_format = 'json'\n", "inspect.output_format: unknown key", "did you mean output?"),
    ("[inspect]\nhelp = true\n", "inspect.help: unknown key", None),
    ("config = 'x'\n", "config: unknown key", None),
    ("inspect = 1\n", "inspect: expected a table with the options of this command", None),
    ("[inspect]\nformat = 'yaml'\n", "inspect.format: 'yaml' is not one of", None),
    ("[inspect]\nformat = ['json']\n", "inspect.format: expected a string", None),
    ("[inspect]\nthrough = '3'\n", "inspect.through: expected an integer", None),
    ("[inspect]\nthrough = true\n", "inspect.through: expected an integer", None),
    ("[inspect]\nthrough = -1\n", "inspect.through: -1 is not in the range x>=0", None),
    ("[inspect]\nexit-zero = 1\n", "inspect.exit-zero: expected true or false", None),
    ("[inspect]\nreport = [1]\n", "inspect.report: expected a string or a list of such", None),
    ("[verify]\ncapture = {a = 1}\n", "verify.capture: expected a string or a list of such", None),
    ("through = 'x'\n", "through: expected an integer", None),
    ("color = 'red'\n", "color: 'red' is not one of", None),
    ("[inspect\n", "not TOML", None),
    ("x = '\x00'\n", "not TOML", None),
    ("x = " + "[" * 100_000 + "\n", "not TOML", None),
    ("# " + "x" * (1 << 20) + "\n", "larger than 1048576 bytes", None),
]


@pytest.mark.parametrize(("text", "message", "hint"), BAD, ids=range(len(BAD)))
def test_whatever_is_wrong_is_named(text: str, message: str, hint: str | None, project: Path) -> None:
    settings(project, text)
    first, *rest = failure(inspect())
    assert first.startswith(f"error: ../../dsh-audit.toml: {message}")
    assert hint is None or rest == [f"hint: {hint}"]
    assert len(first) < 400


def test_errors_of_a_pyproject_name_its_table(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.dsh-audit.inspect]\nformt = 1\n", "utf-8")
    assert failure(inspect())[0] == "error: ../../pyproject.toml: tool.dsh-audit.inspect.formt: unknown key"
    (project / "pyproject.toml").write_text("[tool]\ndsh-audit = 1\n", "utf-8")
    assert failure(inspect())[0] == "error: ../../pyproject.toml: tool.dsh-audit: expected a table"
    (project / "pyproject.toml").write_bytes(b"[tool.dsh-audit]\n# \xff\n")
    assert "not TOML" in failure(inspect())[0]


def test_a_broken_file_does_not_break_the_shell(project: Path) -> None:
    settings(project, "?")
    assert run("completion", "bash").returncode == 0


def test_the_schema_is_that_of_the_options() -> None:
    again = "python -m dsh_audit.cli.config_schema > schemas/config.schema.json"
    assert build_schema(cli) == SCHEMA, f"run: {again}"
    Draft202012Validator.check_schema(SCHEMA)


def fits_schema(text: str) -> bool:
    value: dict[str, Any] = tomllib.loads(text)
    return Draft202012Validator(SCHEMA).is_valid(value)


def test_the_schema_and_the_program_agree() -> None:
    assert fits_schema('color = "never"\nformat = "markdown"\n[inspect]\nthrough = 3\nreport = ["json=x"]\n')
    for text, message, _ in BAD:
        if not message.startswith(("not TOML", "larger")):
            assert not fits_schema(text), text


def test_every_option_has_an_environment_variable() -> None:
    command = cli.get_command(click.Context(cli), "verify")
    assert command is not None
    named = {key: option.envvar for key, option in options_of(command).items()}
    assert named["capture"] == "DSH_AUDIT_VERIFY_CAPTURE"
    assert named["capture-field"] == "DSH_AUDIT_VERIFY_CAPTURE_FIELD"
    assert None not in named.values()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[inspect]\noutput = "../x"\n', "inspect.output"),
        ('output = "../x"\n', "output"),
        ('[inspect]\nreport = ["json=inside", "junit=../x"]\n', "inspect.report"),
        ('[inspect]\nreport = "json={}/x"\n', "inspect.report"),
        ('[inspect]\noutput = "link/x"\n', "inspect.output"),
        ('[golden.record]\noutput = "../cases"\n', "golden.record.output"),
        ('[deployment.learn]\noutput = "../x.json"\n', "deployment.learn.output"),
    ],
)
def test_a_found_file_writes_only_below_its_own_directory(text: str, place: str, project: Path) -> None:
    (project / "link").symlink_to(project.parent)
    settings(project, text.format(project.parent))
    message, hint = failure(inspect())
    assert message.startswith(f"error: ../../dsh-audit.toml: {place}: a file that nobody named")
    assert "--config" in hint
    assert sorted(path.name for path in project.parent.iterdir()) == ["project"]
    assert run("--config", project / "dsh-audit.toml", "requests", "session.jsonl").returncode == 0


def test_what_a_found_file_reads_elsewhere_is_told(project: Path) -> None:
    outside = project.parent / "outside.toml"
    outside.write_text("", "utf-8")
    (project.parent / "secret").write_text("x", "utf-8")
    (project / "inside.toml").write_text('[constants]\nx = "../secret"\n', "utf-8")
    settings(project, '[requests]\ndeployment = "../outside.toml"\n[drift]\ndeployment = "inside.toml"\n')
    assert b"note: ../../dsh-audit.toml makes this read" in run("requests", "session.jsonl").stderr
    assert b"outside.toml" in run("requests", "session.jsonl").stderr
    assert b"secret" in run("drift", "session.jsonl").stderr
    assert b"note:" not in run("inspect", "session.jsonl").stderr
    assert b"note:" not in run("requests", "session.jsonl", "--deployment", outside).stderr
    assert b"note:" not in run("--config", project / "dsh-audit.toml", "requests", "session.jsonl").stderr
