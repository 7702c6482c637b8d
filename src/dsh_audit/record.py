"""``dataclass`` that writes its methods when the first value is made.

A command loads some 150 dataclasses and makes values of a third of them; writing and compiling the methods of all was
more than half of its start-up. Type checkers see the dataclass of the standard library, which does write the methods.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, **options: Any) -> Any:
        """As in the standard library; only plain classes with slots wait for their methods."""

        def decorate(cls: type) -> type:
            is_plain = all("__dataclass_fields__" not in vars(base) for base in cls.__mro__) and slots
            if not is_plain or "kw_only" in options:
                return dataclasses.dataclass(frozen=frozen, slots=slots, **options)(cls)
            return _slotted(cls, {"frozen": frozen, **options})

        return decorate


class _Waiting:
    """What is asked of a class before any value of it was made: the methods are written now."""

    def __init__(self, complete: Any, read: Any) -> None:
        self._complete = complete
        self._read = read

    def __get__(self, instance: object, owner: type) -> Any:
        self._complete()
        return self._read(owner)


def _slotted(cls: type, options: dict[str, Any]) -> type:
    """The class with slots for its fields, and an ``__init__`` that completes it."""
    annotations = vars(cls).get("__annotations__", {})
    names = tuple(name for name, kind in annotations.items() if not str(kind).startswith("ClassVar"))
    members = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *names)}
    defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
    fixed = type(cls)(cls.__name__, cls.__bases__, {**members, "__slots__": names, "__match_args__": names})
    fixed.__qualname__ = cls.__qualname__
    module = sys.modules[cls.__module__]

    def complete() -> None:
        if "__signature__" not in vars(fixed):
            return
        for name in ("__init__", "__dataclass_fields__", "__signature__"):
            delattr(fixed, name)
        slots = {name: vars(fixed)[name] for name in names}
        # A default hides its slot while the standard library reads it.
        for name, value in defaults.items():
            setattr(fixed, name, value)
        # The standard library asks for the module, which a test runner may have taken out meanwhile.
        is_there = module.__name__ in sys.modules
        sys.modules.setdefault(module.__name__, module)
        dataclasses.dataclass(**options)(fixed)
        if not is_there:
            del sys.modules[module.__name__]
        for name, slot in slots.items():
            setattr(fixed, name, slot)

    def init(self: Any, *args: Any, **values: Any) -> None:
        complete()
        vars(fixed)["__init__"](self, *args, **values)

    def get_state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, state: list[Any]) -> None:
        complete()
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    waiting = {
        "__init__": init,
        "__getstate__": get_state,
        "__setstate__": set_state,
        "__dataclass_fields__": _Waiting(complete, lambda owner: owner.__dataclass_fields__),
        "__signature__": _Waiting(complete, inspect.signature),
    }
    for name, value in waiting.items():
        setattr(fixed, name, value)
    return fixed
