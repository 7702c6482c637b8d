"""Results → JSON text, the same bytes for the same value."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_EXPONENT = re.compile(rb"(?:[0-9]e-?[0-9]+|0\.0000[0-9]+),?\n")
"""At the end of a line, what orjson prints in another form; strings that look like it do no harm."""


def render_json(value: Any) -> str:
    """Two-space JSON with a final newline; lone surrogates as escapes, all other text literal."""
    try:
        fast = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if not _EXPONENT.search(fast):
            return fast.decode()
    except TypeError:  # a lone surrogate, a number beyond 64 bits
        pass
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"
