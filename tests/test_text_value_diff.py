from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_audit.text.ecma import same_json
from dsh_audit.text.value_diff import MAX_CHANGES, MAX_EXCERPT, find_changes, first_key_order_difference


@pytest.mark.parametrize(
    ("captured", "replayed", "expected"),
    [
        (1, 1.0, []),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, []),
        (1, True, [("changed", "", "1", "true")]),
        ({"a": 1}, {"a": "1"}, [("changed", "/a", "1", '"1"')]),
        ({"a": 1, "n": 2}, {"a": 1}, [("only-captured", "/n", "2", None)]),
        ({"a": 1}, {"a": 1, "n": {}}, [("only-replayed", "/n", None, "{}")]),
        ([1, 2, 3], [1, 3], [("only-captured", "/1", "2", None)]),
        ([1, 3], [1, 2, 3], [("only-replayed", "/1", None, "2")]),
        ([], [1], [("only-replayed", "/0", None, "1")]),
        ([{"x": 1}, 5], [{"x": 2}], [("changed", "/0/x", "1", "2"), ("only-captured", "/1", "5", None)]),
        ({"a": {}}, {"a": []}, [("changed", "/a", "{}", "[]")]),
    ],
)
def test_changes(captured: Any, replayed: Any, expected: list[Any]) -> None:
    changes = find_changes(captured, replayed)
    assert [(c.kind, c.pointer, c.captured, c.replayed) for c in changes] == expected


def test_texts_are_shown_around_the_difference() -> None:
    (change,) = find_changes("x" * 5000 + "a" + "y" * 99, "x" * 5000 + "b")
    assert change.captured is not None and change.captured.startswith('…"xxx') and "a" in change.captured
    assert change.replayed is not None and change.replayed.endswith('xb"')
    (change,) = find_changes(list(range(1000)), None)
    assert change.captured is not None and len(change.captured) < MAX_EXCERPT + 40
    assert change.captured.endswith("… (3891 characters)")


@pytest.mark.parametrize(
    ("captured", "replayed", "path"),
    [
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"y": 2, "x": 1}]}, ("a", 0)),
        ({"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": 1}}, None),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ()),
    ],
)
def test_key_order(captured: Any, replayed: Any, path: Any) -> None:
    assert first_key_order_difference(captured, replayed) == path


def test_hash_order_does_not_show() -> None:
    code = (
        "from dsh_audit.text.value_diff import find_changes\n"
        "left = [{'x': 1, 'name': 'b', 'p': ['q', 'r']}, 5, 'six', {'y': [1, 2]}]\n"
        "right = [{'x': 2, 'n': 'a', 'p': ['r']}, {'y': [2]}]\n"
        "print(find_changes(left, right, limit=99))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 6)
    }
    assert len(outputs) == 1


def deep(leaf: Any, depth: int = 20_000) -> Any:
    for _ in range(depth):
        leaf = [leaf, 0] if leaf == "long" else [leaf]
    return leaf


@pytest.mark.parametrize(
    ("captured", "replayed"),
    [
        (deep(1), deep(2)),
        (deep("long"), deep("other")),
        (list(range(100_000)), list(range(1, 100_000, 2))),
        ([["a" * 50, str(i)] for i in range(5000)], [["a" * 50, str(-i)] for i in range(4000)]),
        ("x\n" * 200_000, "y\n" * 200_000),
        ({str(i): i for i in range(50_000)}, {str(i): -i for i in range(50_000)}),
    ],
)
def test_bounded(captured: Any, replayed: Any) -> None:
    start = time.perf_counter()
    assert 1 <= len(find_changes(captured, replayed)) <= MAX_CHANGES
    assert time.perf_counter() - start < 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(JSON, JSON)
def test_empty_exactly_when_same(captured: Any, replayed: Any) -> None:
    assert (not find_changes(captured, replayed)) == same_json(captured, replayed)
