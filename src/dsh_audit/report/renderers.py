"""Every report format by name."""

from __future__ import annotations

from importlib import import_module

from dsh_audit.report.model import Report

FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")
"""Only ``text`` may hold colours. Each of the others but json is a module ``report.NAME`` with ``render_NAME``."""


def render_report(report: Report, output_format: str) -> str:
    """A report in one of the formats; only the module of that format is imported."""
    if output_format == "text":
        return report.as_text()
    module = import_module(f"dsh_audit.report.{output_format}")
    render = getattr(module, f"render_{output_format}")
    text: str = render(report.as_json() if output_format == "json" else report)
    return text
