"""Results → JSON values by one rule: a dataclass is an object of its fields, or of what its ``JSON`` names.

``JSON`` lists members in order: ``name``, or ``name=path.to.attribute`` (None where a step of it is None); a name with
``?`` is left out when there is nothing in it. Opaque JSON passes as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

_PLAIN = frozenset({str, int, float, bool, type(None), dict})
_NOTHING: tuple[Any, ...] = (None, (), {})


def to_json(value: Any) -> Any:
    """The value as ``json.dumps`` takes it; decimals as numbers to ten places."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [to_json(item) for item in value]
    if is_dataclass(kind):
        return pick_members(value, getattr(kind, "JSON", None) or _field_names(kind))
    if kind is Decimal:
        return float(round(value, 10))
    return dict(value) if isinstance(value, Mapping) else str(value) if isinstance(value, str) else value


def pick_members(value: Any, listed: str) -> dict[str, Any]:
    """The members of any value that are listed as in ``JSON``."""
    out = {}
    for name, read, is_optional in _members(listed):
        member = read(value)
        if not is_optional or member not in _NOTHING:
            out[name] = member if type(member) in _PLAIN else to_json(member)
    return out


@cache
def _field_names(kind: Any) -> str:
    return " ".join(field.name for field in fields(kind))


@cache
def _members(listed: str) -> list[tuple[str, Callable[[Any], Any], bool]]:
    """Name, reader, and whether it may be left out, of each."""
    pairs = [(name, path or name.rstrip("?")) for name, _, path in (item.partition("=") for item in listed.split())]
    return [(name.rstrip("?"), _reader(path), name.endswith("?")) for name, path in pairs]


def _reader(path: str) -> Callable[[Any], Any]:
    if "." not in path:
        return attrgetter(path)

    def read(value: Any) -> Any:
        for step in path.split("."):
            value = None if value is None else getattr(value, step)
        return value

    return read
