"""The prompt of a body in the order a provider renders it: tools → system → messages.

The rendered prompt of a body is defined as the concatenation of three segments of JSON text, cut from the body:

1. *tools*: the value of ``tools``, without tools that are declared for later (``defer_loading``);
2. *system*: the value of ``system`` or ``instructions``; empty where the system text is a message;
3. *messages*: the value of ``messages`` or ``input``.

Cache markers (``cache_control``) are removed from all of it, and a message whose content is one text block counts
as that text where such markers occur, because markers turn one form into the other. The other members of a body
(settings) are not part of the prompt. Source: caching 4a, 4b (tools → system → messages whatever the key order).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from dsh_audit.checks.layout import LayoutScanner
from dsh_audit.checks.shared_prefix import common_prefix, cut, first_different, fragments_from, is_before
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body, Fragment

_MARKER = re.compile(rb'(?:,"cache_control":\{[^{}]*\}|"cache_control":\{[^{}]*\},?)')
_ONE_TEXT = re.compile(rb'"content":\[\{"type":"text","text":("(?:[^"\\]|\\.)*+")\}\]', re.DOTALL)
_CLOSERS = frozenset(b"]}")

MESSAGE_KEYS = ("messages", "input")
SYSTEM_KEYS = ("system", "instructions")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The rendered prompt of one body.

    Args:
        tools, system: segments as bytes.
        messages: the third segment; runs stay shared with the body.
        tools_at, system_at, messages_at: where each segment starts in the body; None where it is absent.
        system_key, messages_key: the members they were cut from.
        verbatim: no marker was removed, so that offsets in the segment are offsets in the body.
    """

    tools: bytes
    system: bytes
    messages: Body
    tools_at: int | None
    system_at: int | None
    messages_at: int | None
    system_key: str | None
    messages_key: str | None
    verbatim: bool = True

    @property
    def size_bytes(self) -> int:
        """Length of the rendered prompt."""
        return len(self.tools) + len(self.system) + self.messages.size_bytes

    def leading(self) -> bytes:
        """The system text at the head: the system segment, else the first message where that holds one."""
        if self.system:
            return self.system
        first = next((f.data for f in self.messages.fragments() if f.data not in (b"", b"[")), b"").removeprefix(b"[")
        return first if first.startswith((b'{"role":"system"', b'{"role":"developer"')) else b""

    @property
    def head_bytes(self) -> int:
        """Length of tools and system."""
        return len(self.tools) + len(self.system)


class PromptReader:
    """Cuts the prompts out of the bodies of one session."""

    def __init__(self, layouts: LayoutScanner) -> None:
        self._layouts = layouts
        self._tools: dict[bytes, bytes] = {}

    def read(self, body: Body) -> Prompt:
        """The rendered prompt of a body; empty segments where it has no such member."""
        spans = self._layouts.scan(body).spans
        system_key = next((key for key in SYSTEM_KEYS if key in spans), None)
        messages_key = next((key for key in MESSAGE_KEYS if key in spans), None)
        tools, system, messages = (spans.get(key or "") for key in ("tools", system_key, messages_key))
        inside = _value(body, messages, self._layouts) if messages else Body.of(())
        verbatim = not any(b'"cache_control"' in f.data for f in body.tail)
        if not verbatim:
            inside = Body.of(Fragment(_canonical(f.data), f.seq) for f in inside.fragments())
        return Prompt(
            tools=self._tools_segment(_bytes(body, tools)),
            system=_unmarked(_bytes(body, system)),
            messages=inside,
            tools_at=tools[0] if tools else None,
            system_at=system[0] if system else None,
            messages_at=messages[0] if messages else None,
            system_key=system_key,
            messages_key=messages_key,
            verbatim=verbatim,
        )

    def _tools_segment(self, data: bytes) -> bytes:
        if b'"defer_loading"' not in data and b'"cache_control"' not in data:
            return data
        known = self._tools.get(data)
        if known is None:
            known = self._tools[data] = _offered(_unmarked(data))
            if len(self._tools) > 256:
                self._tools = {data: known}
        return known


def _offered(data: bytes) -> bytes:
    """The tools that are offered at the head: without those declared for later."""
    try:
        tools = ecma.parse(data)
    except ValueError:
        return data
    if not isinstance(tools, list) or not any(_is_deferred(tool) for tool in tools):
        return data
    kept = [tool for tool in tools if not _is_deferred(tool)]
    return ecma.stringify(kept)


def _is_deferred(tool: object) -> bool:
    return isinstance(tool, dict) and tool.get("defer_loading") is True


def _unmarked(data: bytes) -> bytes:
    return _MARKER.sub(b"", data) if b'"cache_control"' in data else data


def _canonical(data: bytes) -> bytes:
    return _ONE_TEXT.sub(rb'"content":\1', _unmarked(data))


