"""The two equalities of JSON values that upstream's projections use.

Both walk with an explicit stack, so that nesting depth is bounded by memory only.
"""

from __future__ import annotations

from math import isfinite

from dsh_audit.events import Json


def strictly_equal(left: Json, right: Json) -> bool:
    """``===`` of two JSON values: scalars by type and value, objects and lists by identity."""
    if left is right:
        return True
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    return isinstance(left, str) and isinstance(right, str) and left == right


def same_value(left: Json, right: Json) -> bool:
    """Structural equality; the key order of objects plays no part.

    Source: dsh-session 0.1.1-rc.2, surface, the comparison of rewritten tool results.
    """
    pairs = [(left, right)]
    while pairs:
        one, two = pairs.pop()
        if strictly_equal(one, two):
            continue
        if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
            pairs.extend(zip(one, two, strict=True))
        elif isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
            pairs.extend((value, two[key]) for key, value in one.items())
        else:
            return False
    return True


def same_text(left: Json, right: Json) -> bool:
    """Whether ``JSON.stringify`` prints the same text: key order counts, −0 is 0, what is not finite is null.

    Source: dsh-session 0.1.1-rc.2, request-header, the comparison of tools.
    """
    pairs = [(left, right)]
    while pairs:
        one, two = pairs.pop()
        one, two = _printed(one), _printed(two)
        if strictly_equal(one, two):
            continue
        if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
            pairs.extend(zip(one, two, strict=True))
        elif isinstance(one, dict) and isinstance(two, dict) and list(one) == list(two):
            pairs.extend(zip(one.values(), two.values(), strict=True))
        else:
            return False
    return True


def _printed(value: Json) -> Json:
    return None if isinstance(value, float) and not isfinite(value) else value
