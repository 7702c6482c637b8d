from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_audit.text.alignment import choose, common_items, gaps, longest_increasing, pair_equal, pair_in_order


@pytest.mark.parametrize(
    ("left", "right", "optional", "pairs"),
    [
        ("abc", "abc", "", [(0, 0), (1, 1), (2, 2)]),
        ("ac", "abc", "", [(0, 0), (1, 2)]),
        ("aab", "aab", "", [(0, 0), (1, 1), (2, 2)]),
        ("aaa", "aa", "", [(0, 0), (1, 1)]),
        ("ba", "ab", "", [(0, 1), (1, 0)]),
        ("a", "aa", "0", [(0, 1)]),  # a dispatch that may have sent nothing is passed over
        ("a", "aa", "1", [(0, 0)]),
        ("a", "aa", "01", [(0, 0)]),
        ("?a", "aa", "", [(1, 1)]),  # the first of two equal attempts was altered
        ("a?", "aa", "0", [(0, 0)]),  # … or the second
        ("a?a", "aaa", "", [(0, 0), (2, 2)]),
        ("?a", "xaa", "", [(1, 1)]),  # the odd one has a place of its own
        ("??", "aa", "", []),
        ("", "a", "", []),
    ],
)
def test_pair_equal(left: str, right: str, optional: str, pairs: list[Any]) -> None:
    keys = [None if key == "?" else key for key in left]
    assert pair_equal(keys, list(right), [str(i) not in optional for i in range(len(right))]) == pairs


def test_an_item_with_alternatives_is_used_once() -> None:
    assert pair_equal(["x", "y"], [("x", "y"), ("y",)], [True, True]) == [(0, 0), (1, 1)]


KEYS = st.lists(st.sampled_from("abc") | st.none(), max_size=8)


@given(KEYS, st.lists(st.sets(st.sampled_from("abc")), max_size=8), st.lists(st.booleans(), min_size=8))
def test_pair_equal_is_a_matching(left: list[Any], right: list[set[str]], required: list[bool]) -> None:
    pairs = pair_equal(left, [sorted(keys) for keys in right], required)
    assert all(left[one] in right[other] for one, other in pairs)
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)


@given(st.lists(st.integers(0, 20), max_size=8, unique=True))
def test_longest_increasing(values: list[int]) -> None:
    pairs = list(enumerate(values))
    chain = longest_increasing(pairs)
    assert set(chain) <= set(pairs)
    assert sorted(chain) == chain == sorted(chain, key=lambda pair: pair[1])
    longest = [0] * len(values)
    for i, value in enumerate(values):
        longest[i] = 1 + max((longest[j] for j in range(i) if values[j] < value), default=0)
    assert len(chain) == max(longest, default=0)


def test_gaps() -> None:
    assert gaps([(1, 2), (4, 3)], [0, 2, 3, 5, 6], [0, 1, 4]) == [([0], [0, 1]), ([5, 6], [4])]
    assert gaps([], [0], []) == []


def test_choose() -> None:
    assert choose([5, 6, 7], 2, lambda item: item != 6) == [5, 7]
    assert choose([5, 6, 7], 2, lambda item: item == 7) == [5, 7]
    assert choose([5], 2, lambda _: False) == [5]


@pytest.mark.parametrize(
    ("likeness", "pairs"),
    [
        ([[0.9, 0.1, 0.1], [0.1, 0.1, 0.9]], [(0, 0), (1, 2)]),
        ([[0.1, 0.9]], [(0, 1)]),
        ([[0.1], [0.9]], [(1, 0)]),
        ([[0.0], [0.0]], [(0, 0)]),
        ([[0.1, 0.9], [0.9, 0.1]], [(0, 0), (1, 1)]),  # as many as fit, never crossing
        ([], []),
    ],
)
def test_pair_in_order(likeness: list[list[float]], pairs: list[Any]) -> None:
    rights = range(len(likeness[0])) if likeness else ()
    assert pair_in_order(range(len(likeness)), list(rights), lambda i, j: likeness[i][j]) == pairs


def test_common_items_do_not_overlap() -> None:
    assert common_items("abc", "abxc", str.__eq__) == (2, 1)
    assert common_items("aaa", "aa", str.__eq__) == (2, 0)
    assert common_items("", "a", str.__eq__) == (0, 0)
