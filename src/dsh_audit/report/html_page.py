"""HTML pages from templates. All text is escaped by the engine, cleaned and bounded on its way into a page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from dsh_audit.report import text

MAX_TEXT = 4000


def render_page(name: str, filters: Mapping[str, Callable[..., Any]], **values: Any) -> str:
    """The page of the template ``name`` with the style and the script of the same name and a policy for just these."""
    style, script = _asset(f"{name}.css"), _asset(f"{name}.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = Environment(loader=FunctionLoader(_asset), autoescape=True, finalize=shown, undefined=StrictUndefined)
    environment.filters.update(filters, cut=shown, shape=Markup)
    return environment.get_template(f"{name}.html.j2").render(
        values, policy=Markup(policy), style=Markup(style), script=Markup(script)
    )


def shown(value: object, limit: int = MAX_TEXT) -> str:
    """Any value as text that is not escaped yet: control characters spelt out, long text cut."""
    if isinstance(value, Markup):
        return value
    whole = str(value)
    cut = f"… ({len(whole) - limit:,} more characters)" if len(whole) > limit else ""
    return text.clean(whole[:limit]) + cut


def _asset(name: str) -> str:
    return (Path(__file__).parent / "assets" / name).read_text("utf-8")


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
