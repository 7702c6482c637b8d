"""Derived messages: what each node of the surface says to the model.

Source: dsh-session 0.1.0-rc.8, 0.1.1-rc.2, 0.1.5-rc.1 and 0.2.1-rc.2, deriveEventMessage and
Session.deriveMessages; spec wire-deepseek 2.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Event, Json
from dsh_audit.projection.offload import NO_MARKS, OffloadMarks
from dsh_audit.projection.surface import Surface, fold_surface
from dsh_audit.projection.surface_rules import message_of
from dsh_audit.record import dataclass

_ALWAYS = ("user/message", "tool/result")
_UNLESS_EMPTY = ("assistant/message", "system/message", "developer/message")


@dataclass(frozen=True, slots=True)
class DerivedMessage:
    """One message of a request.

    Args:
        seq: of the surface event it comes from.
        message: as logged, image marks applied; shared, never changed.
    """

    seq: int
    message: dict[str, Json]


def derive_event_message(event: Event, marks: OffloadMarks = NO_MARKS) -> dict[str, Json] | None:
    """The message an event gives, or None: not a surface event, or an empty content list.

    User and tool messages count even when empty; an empty *text* is not an empty list.

    Args:
        marks: image offload marks of the prefix.

    Raises:
        ProjectionError: a surface event without a message.
    """
    if event.type in _ALWAYS:
        return marks.apply_to(event.seq, message_of(event))
    if event.type in _UNLESS_EMPTY:
        message = message_of(event)
        return message if message["content"] else None
    return None


def derive_messages(
    source: Surface | Iterable[Event], through: int | None = None, *, version: int | None = None
) -> tuple[DerivedMessage, ...]:
    """The messages of a surface, or of the surface of a log prefix, in order.

    Args:
        source: a surface, or the events of one session from seq 0.
        through: only with events: last seq of the prefix, inclusive.
        version: only with events: their format version.

    Raises:
        ProjectionError: the harness would refuse an event of the prefix.
        TypeError: ``through`` together with a surface, or events without their version.
    """
    if isinstance(source, Surface):
        if through is not None:
            raise TypeError("a surface is one prefix already: through goes with events only")
        surface = source
    elif version is None:
        raise TypeError("events have a format version: derive_messages(events, version=log.version)")
    else:
        surface = fold_surface(source, through, version=version)
    return derive_nodes(surface, surface.marks)


def derive_nodes(nodes: Iterable[Event], marks: OffloadMarks) -> tuple[DerivedMessage, ...]:
    """The messages of some nodes, in order; those that yield none are left out."""
    derived = ((node.seq, derive_event_message(node, marks)) for node in nodes)
    return tuple(DerivedMessage(seq, message) for seq, message in derived if message is not None)
