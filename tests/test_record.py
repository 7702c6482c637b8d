"""The dataclass that waits behaves as the one of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A value."""

    x: int
    y: int = 2
    tags: tuple[str, ...] = ()
    seen: dict[str, int] = field(default_factory=dict)
    SCHEMA: ClassVar = "point/1"

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Counter:
    count: int = 0
    hidden: int = field(default=1, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.count += 1


@dataclass(frozen=True, slots=True, eq=False)
class Token:
    name: str


@dataclass(frozen=True, slots=True)
class Unused:
    name: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class Restored:
    name: str


def test_values() -> None:
    one, same = Point(1), Point(1, 2)
    assert one == same and one != Point(2) and repr(one) == "Point(x=1, y=2, tags=(), seen={})"
    assert replace(one, y=5).total == 6 and Point(x=1, y=3).y == 3
    assert (
        not hasattr(one, "__dict__")
        and Point.SCHEMA == "point/1"
        and Point.__match_args__ == ("x", "y", "tags", "seen")
    )
    assert one.seen is not same.seen and hash(Restored("a")) == hash(Restored("a"))
    with pytest.raises(FrozenInstanceError):
        one.x = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="x"):
        Point()  # type: ignore[call-arg]
    match one:
        case Point(1, y):
            assert y == 2
        case _:
            pytest.fail("no match")


def test_options() -> None:
    counter = Counter(4)
    counter.count += 1
    assert counter == Counter(5, hidden=9) and repr(counter) == "Counter(count=6)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    assert Token("a") != Token("a") and len({Token("a"), Token("a")}) == 2


@dataclass(frozen=True, slots=True)
class Own:
    """With methods of its own."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own)

    def __repr__(self) -> str:
        return "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    name: str = "a"


def test_methods_of_its_own_and_what_is_left_to_the_standard_library() -> None:
    assert Own("a") == Own("b") and repr(Own("a")) == "own" and hash(Own("a")) == hash(Own("a"))
    assert Named(name="b") != Named() and Named.__module__ == __name__
    with pytest.raises(FrozenInstanceError):
        del Own("a").name


def test_what_is_asked_before_the_first_value() -> None:
    assert [item.name for item in fields(Unused)] == ["name", "size"]
    assert str(inspect.signature(Unused)) == "(name: 'str', size: 'int' = 0) -> None"
    assert dataclasses.is_dataclass(Unused) and Unused("a").size == 0


@pytest.mark.parametrize(
    "value", [Point(1, seen={"a": 1}), Counter(3), Token("a")], ids=lambda value: type(value).__name__
)
def test_copies(value: Any) -> None:
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert type(again) is type(value) and repr(again) == repr(value)


def test_a_value_that_comes_from_another_process_is_complete() -> None:
    one = object.__new__(Restored)
    one.__setstate__(["a"])  # type: ignore[attr-defined]
    assert one == Restored("a") and repr(one) == "Restored(name='a')"
