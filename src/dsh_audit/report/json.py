"""Results → JSON text, the same bytes for the same value."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What changes how a terminal or an editor shows a report; as escapes they parse to the same text."""
_EXPONENT = re.compile(rb"(?:[0-9]e-?[0-9]+|0\.0000[0-9]+),?\n")
"""At the end of a line, what orjson prints in another form; strings that look like it do no harm."""


def render_json(value: Any) -> str:
    """Two-space JSON with a final newline; what controls a display as escapes, other text literal.

    A lone surrogate, which many parsers refuse, becomes the text of its escape.
    """
    try:
        fast = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if not _EXPONENT.search(fast):
            return fast.decode() if fast.isascii() and b"\x7f" not in fast else _HIDDEN.sub(_escape, fast.decode())
    except TypeError:  # a lone surrogate, a number beyond 64 bits
        pass
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    text = _LONE_SURROGATE.sub(lambda match: "\\" + _escape(match), text)
    return _HIDDEN.sub(_escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
