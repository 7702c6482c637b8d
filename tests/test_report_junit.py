"""JUnit XML, read back by junitparser."""

from __future__ import annotations

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase

from dsh_audit.errors import AuditError
from dsh_audit.report.junit import render_junit
from dsh_audit.report.model import Case, Outcome, Report, error_report, safe
from tests.reports import HOSTILE, NOTE, finding, hostile_report, report_of


def parse(report: Report) -> JUnitXml:
    return JUnitXml.fromstring(render_junit(report).encode("utf-8"))


def cases_of(report: Report) -> list[TestCase]:
    return [case for suite in parse(report) for case in suite]


def test_outcomes_are_counted_and_read_back() -> None:
    outcomes: tuple[Outcome, ...] = ("passed", "failed", "error", "skipped")
    report = report_of(cases=tuple(Case(outcome, "s", outcome, f"was {outcome}") for outcome in outcomes))
    xml = parse(report)
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (4, 1, 1, 1)
    kinds = {case.name: [type(result) for result in case.result] for case in cases_of(report)}
    assert kinds == {"passed": [], "failed": [Failure], "error": [Error], "skipped": [Skipped]}


def test_each_error_finding_fails_a_case_and_others_do_not() -> None:
    report = report_of(finding("bad", session="s"), finding("mild", NOTE, session="s"))
    (case,) = cases_of(report)
    assert case.result[0].message == "bad"
    assert "note[test/note] mild" in render_junit(report)
    assert not parse(report_of(finding("mild", NOTE))).failures


def test_cases_of_one_name_stay_apart() -> None:
    report = report_of(cases=(Case("a", "s", "passed"), Case("a", "s", "passed")))
    assert [case.name for case in cases_of(report)] == ["a", "a (2)"]


def test_an_audit_that_could_not_run_is_an_error() -> None:
    (case,) = cases_of(error_report("verify", AuditError("no such log", hint="look again")))
    assert [type(result) for result in case.result] == [Error]
    assert case.result[0].message == "no such log (look again)"


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_text(text: str) -> None:
    report = hostile_report(text)
    case, derived = cases_of(report)
    assert derived.result[0].message == safe(text)
    assert (case.name, case.classname) == (safe(text), safe(text))
    assert case.result[0].message == safe(text)
    assert "\n" not in case.name
    assert len(render_junit(report)) < 40_000