def _bytes(body: Body, span: tuple[int, int] | None) -> bytes:
    """The bytes of a span that does not reach into the run, as every tools and system value."""
    if span is None:
        return b""
    head = sum(len(f.data) for f in body.head)
    if span[1] <= head:
        return b"".join(f.data for f in cut(body.head, *span))
    shift = head + (body.run.size(body.count) if body.count else 0)
    if span[0] >= shift:
        parts = cut(body.tail, span[0] - shift, span[1] - shift)
        return parts[0].data if len(parts) == 1 else b"".join(f.data for f in parts)
    return body.to_bytes()[span[0] : span[1]]


def _value(body: Body, span: tuple[int, int], layouts: LayoutScanner) -> Body:
    """A value of a body as a body that shares the same run, or a run cut from it."""
    start, end = span
    head_size = sum(len(f.data) for f in body.head)
    shift = head_size + (body.run.size(body.count) if body.count else 0)
    if not body.count:
        return Body.of(cut((*body.head, *body.tail), start, end))
    if start >= shift:
        return Body.of(cut(body.tail, start - shift, end - shift))
    if end < shift:
        return Body.of(cut(body.fragments(), start, end))
    tail = cut(body.tail, 0, end - shift)
    if start <= head_size:
        return Body(cut(body.head, start, head_size), body.run, body.count, tail)
    run, count = layouts.run_from(body, start - head_size)
    return Body((), run, count, tail)


def shared_prefix(one: Prompt, two: Prompt) -> int:
    """How many bytes two rendered prompts have in common at the start."""
    for a, b, before in ((one.tools, two.tools, 0), (one.system, two.system, len(one.tools))):
        if a is not b and a != b:
            # A JSON value is never the start of another, so the prompts part here even where one segment is empty.
            return before + first_different(a, b)
    return one.head_bytes + common_prefix(one.messages, two.messages)


def extends(earlier: Prompt, later: Prompt, shared: int) -> bool:
    """Whether ``later`` goes on where ``earlier`` ended; closing brackets of the last message aside."""
    left = earlier.size_bytes - shared
    if left == 0:
        return True
    if left > 8 or shared < earlier.head_bytes:
        return False
    rest = b"".join(f.data for f in fragments_from(earlier.messages, shared - earlier.head_bytes))[-left:]
    return all(byte in _CLOSERS for byte in rest)


def resent_bytes(earlier: Prompt, later: Prompt, shared: int) -> int:
    """Bytes of ``later`` behind the shared prefix that ``earlier`` held too, in pieces as the log gave them."""
    if shared >= later.size_bytes:
        return 0
    total = 0
    if shared < len(later.tools):
        total += _resent_tools(earlier.tools, later.tools, shared)
    if shared < later.head_bytes:
        total += _shared_end(earlier.system, later.system, later.head_bytes - max(shared, len(later.tools)))
    one, two = earlier.messages, later.messages
    if one.run is two.run and one.count and two.count:
        total += _resent_run(earlier, later, shared)
    else:
        total += _resent_pieces(earlier, later, shared)
    return min(total, later.size_bytes - shared)


def _resent_pieces(earlier: Prompt, later: Prompt, shared: int) -> int:
    had = Counter(f.data for f in fragments_from(earlier.messages, max(0, shared - earlier.head_bytes)))
    total = 0
    for fragment in fragments_from(later.messages, max(0, shared - later.head_bytes)):
        if had[fragment.data]:
            had[fragment.data] -= 1
            total += len(fragment.data)
    return total


def _resent_run(earlier: Prompt, later: Prompt, shared: int) -> int:
    """The same for prompts over one run: its first fragments are in both."""
    one, two = earlier.messages, later.messages
    count = min(one.count, two.count)
    heads = [b"".join(f.data for f in body.head) for body in (one, two)]
    start = later.head_bytes + len(heads[1])
    end = start + two.run.size(count)
    own = _shared_end(heads[0], heads[1], start - max(shared, later.head_bytes)) if shared < start else 0
    return own + max(0, end - max(shared, start))


def _resent_tools(earlier: bytes, later: bytes, shared: int) -> int:
    """Bytes of the tools behind the first difference that the earlier list had too."""
    if earlier == later:
        return len(later) - shared
    had = Counter(_elements(earlier))
    total, at = 0, 1
    for element in _elements(later):
        if at >= shared and had[element]:
            had[element] -= 1
            total += len(element)
        at += len(element) + 1
    return total


def _elements(data: bytes) -> list[bytes]:
    try:
        tools = ecma.parse(data) if data else []
    except ValueError:
        return []
    return [ecma.stringify(tool) for tool in tools] if isinstance(tools, list) else []


def _shared_end(earlier: bytes, later: bytes, limit: int) -> int:
    """How many of the last ``limit`` bytes of ``later`` end ``earlier`` too."""
    if earlier == later:
        return limit
    limit = min(limit, len(earlier))
    return first_different(earlier[len(earlier) - limit :][::-1], later[len(later) - limit :][::-1])


def is_prompt_before(one: Prompt, two: Prompt) -> bool:
    """Whether a prompt sorts before another, segment by segment as bytes."""
    if one.tools != two.tools:
        return one.tools < two.tools
    if one.system != two.system:
        return one.system < two.system
    return is_before(one.messages, two.messages)
