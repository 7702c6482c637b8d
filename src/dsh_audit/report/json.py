"""Results → JSON text, the same bytes for the same value."""

from __future__ import annotations

import json
import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def render_json(value: Any) -> str:
    """Two-space JSON with a final newline; lone surrogates as escapes, all other text literal."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    return _LONE_SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"
