"""The shapes of what describes a pi-ai route: a profile and a resolved model; what is read of them, no more.

Profiles come from users and bodies follow from them, so a value of another type is refused where it enters.
Source: spec wire-pi-ai 2, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def _is(*kinds: type) -> Check:
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _values(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _items(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _members(shapes: Mapping[str, tuple[Check, str]], *required: str) -> Check:
    return lambda value: isinstance(value, dict) and find_odd(value, shapes, *required) is None


TEXT = _is(str), "a string"
NUMBER = _is(int, float), "a number"
OBJECT = _is(dict), "an object"
_TEXTS = _items(_is(str)), "a list of strings"
_LEVELS = _values(_is(str, type(None))), "an object of names"
_ENTRY = {
    "name": TEXT,
    "contextWindow": NUMBER,
    "maxTokens": NUMBER,
    "input": _TEXTS,
    "reasoningEfforts": (lambda value: value is False or _LEVELS[0](value), "false or an object of names"),
    "compat": OBJECT,
}
PROFILE: dict[str, tuple[Check, str]] = {
    "api": TEXT,
    "baseURL": TEXT,
    "cacheRetention": TEXT,
    "compat": OBJECT,
    "defaultContextWindow": NUMBER,
    "defaultInput": _TEXTS,
    "defaultMaxTokens": NUMBER,
    "models": (_items(_members({**_ENTRY, "id": TEXT}, "id")), "a list of models with an id"),
    "modelOverrides": (_values(_members(_ENTRY)), "an object of models"),
    "reasoning": TEXT,
    "thinkingBudgets": (_values(NUMBER[0]), "an object of numbers"),
}
MODEL: dict[str, tuple[Check, str]] = {
    "id": TEXT,
    "api": TEXT,
    "provider": TEXT,
    "baseUrl": TEXT,
    "input": _TEXTS,
    "contextWindow": NUMBER,
    "maxTokens": NUMBER,
    "reasoning": (_is(bool), "true or false"),
    "compat": OBJECT,
    "thinkingLevelMap": _LEVELS,
}


def find_odd(value: Mapping[str, Any], shapes: Mapping[str, tuple[Check, str]], *required: str) -> str | None:
    """What is wrong with the members of an object, ``NAME is not WHAT``; None when nothing is.

    Args:
        shapes: name → check and what it asks for; null counts as absent, as the packages take it.
        required: names that must be there.
    """
    odd = (name for name, (check, _) in shapes.items() if value.get(name) is not None and not check(value[name]))
    found = next(odd, None) or next((name for name in required if value.get(name) is None), None)
    return None if found is None else f"{found} is not {shapes[found][1]}"
