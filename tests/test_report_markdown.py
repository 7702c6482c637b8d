"""Markdown, rendered by a GitHub-flavoured Markdown parser."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from dsh_audit.errors import AuditError
from dsh_audit.report.markdown import MAX_BYTES, escape, render_markdown
from dsh_audit.report.model import Case, error_report, safe
from tests.reports import HOSTILE, NOTE, finding, hostile_report, report_of

GITHUB = MarkdownIt("gfm-like")
OWN_TAGS = {"h2", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li", "p", "details", "summary"}


def rendered(text: str) -> str:
    page: str = GITHUB.render(text)
    return page


def cells(page: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]


def test_verdict_numbers_cases_findings() -> None:
    report = report_of(finding("differs", session="s"), cases=(Case("request 1", "s", "failed", "different"),))
    page = rendered(render_markdown(report))
    assert "<h2>dsh-audit verify: failed</h2>" in page
    assert cells(page)[:2] == ["captured", "3"]
    assert "request 1" in cells(page)
    assert "<details><summary>1 error</summary>" in page
    assert "differs" in cells(page)


def test_clean_and_impossible_audits() -> None:
    assert "verify: passed" in render_markdown(report_of())
    assert "details" not in render_markdown(report_of())
    assert "no such log" in rendered(render_markdown(error_report("verify", AuditError("no such log"))))


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_text(text: str) -> None:
    report = hostile_report(text)
    source = render_markdown(report)
    source.encode("utf-8")
    page = rendered(source)
    assert set(re.findall(r"</?([a-zA-Z0-9]+)", page)) <= OWN_TAGS
    assert " ".join(safe(text, 500).split()) in [" ".join(cell.split()) for cell in cells(page)]


def test_escaped_text_is_not_a_link_mention_or_reference() -> None:
    text = escape("@someone #12 https://x.example www.x.example a@b.example GH-1")
    assert not re.search(r"[@#](?!\d+;)|://|www\.|\.", text)


def test_the_size_is_bounded() -> None:
    long = report_of(*[finding("汉" * 1000, NOTE, session=str(n)) for n in range(5000)])
    text = render_markdown(long)
    assert MAX_BYTES - 5000 < len(text.encode("utf-8")) <= MAX_BYTES
    shown = text.count("| info |")
    assert f"{5000 - shown} more findings not shown" in text
    assert text.endswith("</details>\n")
    many = report_of(cases=tuple(Case(f"case {n}", "s", "failed", "x" * 5000) for n in range(3000)))
    assert len(render_markdown(many).encode("utf-8")) < MAX_BYTES
    assert "2900 more cases failed" in render_markdown(many)
