"""A true prefix cache, so that reported cache usage can be compared with a prediction.

The prompt of a request is its `tools`, then its `system`, then its `messages`, each as the compact JSON of the body,
one after the other; a token is one byte. A request hits the longest prefix that any earlier request of its model
shares, cut down to a whole multiple of the grain. Nothing expires.
"""

from __future__ import annotations

import json
from typing import Any

Json = Any

PROMPT_MEMBERS = ("tools", "system", "messages")


class PrefixCache:
    """Earlier prompts by model.

    Args:
        grain: tokens (bytes) in one cached unit.
    """

    def __init__(self, grain: int) -> None:
        self.grain = grain
        self._prompts: dict[str, list[bytes]] = {}

    def look_up(self, body: bytes) -> tuple[int, int]:
        """Tokens of the prompt and how many of them hit; remembers the prompt."""
        members = _members(body.decode())
        prompt = b"".join(members.get(name, "").encode() for name in PROMPT_MEMBERS)
        earlier = self._prompts.setdefault(members.get("model", ""), [])
        shared = max((_shared(prompt, other) for other in earlier), default=0)
        earlier.append(prompt)
        return len(prompt), shared // self.grain * self.grain


def usage(protocol: str, prompt: int, hit: int, output: int = 10) -> Json:
    """The figures in the words of a protocol."""
    if protocol == "messages":
        fresh = {"input_tokens": prompt - hit, "cache_creation_input_tokens": 0}
        return {**fresh, "cache_read_input_tokens": hit, "output_tokens": output}
    if protocol == "responses":
        details = {"input_tokens_details": {"cached_tokens": hit}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {"input_tokens": prompt, "output_tokens": output, "total_tokens": prompt + output, **details}
    split = {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": prompt - hit}
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **split}


def _shared(one: bytes, other: bytes) -> int:
    """Length of the common prefix, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _members(text: str) -> dict[str, str]:
    """Raw text of each top-level member of a compact JSON object."""
    decoder, at, members = json.JSONDecoder(), 1, {}
    while at < len(text) and text[at] != "}":
        name, at = decoder.raw_decode(text, at)
        start = at + 1
        _, at = decoder.raw_decode(text, start)
        members[name] = text[start:at]
        at += text[at] == ","
    return members
