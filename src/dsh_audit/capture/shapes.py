"""Checks of the JSON that captures hold: text, numbers, HTTP headers in the three shapes in use."""

from __future__ import annotations

from datetime import UTC, datetime

from dsh_audit.events import Json


class BadShapeError(ValueError):
    """A member of a record is missing or has the wrong type; says which."""


def required_text(record: dict[str, Json], name: str) -> str:
    """A member that must be a non-empty string."""
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise BadShapeError(f"{name} must be a string" if value != "" else f"{name} is empty")
    return value


def optional_int(value: Json) -> int | None:
    """An integer; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def http_headers_of(value: Json) -> tuple[tuple[str, str], ...]:
    """HTTP headers from ``[[name, value], …]``, ``[{name, value}, …]`` or ``{name: value or [values]}``.

    Raises:
        BadShapeError: none of these.
    """
    if value is None:
        return ()
    if isinstance(value, dict):
        return tuple(pair for name, item in value.items() for pair in _named(name, item))
    if isinstance(value, list):
        return tuple(_pair(item) for item in value)
    raise BadShapeError("headers must be a list of [name, value] pairs")


def _named(name: str, value: Json) -> list[tuple[str, str]]:
    values = value if isinstance(value, list) else [value]
    return [_texts(name, item) for item in values]


def _pair(item: Json) -> tuple[str, str]:
    if isinstance(item, dict):
        return _texts(item.get("name"), item.get("value", ""))
    if isinstance(item, list) and len(item) == 2:
        return _texts(item[0], item[1])
    raise BadShapeError("headers must be a list of [name, value] pairs")


def _texts(name: Json, value: Json) -> tuple[str, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(name, str) and isinstance(value, str):
        return name, value
    raise BadShapeError("names and values of headers must be strings")


def time_of(value: Json) -> float | None:
    """Milliseconds since 1970 from an ISO time (UTC where no zone is named), seconds or milliseconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * 1000 if 0 < value < 100_000_000_000 else float(value)
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if time is None:
        return None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000
