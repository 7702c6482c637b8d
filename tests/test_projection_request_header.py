"""Canonical request headers and their equality, one table each; random ones are compared in tests/harness."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.events import Event
from dsh_audit.projection.equality import same_text, same_value
from dsh_audit.projection.request_header import (
    canonical_header,
    fold_request_context,
    fold_request_header,
    header_equals,
)
from dsh_audit.projection.surface import ProjectionError, Rejection

CONFIG = {"provider": "p", "model": "m"}
TOOL = {"name": "t", "parameters": {"a": 1, "b": 2}}

CANONICAL: list[tuple[dict[str, Any], list[str]]] = [
    ({"config": CONFIG}, ["config"]),
    ({"tools": [TOOL], "system": "s", "config": CONFIG}, ["config", "system", "tools"]),
    ({"config": CONFIG, "system": "", "tools": [], "adapterDefaults": {}}, ["config"]),
    ({"config": CONFIG, "adapterDefaults": {"maxTokens": True}}, ["config", "adapterDefaults"]),
    ({"config": CONFIG, "adapterDefaults": {"maxTokens": False}}, ["config"]),
    ({"config": CONFIG, "messagePrefix": []}, ["config"]),
]


@pytest.mark.parametrize(("header", "keys"), CANONICAL)
def test_canonical_header(header: dict[str, Any], keys: list[str]) -> None:
    canonical = canonical_header(header)
    assert list(canonical) == keys
    assert all(canonical[key] is header[key] for key in keys)
    assert canonical_header(canonical) == canonical


EQUAL: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"config": {"provider": "p", "model": "m"}}, {"config": {"model": "m", "provider": "p"}}, True),
    ({"config": {**CONFIG, "extra": 1}}, {"config": CONFIG}, True),
    ({"config": {**CONFIG, "temperature": 1}}, {"config": {**CONFIG, "temperature": 1.0}}, True),
    ({"config": {**CONFIG, "temperature": 1}}, {"config": {**CONFIG, "temperature": True}}, False),
    ({"config": {**CONFIG, "temperature": None}}, {"config": CONFIG}, False),
    ({"config": {**CONFIG, "stop": []}}, {"config": CONFIG}, False),
    ({"config": {**CONFIG, "stop": ["a"]}}, {"config": {**CONFIG, "stop": ["a"]}}, True),
    ({"config": {**CONFIG, "stop": ["a"]}}, {"config": {**CONFIG, "stop": ["a", "b"]}}, False),
    ({"config": CONFIG, "adapterDefaults": {"maxTokens": True}}, {"config": CONFIG}, False),
    ({"config": CONFIG, "system": "s"}, {"config": CONFIG}, False),
    ({"config": CONFIG, "tools": []}, {"config": CONFIG}, True),
    ({"config": CONFIG, "tools": [TOOL]}, {"config": CONFIG, "tools": [dict(TOOL)]}, True),
    (
        {"config": CONFIG, "tools": [TOOL]},
        {"config": CONFIG, "tools": [{**TOOL, "parameters": {"b": 2, "a": 1}}]},
        False,
    ),
]


@pytest.mark.parametrize(("one", "two", "equal"), EQUAL)
def test_header_equals(one: dict[str, Any], two: dict[str, Any], equal: bool) -> None:
    assert header_equals(one, two) is equal
    assert header_equals(two, one) is equal


@pytest.mark.parametrize(
    ("one", "two", "value", "printed"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, False),
        ({"a": 1, "b": 1}, {"b": 1, "a": 1}, True, False),
        (0, -0.0, True, True),
        (1, True, False, False),
        (float("inf"), None, False, True),
        (float("nan"), float("-inf"), False, True),
        ([1, 2], [1], False, False),
        ([1], {"0": 1}, False, False),
        ({"a": 1}, {"a": 1, "b": 1}, False, False),
        ("1", 1, False, False),
    ],
)
def test_equalities(one: Any, two: Any, value: bool, printed: bool) -> None:
    assert (same_value(one, two), same_text(one, two)) == (value, printed)


def test_equality_has_no_depth_limit() -> None:
    one: Any = 0
    two: Any = 0
    for _ in range(50_000):
        one, two = [one], [two]
    assert same_value(one, two) and same_text(one, two) and not same_text([one], two)


def test_the_last_one_of_the_prefix_is_in_force() -> None:
    events = [
        Event("request/header", 0, 0, {"header": {"config": CONFIG, "tools": []}}),
        Event("request/context", 1, 0, {"model": "x"}),
        Event("request/header", 2, 0, {"header": {"config": {**CONFIG, "model": "n"}}}),
        Event("request/context", 3, 0, {"model": "y"}),
    ]
    headers = [fold_request_header(events, through) for through in range(-1, 4)]
    assert [header and header["config"]["model"] for header in headers] == [None, "m", "m", "n", "n"]
    contexts = [fold_request_context(events, through) for through in range(-1, 4)]
    assert [context and context["model"] for context in contexts] == [None, None, "x", "x", "y"]
    assert fold_request_header(iter(events)) == headers[-1]


@pytest.mark.parametrize("data", [None, [], {}, {"header": None}])
def test_a_header_of_another_shape_is_refused(data: Any) -> None:
    with pytest.raises(ProjectionError) as caught:
        fold_request_header([Event("request/header", 0, 0, data)])
    assert caught.value.rejection is Rejection.MALFORMED
