"""SARIF 2.1.0 (OASIS, errata 01) for code scanning: rules, results, fingerprints that outlive runs and machines."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from dsh_audit.finding import Finding, Rule, Severity
from dsh_audit.report.json import render_json
from dsh_audit.report.model import Report, heaviest_first, relative_path, safe
from dsh_audit.report.text import plural
from dsh_audit.rules import RULES

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "dshAuditPlace/v1"
MAX_RESULTS = 25_000
"""What GitHub takes in one run; it shows the 5,000 gravest, so the gravest come first."""

_ROOT = "%SRCROOT%"
_MAX_MESSAGE = 1000
_MAX_LINE = 2**31 - 1
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(report: Report) -> str:
    """One run with every rule and at most :data:`MAX_RESULTS` results."""
    ordered = heaviest_first(report.findings)
    rules = {**RULES, **{finding.code: finding.rule for finding in ordered}}
    indexes = {code: index for index, code in enumerate(rules)}
    driver: dict[str, Any] = {"name": "dsh-audit"}
    if report.version:
        driver["version"] = report.version
    driver["rules"] = [_rule(rule) for rule in rules.values()]
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, len(ordered) - MAX_RESULTS)],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The directory that the audit ran in."}}},
        "results": list(_results(ordered, indexes, report)),
        "properties": {
            "command": report.command,
            "verdict": report.verdict,
            "summary": {safe(name): count for name, count in report.summary},
        },
    }
    return render_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    advice, example = safe(rule.advice), safe(rule.example)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.code.replace("/", "-").split("-")),
        "shortDescription": {"text": safe(rule.title)},
        "fullDescription": {"text": f"{safe(rule.title)} {advice}"},
        "help": {"text": f"{advice}\nExample: {example}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.code.partition("/")[0]]},
    }


def _invocation(report: Report, dropped: int) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": report.verdict != "error", "exitCode": report.exit_status}
    notes: list[dict[str, Any]] = [
        {"level": "error", "message": {"text": safe(case.message)}} for case in report.cases if case.outcome == "error"
    ]
    if dropped > 0:
        text = f"{plural(dropped, 'lighter finding')} left out; the JSON report lists them all"
        notes.append({"level": "warning", "message": {"text": text}})
    if notes:
        invocation["toolExecutionNotifications"] = notes
    return invocation


def _results(findings: list[Finding], indexes: dict[str, int], report: Report) -> Iterable[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for finding in findings[:MAX_RESULTS]:
        place = fingerprint(finding)
        seen[place] += 1
        yield {
            "ruleId": finding.code,
            "ruleIndex": indexes[finding.code],
            "level": _LEVELS[finding.severity],
            "message": {"text": safe(finding.message, _MAX_MESSAGE) or finding.code},
            "locations": [_location(finding, report)],
            "partialFingerprints": {FINGERPRINT: f"{place}:{seen[place]}"},
        }


def fingerprint(finding: Finding) -> str:
    """Digest of what is found and where in the session; no message, no path, nothing of the machine."""
    where = finding.where
    parts = [finding.code, where.session, where.request, where.pointer, where.seq]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()[:32]


def _location(finding: Finding, report: Report) -> dict[str, Any]:
    """Code scanning wants a file for each result: the log, else what stands nearest to one."""
    where = finding.where
    path = relative_path(where.source or where.captured or where.session or "dsh-audit", report.root)
    uri = quote(path.encode("utf-8", "surrogatepass"), safe="/")
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri, "uriBaseId": _ROOT}}
    if where.line is not None and 1 <= where.line <= _MAX_LINE:
        physical["region"] = {"startLine": where.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    logical = _logical(finding)
    if logical:
        location["logicalLocations"] = [{"fullyQualifiedName": logical}]
    return location


def _logical(finding: Finding) -> str:
    where = finding.where
    named = (("session", where.session), ("request", where.request), ("capture", where.captured), ("seq", where.seq))
    parts = [f"{name} {safe(str(value), 200)}" for name, value in named if value is not None]
    return ", ".join([*parts, *([safe(where.pointer, 500)] if where.pointer else [])])
