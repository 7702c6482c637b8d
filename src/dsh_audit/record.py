"""``dataclass`` that costs next to nothing until a value is made: all methods but ``__init__`` are shared code.

A command loads some 150 dataclasses and makes values of a third of them; writing and compiling six methods for each
was more than half of its start-up. Type checkers see the dataclass of the standard library, which also does whatever
is not plain: keyword-only or uninitialised fields, inheritance, ordering.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True, **options: Any) -> Any:
        """As in the standard library."""

        def decorate(cls: type) -> type:
            own = {} if options or not slots else _fields_of(cls)
            if not own:
                return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, **options)(cls)
            return _build(cls, own, frozen, eq)

        return decorate


def _fields_of(cls: type) -> dict[str, Field[Any]]:
    """Name → field; nothing where the class is not plain."""
    if any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:]):
        return {}
    found: dict[str, Field[Any]] = {}
    for name, kind in vars(cls).get("__annotations__", {}).items():
        if not isinstance(kind, str) or kind.startswith(("InitVar", "KW_ONLY")):
            return {}
        if not kind.startswith("ClassVar"):
            default = vars(cls).get(name, MISSING)
            item: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
            if not item.init or item.kw_only is True or item.hash is not None or type(default) in (list, dict, set):
                return {}
            found[name] = item
    return found


def _build(cls: type, own: dict[str, Field[Any]], frozen: bool, eq: bool) -> type:
    """The class with slots for its fields and the methods of a dataclass."""
    names = tuple(own)
    members = {name: value for name, value in vars(cls).items() if name not in (*names, "__dict__", "__weakref__")}
    values = _reader([name for name, item in own.items() if item.compare])

    @recursive_repr()
    def show(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, item in own.items() if item.repr)
        return f"{type(self).__qualname__}({shown})"

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is fixed or name in names:
            raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
        (object.__setattr__ if value else object.__delattr__)(self, name, *value)

    def init(self: Any, *given: Any, **named: Any) -> None:
        written = _write_init(cls, own, frozen)
        type.__setattr__(fixed, "__init__", written)
        written(self, *given, **named)

    def set_state(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    methods: dict[str, Any] = {"__init__": init, "__repr__": show}
    if eq:
        methods |= {"__eq__": equal, "__hash__": (lambda self: hash(values(self))) if frozen else None}
        if "__hash__" in members and members["__hash__"] is None:
            del members["__hash__"]
    fixed_methods = {"__setattr__": refuse, "__delattr__": refuse} if frozen else {}
    extra = {
        "__slots__": names,
        "__match_args__": names,
        "__getstate__": lambda self: [getattr(self, name) for name in names],
        "__setstate__": set_state,
        "__dataclass_fields__": _Late(lambda: _describe(fixed, own)),
        "__signature__": _Late(lambda: _signature(cls, own)),
    }
    fixed = type(cls)(cls.__name__, cls.__bases__, {**methods, **members, **fixed_methods, **extra})
    fixed.__qualname__ = cls.__qualname__
    return fixed


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda value: (getattr(value, names[0]),)) if names else (lambda _value: ())


class _Late:
    """An attribute of a class that is made when someone asks for it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        return self._make()


def _write_init(cls: type, own: dict[str, Field[Any]], frozen: bool) -> Any:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_given": MISSING}
    parameters, lines = [], []
    for name, item in own.items():
        value = name
        if item.default is not MISSING:
            scope[f"_default_{name}"] = item.default
            parameters.append(f"{name}=_default_{name}")
        elif item.default_factory is not MISSING:
            scope[f"_make_{name}"] = item.default_factory
            parameters.append(f"{name}=_given")
            value = f"_make_{name}() if {name} is _given else {name}"
        else:
            parameters.append(name)
        lines.append(f" _set(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if "__post_init__" in vars(cls):
        lines.append(" self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines), scope)
    written = scope["__init__"]
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    return written


def _standard(cls: type, own: dict[str, Field[Any]]) -> type:
    """The same fields in a class that the standard library has made."""
    kinds = {name: vars(cls)["__annotations__"][name] for name in own}
    members = {"__annotations__": kinds, "__module__": "dataclasses", **own}
    return dataclasses.dataclass(repr=False, eq=False)(type(cls.__name__, (), members))


def _describe(cls: type, own: dict[str, Field[Any]]) -> Any:
    found = vars(_standard(cls, own))["__dataclass_fields__"]
    type.__setattr__(cls, "__dataclass_fields__", found)
    return found


def _signature(cls: type, own: dict[str, Field[Any]]) -> inspect.Signature:
    return inspect.signature(_standard(cls, own))
