"""``rules``, ``explain``, ``completion``, and that every rule says what it must."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from jsonschema import Draft202012Validator

import dsh_audit.rules
from dsh_audit.finding import Rule
from dsh_audit.rules import RULES
from tests.cli import run

SCHEMA = json.loads((Path(__file__).parent.parent / "schemas" / "rules.schema.json").read_text("utf-8"))
SOURCE = Path(dsh_audit.rules.__file__).parent


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_it_means_and_what_to_do(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", rule.code)
    for text in (rule.title, rule.advice, rule.example):
        assert text.strip() == text != ""
        assert text.isprintable()
    assert rule.title.endswith(".")
    assert rule.advice.endswith(".")
    assert len(rule.title) <= 120


def test_codes_are_unique_and_no_rule_is_left_out() -> None:
    modules = [value for value in vars(dsh_audit.rules).values() if isinstance(value, ModuleType)]
    families = [module for module in modules if module.__name__.startswith("dsh_audit.rules.")]
    rules = [value for family in families for value in vars(family).values() if isinstance(value, Rule)]
    assert sorted(rule.code for rule in rules) == sorted(RULES)
    assert {family.__name__.rpartition(".")[2] for family in families} == {
        path.stem for path in SOURCE.glob("*.py") if path.stem != "__init__"
    }


def test_rules_lists_every_code_with_everything() -> None:
    text = run("rules").stdout.decode("utf-8")
    for rule in RULES.values():
        for part in (rule.code, rule.title, rule.advice, rule.example):
            assert part in text
    value = json.loads(run("rules", "--format", "json").stdout)
    Draft202012Validator(SCHEMA).validate(value)
    assert [rule["code"] for rule in value["rules"]] == list(RULES)


def test_rules_of_a_family() -> None:
    value = json.loads(run("rules", "wire", "--format", "json").stdout)
    assert {rule["code"].partition("/")[0] for rule in value["rules"]} == {"wire"}
    done = run("rules", "wires")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, b"error: there is no family wires")


def test_explain_says_everything_about_a_code() -> None:
    rule = RULES["log/torn-tail"]
    done = run("explain", rule.code)
    assert done.returncode == 0
    for part in (rule.code, rule.title, rule.advice, rule.example, str(rule.severity)):
        assert part in done.stdout.decode("utf-8")
    value = json.loads(run("explain", rule.code, "--format", "json").stdout)
    Draft202012Validator(SCHEMA).validate(value)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("log/torn-tial", "did you mean log/torn-tail"),
        ("torn-tail", "did you mean log/torn-tail?"),
        ("LOG/TORN-TAIL", "did you mean log/torn-tail?"),
        ("qqqqqqqqqqq", "dsh-audit rules lists them all"),
        ("", "dsh-audit rules lists them all"),
        ("\x1b[31m\n", "dsh-audit rules lists them all"),
        ("x" * 100_000, "dsh-audit rules lists them all"),
    ],
    ids=["typo", "no family", "case", "nothing", "empty", "control", "long"],
)
def test_an_unknown_code_is_a_usage_error_with_a_suggestion(code: str, hint: str) -> None:
    done = run("explain", code)
    assert done.returncode == 2
    first, second = done.stderr.decode("utf-8").splitlines()
    assert first.startswith("error: there is no finding code")
    assert second.startswith(f"hint: {hint}")
    assert b"\x1b" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert f"_DSH_AUDIT_COMPLETE={shell}_complete" in done.stdout.decode("utf-8")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, check=True, timeout=60)


def test_completion_answers() -> None:
    env = {"_DSH_AUDIT_COMPLETE": "bash_complete", "COMP_WORDS": "dsh-audit ver", "COMP_CWORD": "1"}
    assert run(env=env).stdout.decode("utf-8").strip() == "plain,verify"
    env |= {"COMP_WORDS": "dsh-audit verify --repo"}
    assert "plain,--report" in run(env=env | {"COMP_CWORD": "2"}).stdout.decode("utf-8")
