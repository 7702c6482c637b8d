"""Session header, event and surface operation: the one vocabulary that every log format decodes into.

Opaque JSON (``data``, messages, headers) stays plain dict, list, str, int, float, bool and None, in the key order of
the log; it is shared, never changed. Source: spec session-log 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from dsh_audit.record import dataclass

Json: TypeAlias = Any
"""A JSON value as ``ecma.parse`` gives it."""


class ShapeError(ValueError):
    """A logged value has a shape that no release writes; the harness checks few payloads as it reads.

    Raised where a value enters a stage, which trusts it from there on.

    Args:
        reason: one phrase that names the place.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def as_object(value: Json) -> dict[str, Json]:
    """The value, if it is an object, else an empty one: a member that is not there and one of another shape alike."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """The value, if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The first line of a log.

    Args:
        version: format version the row claims.
        seed_length: v0 and v1 only: number of inherited events; None when not seeded.
        is_seeded: v2 and later only.
        raw: the row as parsed, key order kept.
    """

    version: int
    id: str
    created_at: int
    cwd: str | None
    parent_session: str | None
    seed_length: int | None
    is_seeded: bool | None
    origin: str | None
    delegation_depth: int
    agent_preset: str | None
    raw: dict[str, Json]


@dataclass(frozen=True, slots=True)
class SurfaceOp:
    """How a surface event changes the surface.

    ``append`` pushes the event; ``replace`` puts it in the place of the inclusive range of nodes from ``start`` to
    ``end``, both found by position in the surface (``start`` may be the larger seq).
    """

    op: Literal["append", "replace"]
    start: int | None = None
    end: int | None = None


APPEND = SurfaceOp("append")


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event of a session, in the shape of its own format version; made by a C constructor, there are many.

    Args:
        seq: dense from 0.
        time: milliseconds since the epoch, as logged.
        data: payload, opaque JSON, shape of the log's own format version.
        ignorable: the row carried ``ignorable: true``.
        source_event_seqs: expanded to single numbers; None when the row has none.
        surface_op: None for events that are not on the surface.
        line: line number in the decoded log, from 1 (a packed row gives several events of one line); 0 if made here.
        order: envelope keys in the order of the row, where that is not the usual one; for printing it again.
        opaque_op: ``surfaceOp`` of an unknown ignorable event (v1 and later), which has no effect; for printing.
    """

    type: str
    seq: int
    time: int | float
    data: Json
    ignorable: bool = False
    source_event_seqs: tuple[int, ...] | None = None
    surface_op: SurfaceOp | None = None
    line: int = 0
    order: tuple[str, ...] | None = None
    opaque_op: Json = None

    @property
    def last_seq(self) -> int:
        """Seq of the last event that it stands for: its own, but for a ChunkRun."""
        return self.seq

    def changed(self, **members: Any) -> Event:
        """The event with other members."""
        return msgspec.structs.replace(self, **members)


class ChunkRun(Event, frozen=True, gc=False, kw_only=True):
    """Consecutive ``assistant/chunk`` events of one step, none of them ``usage`` or ``finish``; formats 0 and 1.

    As an event it is the first of them. The rows are read again only when someone looks at ``data`` or ``events``.

    Args:
        count: how many events.
        last_time: time of the last one.
        turn, step: of all of them.
        expand: gives them one by one.
    """

    count: int
    last_time: int
    turn: int
    step: int
    expand: Callable[[], Iterator[Event]]

    @property
    def last_seq(self) -> int:
        """Seq of the last of them."""
        return self.seq + self.count - 1

    @property  # type: ignore[misc]
    def data(self) -> Json:
        """Payload of the first one."""
        return next(self.expand()).data


SURFACE_TYPES = frozenset({"user/message", "assistant/message", "tool/result"})
SURFACE_TYPES_V3 = SURFACE_TYPES | {"system/message"}
SURFACE_TYPES_V4 = SURFACE_TYPES_V3 | {"developer/message"}
