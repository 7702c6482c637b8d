"""Pairs of two ordered lists: equal keys first, then the order of what is left between them.

Pure index arithmetic; what the items are is the business of the caller. Equal keys alone cannot tell repeated items
apart (a retry sends the same bytes again), so among equals those are chosen that leave a place, in order, for the odd
items around them; then order and likeness decide between the sure pairs, never across them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

MAX_CELLS = 2500
"""Largest gap (items times items) that is aligned by likeness; larger ones are paired in order."""


def pair_equal(
    left: Sequence[Hashable | None], right: Sequence[Iterable[Hashable]], required: Sequence[bool]
) -> list[tuple[int, int]]:
    """Pair items with a common key; among equals the order is kept and required ones come first.

    Args:
        left: the key of each item; None never pairs.
        right: the keys that each item may have.
        required: for each right item, whether it should be paired if any of its equals is.

    Returns:
        (left index, right index), each index at most once, by left index.
    """
    offers: dict[Hashable, list[int]] = {}
    for index, keys in enumerate(right):
        for key in keys:
            offers.setdefault(key, []).append(index)
    wanted: dict[Hashable, list[int]] = {}
    for index, key in enumerate(left):
        if key is not None and key in offers:
            wanted.setdefault(key, []).append(index)
    odd_left = _Runs([key not in offers for key in left])
    odd_right = _Runs([not any(key in wanted for key in keys) for keys in right])
    used: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for key, indices in wanted.items():
        free = [index for index in offers[key] if index not in used]
        chosen = _spread(free, indices, odd_left, odd_right)
        chosen = chosen or choose(free, len(indices), required.__getitem__)
        used.update(chosen)
        pairs.extend(zip(indices, chosen, strict=False))
    return sorted(pairs)


class _Runs:
    """How many items that equal nothing stand directly before and after each place."""

    def __init__(self, odd: Sequence[bool]) -> None:
        self.before = self._count(odd)
        self.after = self._count(odd[::-1])[::-1]

    @staticmethod
    def _count(odd: Sequence[bool]) -> list[int]:
        runs, run = [], 0
        for flag in odd:
            runs.append(run)
            run = run + 1 if flag else 0
        return runs


def _spread(free: Sequence[int], indices: Sequence[int], left: _Runs, right: _Runs) -> list[int]:
    """Choose among more equals than needed so that the odd items around them find a place in order.

    Empty when there are none, or no more equals than needed.
    """
    spare, place, chosen = len(free) - len(indices), 0, []
    if spare <= 0:
        return []
    for index in indices:
        skip = min(spare, max(0, left.before[index] - right.before[free[place]]))
        place, spare = place + skip, spare - skip
        chosen.append(free[place])
        place += 1
    has_odd_after = left.after[indices[-1]] > right.after[free[-1]]
    return chosen if has_odd_after or chosen != list(free[: len(chosen)]) else []


def choose(items: Sequence[int], count: int, is_required: Callable[[int], bool]) -> list[int]:
    """At most ``count`` of the items, required ones before others, in their order."""
    ranked = sorted(range(len(items)), key=lambda place: (not is_required(items[place]), place))
    return [items[place] for place in sorted(ranked[:count])]


def longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most pairs, sorted by the first number, whose second numbers increase as well."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for place, (_, value) in enumerate(pairs):
        slot = bisect_left(tails, value)
        previous.append(ends[slot - 1] if slot else -1)
        tails[slot : slot + 1] = [value]
        ends[slot : slot + 1] = [place]
    chain: list[tuple[int, int]] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        chain.append(pairs[place])
        place = previous[place]
    return chain[::-1]


def gaps(
    anchors: Sequence[tuple[int, int]], left: Sequence[int], right: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """What is left on both sides between neighbouring anchors; gaps with an empty side are left out.

    Args:
        anchors: increasing in both numbers.
        left: increasing indices without a pair.
        right: the same of the other side.
    """
    lefts, rights = [one for one, _ in anchors], [other for _, other in anchors]
    found: dict[int, tuple[list[int], list[int]]] = {}
    for index in left:
        found.setdefault(bisect_left(lefts, index), ([], []))[0].append(index)
    for index in right:
        found.setdefault(bisect_left(rights, index), ([], []))[1].append(index)
    return [found[gap] for gap in sorted(found) if all(found[gap])]


def pair_in_order(
    left: Sequence[int], right: Sequence[int], likeness: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """As many pairs as fit, in order on both sides, of the greatest likeness in sum.

    Args:
        likeness: of a left and a right item, 0 to 1; asked once for each pair of items.
    """
    best: list[list[tuple[int, float]]] = [[(0, 0.0)] * (len(right) + 1) for _ in range(len(left) + 1)]
    cells = [[likeness(one, other) for other in right] for one in left]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            count, total = best[i + 1][j + 1]
            best[i][j] = max((count + 1, total + cells[i][j]), best[i][j + 1], best[i + 1][j])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        count, total = best[i + 1][j + 1]
        if best[i][j] == (count + 1, total + cells[i][j]):
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    return pairs


def common_items(left: Sequence[T], right: Sequence[T], same: Callable[[T, T], bool]) -> tuple[int, int]:
    """How many items at the start, and then at the end without overlap, are the same on both sides."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and same(left[start], right[start]):
        start += 1
    end = 0
    while end < shorter - start and same(left[-1 - end], right[-1 - end]):
        end += 1
    return start, end
