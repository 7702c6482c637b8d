"""SessionState: every projection of a session at once, folded one event at a time."""

from __future__ import annotations

from dsh_audit.events import Event
from dsh_audit.projection.messages import DerivedMessage, derive_nodes
from dsh_audit.projection.offload import OffloadMarks
from dsh_audit.projection.prefix import Prefix
from dsh_audit.projection.shapes import check_usable
from dsh_audit.projection.surface import IncrementalSurface, Surface
from dsh_audit.projection.surface_rules import surface_types
from dsh_audit.record import dataclass

_TOOL_HISTORY_TYPES = ("request/header", "developer/message")


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All that a request depends on, at one prefix of the log. Immutable; stays valid when the fold goes on.

    Args:
        prefix_seq: last seq of the prefix; −1 for the empty one.
        version: format version of the events.
        surface: with the image offload marks in force.
        request_header: the last ``request/header`` event.
        request_context: the last ``request/context`` event whose payload is an object.
        tool_history: v4 only: every ``request/header`` and ``developer/message`` event of the prefix, in log
            order; the tool-update projection folds it (spec wire-deepseek 6). Empty in other versions.
    """

    prefix_seq: int
    version: int
    surface: Surface
    request_header: Event | None
    request_context: Event | None
    tool_history: Prefix[Event]

    @property
    def marks(self) -> OffloadMarks:
        """Image offload marks in force."""
        return self.surface.marks

    def messages(self, start: int = 0) -> tuple[DerivedMessage, ...]:
        """The derived messages, from the node at position ``start`` on; O(nodes)."""
        return derive_nodes(self.surface[start:] if start else self.surface, self.marks)


class SessionState:
    """The running fold of one session.

    ``apply`` is O(1) amortised (O(nodes) for a replacement), ``snapshot`` O(1). Memory follows the surface:
    of log-only events it keeps the last request header and context, in v4 every request header.

    Args:
        version: format version of the events.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._types = surface_types(version)
        self._surface = IncrementalSurface(version=version)
        self._request_header: Event | None = None
        self._request_context: Event | None = None
        self._tool_history: list[Event] = []

    @property
    def count(self) -> int:
        """Number of events applied."""
        return self._surface.next_seq

    @property
    def last_seq(self) -> int:
        """Seq of the last event applied; −1 before the first."""
        return self._surface.next_seq - 1

    def apply(self, event: Event) -> None:
        """Fold one event.

        Raises:
            ProjectionError: the harness would refuse the event, or no request could be made of it; the state stays as
                it was.
        """
        check_usable(event, self._types)
        self._surface.apply(event)
        if event.type == "request/header":
            self._request_header = event
        elif event.type == "request/context" and isinstance(event.data, dict):
            self._request_context = event
        if self._version >= 4 and event.type in _TOOL_HISTORY_TYPES:
            self._tool_history.append(event)

    def snapshot(self) -> Snapshot:
        """What a request made now would depend on."""
        return Snapshot(
            prefix_seq=self.last_seq,
            version=self._version,
            surface=self._surface.snapshot(),
            request_header=self._request_header,
            request_context=self._request_context,
            tool_history=Prefix(self._tool_history, len(self._tool_history)),
        )
