"""Shapes of JSON values: one description that both checks a value and prints as JSON Schema.

A check raises FormatError with the place and the rule. What a schema cannot say (relations between members)
is added with ``where`` and is checked only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from dsh_audit.events import Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import (
    MAX_SAFE_INTEGER,
    is_count,
    is_lossless,
    is_object,
    is_safe_integer,
    require_keys,
    require_object,
)
from dsh_audit.record import dataclass

Check: TypeAlias = Callable[[Json, str], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of JSON value.

    Args:
        check: ``(value, label)``; raises FormatError.
        schema: JSON Schema (draft 2020-12) of what can be said there.
    """

    check: Check
    schema: dict[str, Json]


def _simple(test: Callable[[Json], bool], what: str, schema: dict[str, Json]) -> Shape:
    def check(value: Json, label: str) -> None:
        if not test(value):
            raise FormatError(f"{label} must be {what}")

    return Shape(check, schema)


def _is_finite(value: Json) -> bool:
    if type(value) is int:
        return True
    return type(value) is float and math.isfinite(value) and value != 0.0


_COUNT_SCHEMA: dict[str, Json] = {"type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER}

STRING = _simple(lambda value: isinstance(value, str), "a string", {"type": "string"})
TEXT = _simple(
    lambda value: isinstance(value, str) and value != "",
    "a non-empty string",
    {"type": "string", "minLength": 1},
)
BOOLEAN = _simple(lambda value: isinstance(value, bool), "a boolean", {"type": "boolean"})
COUNT = _simple(is_count, "a non-negative safe integer", _COUNT_SCHEMA)
POSITIVE = _simple(
    lambda value: is_count(value) and value > 0, "a positive safe integer", {**_COUNT_SCHEMA, "minimum": 1}
)
SAFE_INTEGER = _simple(
    is_safe_integer,
    "a safe integer",
    {"type": "integer", "minimum": -MAX_SAFE_INTEGER, "maximum": MAX_SAFE_INTEGER},
)
FINITE = _simple(_is_finite, "a finite number", {"type": "number"})
NOT_NEGATIVE = _simple(
    lambda value: _is_finite(value) and value >= 0, "a non-negative number", {"type": "number", "minimum": 0}
)
OBJECT = _simple(is_object, "an object", {"type": "object"})
ARRAY = _simple(lambda value: isinstance(value, list), "an array", {"type": "array"})
ANY = _simple(lambda _value: True, "anything", {})
LOSSLESS = _simple(is_lossless, "lossless JSON", {})


def literal(*values: Json) -> Shape:
    """One of the given scalars."""

    def test(value: Json) -> bool:
        return any(type(value) is type(each) and value == each for each in values)

    return _simple(test, "one of " + ", ".join(str(each) for each in values), {"enum": list(values)})


def nullable(shape: Shape) -> Shape:
    """Null, or the shape."""

    def check(value: Json, label: str) -> None:
        if value is not None:
            shape.check(value, label)

    return Shape(check, {"anyOf": [{"type": "null"}, shape.schema]})


def array(item: Shape, *, at_least: int = 0, at_most: int | None = None) -> Shape:
    """A list of one shape."""
    schema: dict[str, Json] = {"type": "array", "items": item.schema}
    if at_least:
        schema["minItems"] = at_least
    if at_most is not None:
        schema["maxItems"] = at_most

    def check(value: Json, label: str) -> None:
        if not isinstance(value, list):
            raise FormatError(f"{label} must be an array")
        if len(value) < at_least:
            raise FormatError(f"{label} must have at least {at_least} members")
        if at_most is not None and len(value) > at_most:
            raise FormatError(f"{label} must have at most {at_most} members")
        for index, member in enumerate(value):
            item.check(member, f"{label}[{index}]")

    return Shape(check, schema)


def record(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """An object with exactly these members, the optional ones where present."""
    more = dict(optional or {})
    members = {**required, **more}
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {key: shape.schema for key, shape in members.items()},
        "required": list(required),
        "additionalProperties": False,
    }

    def check(value: Json, label: str) -> None:
        found = require_object(value, label)
        require_keys(found, required, more, label)
        for key, shape in members.items():
            if key in found:
                shape.check(found[key], f"{label} {key}")

    return Shape(check, schema)


def tagged(key: str, cases: Mapping[Json, Shape], default: Shape | None = None) -> Shape:
    """An object whose member ``key`` names its shape; ``default`` takes unknown names."""
    branches: list[Json] = [
        {"if": {"properties": {key: {"const": name}}}, "then": shape.schema} for name, shape in cases.items()
    ]
    schema: dict[str, Json] = {"type": "object", "required": [key], "allOf": branches}
    if default is None:
        schema["properties"] = {key: {"enum": list(cases)}}

    def check(value: Json, label: str) -> None:
        found = require_object(value, label)
        name = found.get(key)
        shape = cases.get(name) if isinstance(name, str) else None
        if shape is not None:
            shape.check(value, label)
        elif default is not None:
            default.check(value, label)
        else:
            raise FormatError(f"{label} has unknown {key} {name!r}")

    return Shape(check, schema)


def open_record(members: Mapping[str, Shape]) -> Shape:
    """An object with at least these members."""
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {key: shape.schema for key, shape in members.items()},
        "required": list(members),
    }

    def check(value: Json, label: str) -> None:
        found = require_object(value, label)
        for key, shape in members.items():
            shape.check(found.get(key), f"{label} {key}")

    return Shape(check, schema)


def where(shape: Shape, rule: Callable[[Json, str], None]) -> Shape:
    """The shape, and then a rule that a schema cannot say."""

    def check(value: Json, label: str) -> None:
        shape.check(value, label)
        rule(value, label)

    return Shape(check, shape.schema)


def named(name: str, shape: Callable[[], Shape]) -> Shape:
    """A shape looked up when it is used, printed as ``$ref``: for shapes that contain themselves."""
    return Shape(lambda value, label: shape().check(value, label), {"$ref": f"#/$defs/{name}"})
