"""Workflow commands, read back the way GitHub's runner does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from dsh_audit.errors import AuditError
from dsh_audit.report.github import MAX_PER_LEVEL, render_github
from dsh_audit.report.model import Report, error_report, safe
from tests.reports import HOSTILE, NOTE, finding, hostile_report, report_of

COMMAND = re.compile(r"^::(?P<name>[a-z]+) (?P<properties>.*?)::(?P<message>.*)$")


def unescape(text: str, properties: bool = False) -> str:
    pairs = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if properties else []), ("%25", "%")]
    for escaped, plain in pairs:
        text = text.replace(escaped, plain)
    return text


def parse(report: Report) -> list[tuple[str, dict[str, str], str]]:
    """(command, properties, message) a line. Source: actions/runner, ActionCommand.TryParseV2."""
    parsed = []
    text = render_github(report)
    assert text.endswith("\n")
    for line in text.removesuffix("\n").split("\n"):
        match = COMMAND.match(line)
        assert match, line
        pairs = (item.partition("=") for item in match["properties"].split(","))
        properties = {key: unescape(value, True) for key, _, value in pairs}
        parsed.append((match["name"], properties, unescape(match["message"])))
    return parsed


def test_the_verdict_comes_with_the_findings() -> None:
    report = report_of(finding("differs", source="logs/session.jsonl", line=7, session="s", request=2))
    verdict, error = parse(report)
    assert verdict == ("error", {"title": "dsh-audit verify"}, "verify failed: 3 captured")
    assert error[:2] == ("error", {"title": "wire/different", "file": "logs/session.jsonl", "line": "7"})
    assert error[2].split("\n")[:2] == ["differs", "at logs/session.jsonl, line 7, request 2"]
    assert parse(report_of()) == [("notice", {"title": "dsh-audit verify"}, "verify passed: 3 captured")]


def test_an_audit_that_could_not_run() -> None:
    (line,) = parse(error_report("verify", AuditError("no\nlog")))
    assert line == ("error", {"title": "dsh-audit verify"}, "verify error\nno\\nlog")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_one_line_and_reads_back(text: str) -> None:
    lines = parse(hostile_report(text))
    assert [line[0] for line in lines] == ["error", "error", "notice"]
    assert lines[1][2].split("\n")[0] == safe(text)
    assert set(lines[1][1]) == {"title", "file", "line"}
    assert max(len(line) for line in render_github(hostile_report(text)).splitlines()) < 15_000


@pytest.mark.parametrize(("count", "shown"), [(9, 9), (10, 8), (500, 8)])
def test_no_level_has_more_than_ten(count: int, shown: int) -> None:
    lines = parse(report_of(*[finding(f"bad {n}") for n in range(count)], *[finding("n", NOTE)] * count))
    for level, room in (("error", 1), ("notice", 0)):
        messages = [message for name, _, message in lines if name == level]
        assert len(messages) <= MAX_PER_LEVEL
        if count >= MAX_PER_LEVEL + 1 - room:
            assert messages[-1].startswith(f"{count - shown - 1 + room} more findings: ")
            assert messages[-1].endswith(f" × {count - shown - 1 + room}")


def test_files_are_relative_to_the_repository() -> None:
    report = replace(report_of(finding(source="/srv/repo/a,b/s.jsonl")), root=PurePosixPath("/srv/repo"))
    assert parse(report)[1][1]["file"] == "a,b/s.jsonl"
