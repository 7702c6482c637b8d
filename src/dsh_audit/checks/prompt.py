"""What two rendered prompts have in common, and what of the later one was sent before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dsh_audit.checks.shared_prefix import common_prefix, first_different, is_before, pieces_from
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body
from dsh_audit.wire.prompt import Prompt

_CLOSERS = frozenset(b"]}")


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
    rest = b"".join(data for data, _ in pieces_from(earlier.messages, shared - earlier.head_bytes))[-left:]
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
    count = _resent_run if one.run is two.run and one.count and two.count else _resent_pieces
    total += count(one, shared - earlier.head_bytes, two, shared - later.head_bytes)
    return min(total, later.size_bytes - shared)


def _resent_pieces(one: Body, one_at: int, two: Body, two_at: int) -> int:
    """Bytes of the pieces of ``two`` behind an offset that ``one`` has behind one too."""
    # What closes a turn does not belong to the block before it.
    had = Counter(data.rstrip(b"]}") for data, _ in pieces_from(one, max(0, one_at)))
    total = 0
    for data, _ in pieces_from(two, max(0, two_at)):
        if had[data.rstrip(b"]}")]:
            had[data.rstrip(b"]}")] -= 1
            total += len(data)
    return total


def _resent_run(one: Body, one_at: int, two: Body, two_at: int) -> int:
    """The same for bodies over one run: its first parts are in both."""
    size = one.run.size(min(one.count, two.count))
    heads = [b"".join(part.data for part in body.head) for body in (one, two)]
    start, ends = len(heads[1]), [len(head) + size for head in heads]
    own = _shared_end(heads[0], heads[1], start - max(two_at, 0)) if two_at < start else 0
    open_one, open_two = (replace(body, tail=body.tail[:-1]) for body in (one, two))
    rest = _resent_pieces(open_one, max(one_at, ends[0]), open_two, max(two_at, ends[1]))
    return own + max(0, ends[1] - max(two_at, start)) + rest


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
