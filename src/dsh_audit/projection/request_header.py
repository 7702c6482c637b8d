"""Request header and request context: the settings and tools that are in force at a prefix.

Source: dsh-session 0.1.0-rc.8, 0.1.1-rc.2, 0.1.5-rc.1 and 0.2.1-rc.2, canonicalHeader, headerEquals,
foldRequestHeader and Session.requestContext; dsh-llm 0.1.1-rc.2, callConfigEquals; spec session-log 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Event, Json
from dsh_audit.projection.equality import same_text, strictly_equal
from dsh_audit.projection.rejection import Rejection
from dsh_audit.projection.surface import prefix_of
from dsh_audit.projection.surface_rules import refuse

_CONFIG_KEYS = ("provider", "model", "reasoningEffort", "temperature", "maxTokens")
_ADAPTER_KEYS = ("reasoningEffort", "maxTokens")
_ABSENT = object()


def canonical_header(header: dict[str, Json]) -> dict[str, Json]:
    """A request header without its empty members, keys in the order config, adapterDefaults, system, tools.

    ``adapterDefaults`` stays when it marks at least one value. Other keys are dropped; values are shared.
    """
    canonical = {"config": header.get("config")}
    defaults = header.get("adapterDefaults")
    if isinstance(defaults, dict) and any(defaults.get(key) is True for key in _ADAPTER_KEYS):
        canonical["adapterDefaults"] = defaults
    for key in ("system", "tools"):
        if header.get(key):
            canonical[key] = header[key]
    return canonical


def header_equals(one: dict[str, Json], two: dict[str, Json]) -> bool:
    """Whether two canonical request headers are the same settings, prompt and tools.

    Key order and unknown keys of ``config`` play no part; a tool counts as changed when its printed JSON
    differs, key order included.
    """
    return (
        _same_config(_object(one, "config"), _object(two, "config"))
        and _same_members(_object(one, "adapterDefaults"), _object(two, "adapterDefaults"), _ADAPTER_KEYS)
        and _same_members(one, two, ("system",))
        and same_text(one.get("tools") or [], two.get("tools") or [])
    )


def fold_request_header(events: Iterable[Event], through: int | None = None) -> dict[str, Json] | None:
    """The canonical request header in force after a prefix; None before the first.

    Args:
        events: of one session in order.
        through: last seq of the prefix, inclusive; all events when None.

    Raises:
        ProjectionError: a ``request/header`` without a header object.
    """
    header = None
    for event in prefix_of(events, through):
        if event.type == "request/header":
            header = header_of(event)
    return header


def fold_request_context(events: Iterable[Event], through: int | None = None) -> dict[str, Json] | None:
    """The payload of the last ``request/context`` of a prefix; None before the first.

    Args:
        events: of one session in order.
        through: last seq of the prefix, inclusive; all events when None.
    """
    context = None
    for event in prefix_of(events, through):
        if event.type == "request/context" and isinstance(event.data, dict):
            context = event.data
    return context


def header_of(event: Event) -> dict[str, Json]:
    """The canonical request header of a ``request/header`` event.

    Raises:
        ProjectionError: the payload has no header object.
    """
    header = event.data.get("header") if isinstance(event.data, dict) else None
    if not isinstance(header, dict):
        refuse(event, Rejection.MALFORMED, "request/header has no header object")
    return canonical_header(header)


def _object(header: dict[str, Json], key: str) -> dict[str, Json]:
    value = header.get(key)
    return value if isinstance(value, dict) else {}


def _same_members(one: dict[str, Json], two: dict[str, Json], keys: tuple[str, ...]) -> bool:
    return all(strictly_equal(one.get(key, _ABSENT), two.get(key, _ABSENT)) for key in keys)


def _same_config(one: dict[str, Json], two: dict[str, Json]) -> bool:
    if not _same_members(one, two, _CONFIG_KEYS):
        return False
    stop, other = one.get("stop"), two.get("stop")
    if not isinstance(stop, list) or not isinstance(other, list):
        return strictly_equal(one.get("stop", _ABSENT), two.get("stop", _ABSENT))
    return len(stop) == len(other) and all(map(strictly_equal, stop, other))
