"""JSON checks as JavaScript makes them, the event envelope, ranges of seqs: used by every format.

Source: spec session-log 3.2; dsh-session 0.1.1-rc.2, dsh-session-format-v0-to-v1 and -v1-to-v2 0.1.3-alpha.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

from dsh_audit.events import APPEND, Event, Json, SurfaceOp
from dsh_audit.formats.base import FormatError

MAX_SAFE_INTEGER = 2**53 - 1


def is_object(value: Json) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_number(value: Json) -> bool:
    """Whether the value is a number; Python's bool is none."""
    return type(value) is int or type(value) is float


def is_safe_integer(value: Json) -> TypeGuard[int]:
    """JavaScript's safe integer, without −0 (which parses to a float)."""
    return type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def is_count(value: Json) -> TypeGuard[int]:
    """A non-negative safe integer, without −0."""
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER


def is_lossless(value: Json) -> bool:
    """Whether JSON prints the value back without loss: no −0 and no infinite number inside. Iterative."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)
        elif type(current) is float and (not math.isfinite(current) or (current == 0.0)):
            return False
    return True


def require_object(value: Json, label: str) -> dict[str, Json]:
    """The value, if it is an object."""
    if not is_object(value):
        raise FormatError(f"{label} must be an object")
    return value


def require_keys(value: dict[str, Json], required: Iterable[str], optional: Iterable[str], label: str) -> None:
    """Exactly the required keys and at most the optional ones."""
    for key in required:
        if key not in value:
            raise FormatError(f"{label} lacks required member {key!r}")
    if len(value) > 0:
        allowed = {*required, *optional}
        for key in value:
            if key not in allowed:
                raise FormatError(f"{label} has unexpected member {key!r}")


def require_count(value: Json, label: str) -> int:
    """The value, if it is a non-negative safe integer."""
    if not is_count(value):
        raise FormatError(f"{label} must be a non-negative safe integer")
    return value


def decode_ranges(value: Json, limit: int) -> tuple[int, ...]:
    """Expand a stored ``sourceEventSeqs``: numbers and ``[first, last]`` pairs, mixed.

    Args:
        limit: seq of the event that owns the list; no more entries than that.

    Raises:
        FormatError: malformed, too long, or pairs that are not strictly increasing.

    Source: dsh-session 0.1.2-rc.1 seq-ranges, dsh-session-format-v0-to-v1 0.1.3-alpha.2.
    """
    if not isinstance(value, list):
        raise FormatError("sourceEventSeqs must be an array")
    out: list[int] = []
    paired = False
    for entry in value:
        if not isinstance(entry, list):
            if len(out) >= limit:
                raise FormatError("sourceEventSeqs has more entries than its event's seq allows")
            out.append(require_count(entry, "sourceEventSeqs member"))
            continue
        if len(entry) != 2:
            raise FormatError("a sourceEventSeqs range must be a [first, last] pair")
        first = require_count(entry[0], "sourceEventSeqs range start")
        last = require_count(entry[1], "sourceEventSeqs range end")
        if last < first or last - first + 1 > limit - len(out):
            raise FormatError("a sourceEventSeqs range is reversed or exceeds its event's seq")
        out.extend(range(first, last + 1))
        paired = True
    if paired and not is_increasing(out):
        raise FormatError("sourceEventSeqs with ranges must be strictly increasing")
    return tuple(out)


def encode_ranges(seqs: Sequence[int]) -> list[Json]:
    """Store a list of seqs: in a strictly increasing list, runs of three or more become ``[first, last]``."""
    if not is_increasing(seqs):
        return list(seqs)
    out: list[Json] = []
    at = 0
    while at < len(seqs):
        end = at
        while end + 1 < len(seqs) and seqs[end + 1] == seqs[end] + 1:
            end += 1
        if end - at >= 2:
            out.append([seqs[at], seqs[end]])
        else:
            out.extend(seqs[at : end + 1])
        at = end + 1
    return out


def is_increasing(seqs: Sequence[int]) -> bool:
    """Whether each number is larger than the one before it."""
    return all(left < right for left, right in itertools.pairwise(seqs))


def parse_surface_op(value: Json, event_type: str, keys: tuple[str, str]) -> SurfaceOp:
    """``"append"`` or an exact replacement object.

    Args:
        keys: names of the two endpoints in this format.
    """
    if value == "append" and isinstance(value, str):
        return APPEND
    if not is_object(value):
        raise FormatError(f"{event_type} carries an invalid surfaceOp")
    start, end = value.get(keys[0]), value.get(keys[1])
    if len(value) != 3 or value.get("op") != "replace" or not is_count(start) or not is_count(end):
        raise FormatError(f"{event_type} carries an invalid replace surfaceOp")
    return SurfaceOp("replace", start, end)


def check_sources(seqs: tuple[int, ...], seq: int, event_type: str, *, allow_empty: bool) -> None:
    """The rules of ``sourceEventSeqs`` that need no surface: not empty, no duplicates, earlier only."""
    if not seqs and not allow_empty:
        raise FormatError(f"{event_type} sourceEventSeqs must not be empty")
    if len(set(seqs)) != len(seqs):
        raise FormatError(f"{event_type} sourceEventSeqs must not contain duplicates")
    for source in seqs:
        if source >= seq:
            raise FormatError(f"{event_type} sourceEventSeqs must reference earlier events: {source}")


def op_value(op: SurfaceOp, keys: tuple[str, str]) -> Json:
    """A surface operation as JSON."""
    return "append" if op.op == "append" else {"op": "replace", keys[0]: op.start, keys[1]: op.end}


USUAL_ORDER = ("type", "seq", "time", "data", "ignorable", "sourceEventSeqs", "surfaceOp")
_RANK = {key: rank for rank, key in enumerate(USUAL_ORDER)}


def unusual_order(row: dict[str, Json]) -> tuple[str, ...] | None:
    """The keys of a row where they are not in the usual order, else None."""
    last = -1
    for key in row:
        rank = _RANK.get(key, last)
        if rank < last:
            return tuple(row)
        last = rank
    return None


def encode_event(event: Event, keys: tuple[str, str], *, ranges: bool) -> dict[str, Json]:
    """An event as JSON: envelope keys in the order of the log, or the usual one.

    Args:
        keys: names of the two endpoints of a replacement.
        ranges: store runs of ``sourceEventSeqs`` as pairs, as files of 0.1.2 and later do; without, the value
            that the harness holds in memory.
    """
    out: dict[str, Json] = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.ignorable:
        out["ignorable"] = True
    if event.source_event_seqs is not None:
        seqs = event.source_event_seqs
        out["sourceEventSeqs"] = encode_ranges(seqs) if ranges else list(seqs)
    if event.surface_op is not None:
        out["surfaceOp"] = op_value(event.surface_op, keys)
    elif event.opaque_op is not None:
        out["surfaceOp"] = event.opaque_op
    if event.order is None:
        return out
    ordered = {key: out[key] for key in event.order if key in out}
    return ordered | out
