"""Which rebuilt bodies a captured body could be, told by content in one pass over its bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from dsh_audit.events import Json
from dsh_audit.replay.body_diff import EXTENSION_FIELDS, MAX_PARSED_BYTES
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body


@dataclass(frozen=True, slots=True)
class BodyKey:
    """Size and hex SHA-256 of a rebuilt body."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, body: Body) -> BodyKey:
        """The key of a body."""
        return cls(body.size_bytes, body.sha256())


class KeyFinder:
    """Recognises captured bodies that start with one of many rebuilt ones.

    A captured body is a rebuilt body, or that body without its closing brace and with further members. One
    hash runs over the captured bytes and is read off at each size in question: linear in the body.
    """

    def __init__(self, keys: Iterable[BodyKey]) -> None:
        self._keys = set(keys)
        self._sizes = sorted({key.size_bytes for key in self._keys if key.size_bytes > 1})

    def find(self, captured: bytes) -> BodyKey | None:
        """The longest rebuilt body that explains the captured one."""
        found: BodyKey | None = None
        digest, at = hashlib.sha256(), 0
        view = memoryview(captured)
        for size in self._sizes[: bisect_right(self._sizes, len(captured))]:
            if size < len(captured) and captured[size - 1] != 0x2C:
                continue
            digest.update(view[at : size - 1])
            at = size - 1
            whole = digest.copy()
            whole.update(b"}")
            key = BodyKey(size, whole.hexdigest())
            if key in self._keys and (size < len(captured) or captured[-1:] == b"}"):
                found = key
        return found


def value_key(body: bytes) -> str | None:
    """A digest that is equal for bodies with the same JSON value, key order and extension fields aside.

    None when the body is no JSON object or too large to parse.
    """
    if len(body) > MAX_PARSED_BYTES:
        return None
    try:
        value = ecma.parse(body)
    except ecma.EcmaSyntaxError:
        return None
    if not isinstance(value, dict):
        return None
    for name in EXTENSION_FIELDS:
        value.pop(name, None)
    return hashlib.sha256(_print_sorted(value)).hexdigest()


def _print_sorted(value: Json) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError, RecursionError):
        return ecma.stringify(value)  # unpaired surrogates or great depth: key order counts here


def opening_text(body: bytes) -> str | None:
    """A digest of the text of the first user message of a request; None when there is none.

    It is the same for all requests of a session until a compaction, whatever a protocol adds to the message.
    """
    if len(body) > MAX_PARSED_BYTES:
        return None
    try:
        value = ecma.parse(body)
    except ecma.EcmaSyntaxError:
        return None
    if not isinstance(value, dict):
        return None
    messages = value.get("messages", value.get("input"))
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == "user":
            text = "\0".join(_texts(message.get("content")))
            return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return None


def _texts(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
