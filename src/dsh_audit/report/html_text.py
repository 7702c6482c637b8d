"""Text in the HTML report: the only way for a log's own text into the page."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from dsh_audit.report import text

MAX_TEXT = 4000


def esc(value: object, limit: int = MAX_TEXT) -> str:
    """Any text, safe in HTML text and in double-quoted attributes; control characters shown, long text cut."""
    shown = str(value)
    cut = f"… ({len(shown) - limit:,} more characters)" if len(shown) > limit else ""
    return escape(text.clean(shown[:limit]), quote=True) + cut


def heads(words: Iterable[str], numbers: Iterable[str]) -> str:
    """Head cells of columns of words and of numbers."""
    left = "".join(f'<th scope="col">{esc(name)}</th>' for name in words)
    return left + "".join(f'<th scope="col" class="n">{esc(name)}</th>' for name in numbers)
