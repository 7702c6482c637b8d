"""Whether what a request is made of has the shapes that writing it takes for granted; the log formats check only some.

Each value is looked at once, where it enters; the encoders trust it. What else goes wrong in them is our fault.
"""

from __future__ import annotations

from dsh_audit.events import ShapeError, as_object
from dsh_audit.projection.messages import derive_nodes
from dsh_audit.projection.rejection import ProjectionError
from dsh_audit.projection.shapes import check_message, check_tools, malformed
from dsh_audit.projection.surface import Surface
from dsh_audit.request.neutral import Request

_NUMBERS = ("maxTokens", "temperature")


class ShapeGuard:
    """Checks the requests of one session in order, of each what was not checked for the one before."""

    def __init__(self) -> None:
        self._surface: Surface | None = None
        self._problem: str | None = None
        self._header: object = None
        self._histories = 0
        self._sound: Request | None = None

    def check(self, request: Request) -> None:
        """Raise ShapeError when some part of a request has a shape that no release writes."""
        if request is not self._sound:
            self._check(request)
            self._sound = request

    def _check(self, request: Request) -> None:
        _check_settings(request)
        if request.tools is not None and request.tools is not self._header:
            check_tools(request.tools)
            self._header = request.tools
        self._check_history(request)
        if request.messages is not None:
            for derived in request.messages:
                check_message(derived.message, derived.seq)
            return
        surface = request.snapshot.surface
        if self._surface is None or not surface.extends(self._surface):
            self._surface, self._problem = None, None
        start, self._surface = len(self._surface) if self._surface is not None else 0, surface
        if self._problem is None:
            self._problem = _problem_of(surface, start)
        if self._problem is not None:
            raise ShapeError(self._problem)

    def _check_history(self, request: Request) -> None:
        """Tools of the earlier request headers, which format 4 projects as well."""
        history = request.snapshot.tool_history
        for event in history[self._histories :]:
            if event.type == "request/header":
                check_tools(as_object(event.data["header"]).get("tools") or ())
        self._histories = max(self._histories, len(history))


def _problem_of(surface: Surface, start: int) -> str | None:
    try:
        for derived in derive_nodes(surface[start:], surface.marks):
            check_message(derived.message, derived.seq)
    except ShapeError as error:
        return error.reason
    except ProjectionError as error:
        return f"{error.reason} (seq {error.seq}), so no body follows from the log"
    return None


def _check_settings(request: Request) -> None:
    config = request.config
    for name in _NUMBERS:
        if isinstance(config.get(name, 0), bool) or not isinstance(config.get(name, 0), int | float):
            raise malformed(f"the setting {name} is no number")
    stop = config.get("stop", [])
    if not isinstance(stop, list) or not all(isinstance(item, str) for item in stop):
        raise malformed("the setting stop is no list of texts")
    if request.system is not None and not isinstance(request.system, str):
        raise malformed("the system prompt is no text")
