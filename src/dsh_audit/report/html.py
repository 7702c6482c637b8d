"""``report``: one self-contained HTML file, for people who would rather look than read.

Nothing in it reaches a network: the content security policy allows exactly the one style and the one script inside,
by digest. Without JavaScript the chart, the tables and the diffs are all there; the script adds reading out, sorting
and filtering, and puts no text into the page but through ``textContent``.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.report import html_parts as parts
from dsh_audit.report.html_ledger import render_ledger
from dsh_audit.report.html_text import esc


def render_html(report: CacheReport) -> str:
    """The report of one session; the same bytes for the same result."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = f"dsh-audit: session {esc(report.log.session_id or 'unnamed')}"
    body = (
        parts.render_summary(report),
        parts.render_timeline(report),
        parts.render_causes(report),
        parts.render_headers(report),
        render_ledger(report),
        parts.render_findings(report.findings),
        parts.render_assumed(report.unlogged),
        _footer(report),
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="referrer" content="no-referrer"><title>{title}</title><style>{style}</style></head>\n'
        f"<body><main>{chr(10).join(body)}</main><script>{script}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return (resources.files("dsh_audit.report") / "assets" / name).read_text("utf-8")


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _footer(report: CacheReport) -> str:
    log = report.log_json
    rules = ", ".join(sorted({rule.name for rule in report.rules}))
    return (
        f"<footer>Log sha256 <code>{esc(log['sha256'])}</code>, {log['events']} events. "
        f"Cache rules: {esc(rules or 'none')}. Made by dsh-audit from the log alone, offline.</footer>"
    )
