from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from dsh_audit.text.to_json import to_json


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    sizes: tuple[int, ...] = ()
    colour: Colour = Colour.RED


@dataclass(frozen=True, slots=True)
class Named:
    plain: Plain | None = None
    amount: Decimal = Decimal("0.1") / 3
    details: dict[str, Any] = field(default_factory=dict)

    SCHEMA: ClassVar = "x/1"
    JSON: ClassVar = "schema=SCHEMA cost=amount title=plain.name plain? details? total"

    @property
    def total(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Plain("a", (1, 2)), {"name": "a", "sizes": [1, 2], "colour": "red"}),
        (Named(), {"schema": "x/1", "cost": 0.0333333333, "title": None, "total": 3}),
        (
            Named(Plain("b"), details={"z": 0}),
            {
                "schema": "x/1",
                "cost": 0.0333333333,
                "title": "b",
                "plain": {"name": "b", "sizes": [], "colour": "red"},
                "details": {"z": 0},
                "total": 3,
            },
        ),
        ([Plain("c"), {"opaque": (1,)}, None], [{"name": "c", "sizes": [], "colour": "red"}, {"opaque": (1,)}, None]),
        (MappingProxyType({"a": 1}), {"a": 1}),
    ],
)
def test_members_in_order(value: object, expected: object) -> None:
    out = to_json(value)
    assert out == expected
    if isinstance(out, dict):
        assert list(out) == list(expected) and type(out) is dict  # type: ignore[call-overload]


def test_a_member_that_is_not_there_is_our_own_fault() -> None:
    @dataclass(frozen=True, slots=True)
    class Wrong:
        JSON: ClassVar = "missing"

    with pytest.raises(AttributeError):
        to_json(Wrong())
