"""JUnit XML: a suite per group of cases, findings that fail nothing as output of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree

from dsh_audit.finding import Finding, Severity
from dsh_audit.report.model import Case, Report, safe
from dsh_audit.report.text import place

_MAX_OUTPUT = 1000


def render_junit(report: Report) -> str:
    """XML that JUnit readers take: failed cases as ``failure``, those that could not be judged as ``error``.

    There are no times in it: an audit of the same input gives the same bytes.
    """
    suites: dict[str, list[Case]] = {}
    for case in report.cases:
        suites.setdefault(safe(case.group), []).append(case)
    root = ElementTree.Element("testsuites", {"name": f"dsh-audit {report.command}", **_counts(report.cases)})
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": name, **_counts(cases)})
        names: Counter[str] = Counter()
        for case in cases:
            names[case.name] += 1
            again = names[case.name]
            _add_case(suite, case, safe(case.name) if again == 1 else f"{safe(case.name)} ({again})")
    _add_findings(root, report)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _counts(cases: Iterable[Case]) -> dict[str, str]:
    outcomes = [case.outcome for case in cases]
    return {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failed")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
    }


def _add_case(suite: ElementTree.Element, case: Case, name: str) -> None:
    element = ElementTree.SubElement(suite, "testcase", {"classname": safe(case.group), "name": name})
    if case.outcome == "passed":
        return
    message = safe(case.message)
    tag = {"failed": "failure", "error": "error", "skipped": "skipped"}[case.outcome]
    detail = ElementTree.SubElement(element, tag, {"message": message})
    if case.outcome != "skipped":
        detail.set("type", case.outcome)
        detail.text = message


def _add_findings(root: ElementTree.Element, report: Report) -> None:
    """A suite without failures that carries the summary and the findings as text."""
    name = "dsh-audit"
    suite = ElementTree.SubElement(root, "testsuite", {"name": name, **_counts(())})
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in (("verdict", report.verdict), *report.summary):
        ElementTree.SubElement(properties, "property", {"name": safe(key), "value": str(value)})
    if report.findings:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(map(_line, report.findings[:_MAX_OUTPUT]))


def _line(finding: Finding) -> str:
    where = place(finding)
    mark = "note" if finding.severity is Severity.INFO else str(finding.severity)
    return safe(f"{mark}[{finding.code}] {finding.message}") + (f" (at {safe(where)})" if where else "")
