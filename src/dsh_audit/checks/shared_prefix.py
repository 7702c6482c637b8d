"""Common prefix and order of two bodies without joining them.

Two bodies over one ``PartRun`` share its first parts, so those are skipped at once; elsewhere parts are compared by
identity, then as bytes. Cost: what the bodies do not share, plus one step per part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsh_audit.wire.body import Body
from dsh_audit.wire.parts import Part, Piece


def common_prefix(one: Body, two: Body) -> int:
    """How many bytes two bodies have in common at the start."""
    shared, _, _ = _walk(one, two)
    return shared


def is_before(one: Body, two: Body) -> bool:
    """Whether ``one`` sorts before ``two`` as bytes."""
    _, left, right = _walk(one, two)
    return left < right


def first_different(one: bytes | memoryview, two: bytes | memoryview) -> int:
    """Index of the first byte that differs, the shorter length when none does; halves, so runs compare at once."""
    high = min(len(one), len(two))
    if one[:high] == two[:high]:
        return high
    low, step = 0, 64
    while one[low : low + step] == two[low : low + step]:
        low += step
        step *= 2
    high = min(high, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _walk(one: Body, two: Body) -> tuple[int, int, int]:
    """Common bytes, then the next byte of either side (-1 at the end)."""
    shared = 0
    left, right = _pieces(one), _pieces(two)
    if one.run is two.run and one.count and two.count:
        head_one, head_two = (b"".join(part.data for part in body.head) for body in (one, two))
        if head_one == head_two:
            count = min(one.count, two.count)
            shared = len(head_one) + one.run.size(count)
            left, right = _pieces_after(one, count), _pieces_after(two, count)
    return _walk_pieces(left, right, shared)


def _walk_pieces(left: Iterator[bytes], right: Iterator[bytes], shared: int) -> tuple[int, int, int]:
    a: bytes | memoryview = b""
    b: bytes | memoryview = b""
    while True:
        if not len(a):
            a = next(left, b"")
        if not len(b):
            b = next(right, b"")
        if not len(a) or not len(b):
            return shared, a[0] if len(a) else -1, b[0] if len(b) else -1
        if a is b or (len(a) == len(b) and a == b):
            shared += len(a)
            a = b = b""
            continue
        length = min(len(a), len(b))
        view_a, view_b = memoryview(a), memoryview(b)
        if view_a[:length] != view_b[:length]:
            at = first_different(view_a, view_b)
            return shared + at, a[at], b[at]
        shared += length
        a, b = view_a[length:], view_b[length:]


def _pieces(body: Body) -> Iterator[bytes]:
    return (part.data for part in body.parts() if part.data)


def _pieces_after(body: Body, count: int) -> Iterator[bytes]:
    yield from (part.data for part in (*body.run.slice(count, body.count), *body.tail) if part.data)


def pieces_from(body: Body, at: int) -> Iterator[Piece]:
    """The pieces of a body that end after byte ``at``, in order; costs what it gives."""
    head_size = sum(len(part.data) for part in body.head)
    run_size = body.run.size(body.count)
    parts: Iterable[Part] = body.tail
    stop = head_size + run_size
    if at < head_size:
        parts, stop = body.parts(), 0
    elif at < stop:
        first = body.run.index_at(at - head_size, body.count)
        parts, stop = (*body.run.slice(first, body.count), *body.tail), head_size + body.run.size(first)
    for part in parts:
        for piece in part.pieces():
            stop += len(piece[0])
            if stop > at and piece[0]:
                yield piece
