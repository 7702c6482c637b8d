"""``schema``: every schema is printed as it is shipped, and every report has one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import dsh_audit
from tests.cli import run

ROOT = Path(__file__).parent.parent
FILES = {path.name.removesuffix(".schema.json"): path for path in (ROOT / "schemas").iterdir()}


def test_without_a_name_all_are_listed() -> None:
    lines = run("schema").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[2:]] == sorted(FILES)
    assert any(re.fullmatch(r"verify +dsh-audit/verify/1 +Output of dsh-audit verify", line) for line in lines)


@pytest.mark.parametrize("name", ["verify", "rows-v4", "deployment-learn"])
def test_a_schema_is_printed_as_it_is(name: str) -> None:
    assert run("schema", name).stdout == FILES[name].read_bytes()


def test_a_report_names_what_to_ask_for() -> None:
    report = json.loads(run("requests", ROOT / "golden" / "v0-tools" / "sessions", "--format", "json").stdout)
    schema = json.loads(run("schema", report["schema"]).stdout)
    Draft202012Validator(schema).validate(report)


def test_an_unknown_name() -> None:
    done = run("schema", "verfy")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: there is no schema verfy\nhint: there are: cache, cache-ranking, ")


def test_every_report_has_a_schema_of_its_version() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(dsh_audit.__file__).parent.rglob("*.py"))
    named = set(re.findall(r'"(dsh-audit/[a-z-]+/[0-9]+)"', source))
    parsed = {name: json.loads(path.read_text("utf-8")) for name, path in FILES.items()}
    idents = {schema["$id"] for schema in parsed.values() if "$id" in schema}
    assert len(named) > 10 and named - {"dsh-audit/cache-rules/1"} <= idents
    for name, schema in parsed.items():
        Draft202012Validator.check_schema(schema)
        const = schema.get("properties", {}).get("schema", {}).get("const")
        assert const is None or const == schema["$id"] == f"dsh-audit/{name}/{const.rpartition('/')[2]}"
        assert schema["title"]
