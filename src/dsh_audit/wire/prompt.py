"""The prompt of a body: the same parts in the order in which a provider renders and caches them.

The rendered prompt is the concatenation of three segments of JSON text:

1. *tools*: the value of ``tools``, without tools that are declared for later (``defer_loading``);
2. *system*: the value of ``system`` or ``instructions``; empty where the system text is the first message;
3. *messages*: the value of ``messages`` or ``input``.

Cache markers (``cache_control``) are removed from all of it, and a message whose content is one text block counts
as that text where such markers occur, because markers turn one form into the other. The other members of a body
(settings) are not part of the prompt. Source: caching 4a, 4b (tools → system → messages whatever the key order).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.parts import MESSAGE_KEYS, SYSTEM_KEYS, Part

_MARKER = re.compile(rb'(?:,"cache_control":\{[^{}]*\}|"cache_control":\{[^{}]*\},?)')
_ONE_TEXT = re.compile(rb'"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*+")\}\]', re.DOTALL)
_KEPT_RUNS = 4
_BRACKETS = {name: Part(b"[", "mark", name, (name,), lead=1) for name in ("tools", *MESSAGE_KEYS)}


@dataclass(frozen=True, slots=True)
class Prompt:
    """The rendered prompt of one body.

    Args:
        body: the one it was cut from.
        tools, system: segments as bytes.
        messages: the third segment; runs stay shared with the body.
        tools_at, system_at, messages_at: where each segment starts in the body; None where it is absent.
        verbatim: no marker was removed, so that offsets in the segment are offsets in the body.
    """

    body: Body
    tools: bytes
    system: bytes
    messages: Body
    tools_at: int | None
    system_at: int | None
    messages_at: int | None
    verbatim: bool = True

    @property
    def size_bytes(self) -> int:
        """Length of the rendered prompt."""
        return self.head_bytes + self.messages.size_bytes

    @property
    def head_bytes(self) -> int:
        """Length of tools and system."""
        return len(self.tools) + len(self.system)

    def leading(self) -> bytes:
        """The system text at the head: the system segment, else the first message where that holds one."""
        if self.system:
            return self.system
        first = next((part for part in self.messages.parts() if part.kind != "mark"), None)
        return first.value if first is not None and first.kind == "system" else b""

    def message_at(self, at: int) -> Part:
        """The message that holds byte ``at`` of the rendered prompt, which lies behind tools and system."""
        return self.messages.find(at - self.head_bytes)[0]

    def place(self, at: int) -> tuple[int | None, str]:
        """Offset in the body (None where markers moved it), and JSON pointer, of byte ``at`` of the prompt."""
        if at < self.head_bytes:
            in_tools = at < len(self.tools)
            start = self.tools_at if in_tools else self.system_at
            offset = at if in_tools else at - len(self.tools)
            assert start is not None
            return start + offset, self.body.pointer_at(start + offset)
        offset = at - self.head_bytes
        if self.verbatim and self.messages_at is not None:
            return self.messages_at + offset, self.body.pointer_at(self.messages_at + offset)
        return None, self.messages.pointer_at(offset) if self.messages.tail else "/messages"


class PromptReader:
    """Gives the prompts of the bodies of one session."""

    def __init__(self) -> None:
        self._tools: tuple[tuple[Part, ...], bytes] = ((), b"")
        self._plain_runs: dict[PartRun, PartRun] = {}

    def read(self, body: Body) -> Prompt:
        """The rendered prompt of a body; empty segments where it has no such member."""
        found = _Segments()
        found.take(body.head, 0)
        in_head = len(found.messages)
        found.take(body.tail, _size(body.head) + body.run.size(body.count))
        verbatim = not any(b'"cache_control"' in part.data for part in body.tail)
        before, after = tuple(found.messages[:in_head]), tuple(found.messages[in_head:])
        run = body.run
        if not verbatim:
            before, run, after = tuple(map(_plain, before)), self._plain(body), tuple(map(_plain, after))
        tools = tuple(found.tools)
        if self._tools[0] != tools:
            self._tools = (tools, _offered(tools))
        return Prompt(
            body=body,
            tools=self._tools[1],
            system=_unmarked(found.system.value) if found.system is not None else b"",
            messages=Body(before, run, body.count, after),
            tools_at=found.starts.get("tools"),
            system_at=found.starts.get("system"),
            messages_at=found.starts.get("messages"),
            verbatim=verbatim,
        )

    def _plain(self, body: Body) -> PartRun:
        """A copy of the body's run without markers, made once a part."""
        plain = self._plain_runs.pop(body.run, None) or PartRun()
        self._plain_runs[body.run] = plain
        if len(self._plain_runs) > _KEPT_RUNS:
            del self._plain_runs[next(iter(self._plain_runs))]
        for part in body.run.slice(len(plain), body.count):
            plain.append(_plain(part))
        return plain


class _Segments:
    """Collects the parts of a prompt from those of a body."""

    def __init__(self) -> None:
        self.tools: list[Part] = []
        self.system: Part | None = None
        self.messages: list[Part] = []
        self.starts: dict[str, int] = {}

    def take(self, parts: Iterable[Part], at: int) -> None:
        for part in parts:
            key = part.path[0] if part.path else ""
            if key == "tools":
                self.tools.append(self._first("tools", part, at))
            elif key in SYSTEM_KEYS:
                self.system = self._first("system", part, at)
            elif key in MESSAGE_KEYS:
                self.messages.append(self._first("messages", part, at))
            at += len(part.data)

    def _first(self, segment: str, part: Part, at: int) -> Part:
        """The part; the first one of a segment without the name of its member."""
        if segment in self.starts:
            return part
        lead = part.lead - (part.kind == "mark")
        self.starts[segment] = at + lead
        if part.kind == "mark":
            return _BRACKETS[part.name]
        return replace(part, data=part.data[lead:], lead=part.lead - lead)


def _offered(parts: tuple[Part, ...]) -> bytes:
    """The tools that are offered at the head: without those declared for later."""
    data = [_unmarked(part.data) for part in parts]
    kept = [part for part in parts if part.kind == "mark" or not _is_deferred(part)]
    if len(kept) < len(parts):
        items = [_unmarked(part.value) for part in kept if part.kind != "mark"]
        return b"[" + b",".join(items) + b"]"
    return b"".join(data)


def _is_deferred(part: Part) -> bool:
    if b'"defer_loading"' not in part.data:
        return False
    try:
        tool = ecma.parse(part.value)
    except ecma.EcmaSyntaxError:
        return False
    return isinstance(tool, dict) and tool.get("defer_loading") is True


def _unmarked(data: bytes) -> bytes:
    return _MARKER.sub(b"", data) if b'"cache_control"' in data else data


def _plain(part: Part) -> Part:
    data = _ONE_TEXT.sub(rb'"content":\1', _unmarked(part.data))
    if data == part.data:
        return part
    if not part.ends:
        return replace(part, data=data)
    pieces = [_ONE_TEXT.sub(rb'"content":\1', _unmarked(piece)) for piece, _ in part.pieces()]
    joined = b"".join(pieces)
    ends = tuple(accumulate(map(len, pieces))) if joined == data else ()
    return replace(part, data=data, ends=ends, seqs=part.seqs if ends else part.seqs[:1])


def _size(parts: Iterable[Part]) -> int:
    return sum([len(part.data) for part in parts])
