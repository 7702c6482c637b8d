"""The message list of a body as a left fold: messages → items → parts, each printed once.

What a longer history can still change stays out of the shared run: what the end of the history adds (results for
calls without one, blocks of an open run of results), and the items from the last one that can carry a cache marker on.
Source: wire-pi-ai 5, 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

from dsh_audit.wire.body import PartRun
from dsh_audit.wire.parts import Part, PartMemory
from dsh_audit.wire.pi.assemble import WireItem, item_part
from dsh_audit.wire.pi.history import History
from dsh_audit.wire.pi.neutral import Context, Message, System
from dsh_audit.wire.pi.refusal import PiRefusedError
from dsh_audit.wire.pi.transcript import Transcript

CanMark = Callable[[WireItem], bool]


class Writer(Protocol):
    """Writes the transformed history of one protocol."""

    def write(self, message: Message) -> Iterator[WireItem]:
        """The items that are final with this message."""
        ...

    def finish(self) -> Iterator[WireItem]:
        """The items that the end of the history gives; asked of a fork."""
        ...

    def fork(self: W) -> W:
        """A writer in the same state whose work leaves this one alone."""
        ...


W = TypeVar("W", bound=Writer)


class ItemFold:
    """The items of one message list so far.

    Args:
        key: what the items depend on besides the messages; with another one the fold starts again.
        first_index: how many items of the list stand before these.
        can_mark: whether an item can carry the cache marker of the history; None when nothing does.
    """

    def __init__(
        self,
        key: tuple[object, ...],
        context: Context,
        transcript: Transcript,
        history: History,
        writer: Writer,
        *,
        list_key: str,
        first_index: int,
        can_mark: CanMark | None,
    ) -> None:
        self.key = key
        self.source = context.messages
        self.run = PartRun()
        self.list_key = list_key
        self._first_index = first_index
        self._taken = 1 if transcript.skips_first else 0
        self._drops_system = transcript.drops_system
        self._history = history
        self._writer = writer
        self._can_mark = can_mark
        self._held: list[WireItem] = []
        self._memory = PartMemory()
        self._failure: PiRefusedError | None = None

    def extend(self) -> None:
        """Take the messages that are new.

        Raises:
            PiRefusedError: the protocol cannot print one, now or in an earlier request.
        """
        if self._failure is None:
            start, self._taken = self._taken, len(self.source)
            try:
                for message in islice(self.source, start, None):
                    if not (self._drops_system and isinstance(message, System)):
                        for let_go in self._history.take(message):
                            self._keep(self._writer.write(let_go))
            except PiRefusedError as refusal:
                self._failure = refusal
        if self._failure is not None:
            raise self._failure

    def open_items(self) -> list[WireItem]:
        """The items behind the run as the list is now; they are shared and never changed."""
        writer = self._writer.fork()
        added = [item for message in self._history.pending() for item in writer.write(message)]
        return [*self._held, *added, *writer.finish()]

    def print_open(self, items: Iterable[WireItem]) -> tuple[Part, ...]:
        """Their parts; those of the last request where they are the same."""
        start = self._first_index + len(self.run)
        return tuple(self._print(start + number, item) for number, item in enumerate(items))

    def _keep(self, items: Iterable[WireItem]) -> None:
        for item in items:
            if self._can_mark is None:
                self._freeze(item)
            elif self._can_mark(item):
                for held in self._held:
                    self._freeze(held)
                self._held = [item]
            else:
                self._held.append(item)

    def _freeze(self, item: WireItem) -> None:
        self.run.append(self._print(self._first_index + len(self.run), item))

    def _print(self, index: int, item: WireItem) -> Part:
        return self._memory.keep(item_part(self.list_key, index, item))


def resume(known: ItemFold | None, key: tuple[object, ...], context: Context, make: Callable[[], ItemFold]) -> ItemFold:
    """The fold of the last request where this one goes on with it, else a new one; extended either way."""
    if known is None or known.source is not context.messages or known.key != key:
        known = make()
    known.extend()
    return known
