"""Which rebuilt bodies a captured body could be, told by content in one pass over its bytes."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.replay.body_diff import MAX_PARSED_BYTES
from dsh_audit.text import ecma
from dsh_audit.text.pointer import common_start
from dsh_audit.wire.body import Body
from dsh_audit.wire.extensions import sent_span
from dsh_audit.wire.parts import EXTENSION_KEYS

MAX_REST_BYTES = 1 << 20
"""Longer ends of captured bodies are read again when they are judged."""

_EXTENSION_STARTS = tuple(b',"' + name.encode() + b'":' for name in EXTENSION_KEYS)


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
    hash runs over the captured bytes and is read off at each size in question: linear in the body. The whole body and
    the places before known extension fields come first, and mostly end the search.
    """

    def __init__(self, keys: Iterable[BodyKey]) -> None:
        self._keys = set(keys)
        self._sizes = sorted({key.size_bytes for key in self._keys if key.size_bytes > 1})
        self._known = set(self._sizes)

    def find(self, captured: bytes) -> BodyKey | None:
        """The longest rebuilt body that explains the captured one."""
        if len(captured) in self._known:
            key = BodyKey(len(captured), hashlib.sha256(captured).hexdigest())
            if key in self._keys:
                return key
        likely = {captured.rfind(name) + 1 for name in _EXTENSION_STARTS}
        return self._find(captured, sorted(likely & self._known)) or self._find(captured, self._sizes)

    def _find(self, captured: bytes, sizes: Sequence[int]) -> BodyKey | None:
        found: BodyKey | None = None
        digest, at = hashlib.sha256(), 0
        view = memoryview(captured)
        for size in sizes[: bisect_right(sizes, len(captured))]:
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


@dataclass(frozen=True, slots=True)
class Match:
    """The rebuilt body that a captured one starts with.

    Args:
        key: of the base body.
        whole: of that body with the extension fields that the log gives, where they agree as well.
        rest: what follows the last member of ``whole``, else of ``key``: a brace, or a comma and further members; None
            when it is too long to be kept.
        size_bytes: of the captured body.
    """

    key: BodyKey
    whole: BodyKey | None
    rest: bytes | None
    size_bytes: int

    @property
    def span(self) -> tuple[int, int] | None:
        """The events that a session log right behind the match says it holds: after one seq, up to another."""
        return None if self.rest is None else sent_span(self.rest)


def match_body(captured: bytes, finder: KeyFinder, bases: Mapping[BodyKey, BodyKey]) -> Match | None:
    """What a captured body starts with.

    Args:
        finder: knows base bodies and extended ones.
        bases: key of an extended body → that of its base.
    """
    found = finder.find(captured)
    if found is None:
        return None
    rest = captured[found.size_bytes - 1 :] if len(captured) - found.size_bytes < MAX_REST_BYTES else None
    base = bases.get(found)
    return Match(base or found, None if base is None else found, rest, len(captured))


class PrefixMeter:
    """How much of one captured body is the start of each of many rebuilt ones.

    Rebuilt bodies share their parts, so what was compared for one of them is not compared again for the next.
    """

    def __init__(self, captured: bytes) -> None:
        self.captured = captured
        self._runs: dict[tuple[int, bytes], tuple[int, int]] = {}

    def common(self, body: Body) -> int:
        """Bytes at the start that are the same."""
        head = b"".join(part.data for part in body.head)
        if not self.captured.startswith(head):
            return common_start(self.captured[: len(head)], head)
        at = len(head) + self._run(body, head)
        if at < len(head) + body.run.size(body.count):
            return at
        tail = b"".join(part.data for part in body.tail)
        return at + common_start(self.captured[at : at + len(tail)], tail)

    def _run(self, body: Body, head: bytes) -> int:
        """Equal bytes in the shared middle."""
        count, same = self._runs.get((id(body.run), head), (0, 0))
        if count < body.count and same == body.run.size(count):
            for part in body.run.slice(count, body.count):
                at = len(head) + same
                if not self.captured.startswith(part.data, at):
                    same += common_start(self.captured[at : at + len(part.data)], part.data)
                    break
                same, count = same + len(part.data), count + 1
            self._runs[id(body.run), head] = count, same
        return min(same, body.run.size(body.count))


def value_key(body: bytes) -> BodyKey | None:
    """Equal for bodies with the same JSON value, key order and extension fields aside.

    Its size is that of the value as JavaScript prints it, so of the rebuilt body that has this value: a body of another
    size needs no comparison. None when the body is no JSON object or too large to parse.
    """
    if len(body) > MAX_PARSED_BYTES:
        return None
    try:
        value = ecma.parse(body)
    except ecma.EcmaSyntaxError:
        return None
    if not isinstance(value, dict):
        return None
    for name in EXTENSION_KEYS:
        value.pop(name, None)
    return BodyKey(len(ecma.stringify(value)), hashlib.sha256(_print_sorted(value)).hexdigest())


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
