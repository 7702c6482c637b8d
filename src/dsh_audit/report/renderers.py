"""Every report format by name."""

from __future__ import annotations

from collections.abc import Callable

from dsh_audit.report.github import render_github
from dsh_audit.report.json import render_json
from dsh_audit.report.junit import render_junit
from dsh_audit.report.markdown import render_markdown
from dsh_audit.report.model import Report
from dsh_audit.report.sarif import render_sarif

RENDERERS: dict[str, Callable[[Report], str]] = {
    "text": lambda report: report.as_text(),
    "json": lambda report: render_json(report.as_json()),
    "junit": render_junit,
    "sarif": render_sarif,
    "github": render_github,
    "markdown": render_markdown,
}
"""Format name → text of a report; only ``text`` may hold colours."""
