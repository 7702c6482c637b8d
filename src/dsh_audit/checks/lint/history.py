"""The messages that requests carry, as the checks of histories see them: each node once, and all again after a
replacement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Protocol

from dsh_audit.checks.lint.model import Carried, Facts, Issue, Sent
from dsh_audit.events import Event, Json, as_list, as_object
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.projection.messages import derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.record import dataclass


class Fold(Protocol):
    """What one check knows of a history."""

    def node(self, seq: int, message: dict[str, Json]) -> None:
        """The next message."""

    def issues(self, sent: Sent) -> Iterable[Issue]:
        """What a request that carries the messages so far carries with them."""


@dataclass(slots=True)
class HistoryObserver:
    """Runs a fold over the history of each step request.

    Args:
        facts: of the log.
        new: an empty fold.
    """

    facts: Facts
    new: type[Fold]
    types: frozenset[str] = frozenset()
    carried: Carried = field(init=False)
    _fold: Fold = field(init=False)
    _surface: Surface | None = None

    def __post_init__(self) -> None:
        self.carried = Carried(self.facts)
        self._fold = self.new()

    def event(self, event: Event) -> None:
        """Nothing: the surface of the requests says all."""

    def request(self, sent: Sent) -> None:
        """Fold what is new in the request."""
        if sent.request.dispatch.kind != "step":
            return
        surface, known = sent.request.snapshot.surface, self._surface
        start = len(known) if known is not None and surface.extends(known) else 0
        if not start:
            self._fold = self.new()
        for derived in derive_nodes(surface[start:] if start else surface, surface.marks):
            self._fold.node(derived.seq, derived.message)
        self._surface = surface
        for issue in self._fold.issues(sent):
            self.carried.add(issue, sent)

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """One finding an issue."""
        return self.carried.findings()


def calls_of(message: dict[str, Json]) -> Iterator[tuple[int, dict[str, Json]]]:
    """Place and block of each tool call of an answer."""
    if message.get("role") == "assistant":
        for place, block in enumerate(as_list(message.get("content"))):
            if as_object(block).get("type") == "tool-call":
                yield place, block


def results_of(message: dict[str, Json]) -> list[str]:
    """Ids of the calls that a message answers."""
    if message.get("role") == "tool":
        return [str(message.get("toolCallId", ""))]
    blocks = (as_object(block) for block in as_list(message.get("content")))
    return [str(block.get("toolCallId", "")) for block in blocks if block.get("type") == "tool-result"]
