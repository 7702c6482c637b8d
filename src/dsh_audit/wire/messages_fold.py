"""The messages array of the Messages protocol, built message by message over an append-only run.

What is still open goes into the tail that ``view`` gives: the turn that the next message may continue, and queued
system messages. The blocks of a turn are held until it is closed, because its tool results go first.
Source: spec wire-deepseek 5.2, 5.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dsh_audit.events import Json
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import CannotEncodeError
from dsh_audit.wire.body import PartRun
from dsh_audit.wire.images import ImageWriter
from dsh_audit.wire.messages_blocks import (
    encode_assistant,
    encode_input,
    encode_result,
    encode_text,
    encode_tool_changes,
    fails_locally,
)
from dsh_audit.wire.parts import Part, Piece, close_list, merged_element

_CLOSE = close_list("messages")
_HEADS = {role: b'{"role":"' + role.encode() + b'","content":[' for role in ("user", "assistant", "system")}


@dataclass(frozen=True, slots=True)
class Route:
    """What the encoding of a message depends on besides the message.

    Args:
        model: the model that is called.
        in_history: the route takes changed system prompts as messages.
        legacy: 0.1.6: tool results in user messages, empty user messages kept, no developer messages.
    """

    model: str
    in_history: bool
    legacy: bool


class MessagesFold:
    """Takes the messages of one request, or of ever longer ones, in order.

    Attributes:
        system: joined text of the system message that became the top-level system text, with its seq.
        has_tool_changes: a tool-change block was written or is queued.
        images: writes what is no text; None where there is none.
    """

    def __init__(self, route: Route, images: ImageWriter | None = None) -> None:
        self.route = route
        self.images = images
        self.run = PartRun()
        self.system: tuple[str, int | None] = ("", None)
        self.has_tool_changes = False
        self._failure: CannotEncodeError | None = None
        self._role: Literal["user", "assistant"] | None = None
        self._results: list[Piece] = []
        self._others: list[Piece] = []
        self._queue: list[list[Piece]] = []
        self._open_parts: tuple[Part, ...] | None = None
        self._calls: set[str] = set()
        self._unanswered: set[str] = set()

    def continue_with(self, images: ImageWriter | None) -> None:
        """Let the writer of the next request write what follows."""
        if images is not None and self.images is not None:
            images.follow(self.images)
            self.images = images

    def push(self, messages: Iterable[DerivedMessage], blocks: Mapping[int, Sequence[Json]]) -> None:
        """Take further messages; after a failure they have no effect, because every later call fails too.

        Args:
            blocks: what stays of each developer message, by seq; see ToolProjection.
        """
        if self._failure is not None:
            return
        try:
            for derived in messages:
                message = derived.message if self.images is None else self.images.project(derived.message)
                self._take(derived.seq, message, blocks)
        except CannotEncodeError as error:
            self._failure = error

    def view(self) -> tuple[int, tuple[Part, ...]]:
        """How many parts of the run belong to the array as it is now, and what follows up to its ``]``.

        Raises:
            CannotEncodeError: the adapter refuses these messages.
        """
        if self._failure is not None:
            raise self._failure
        if self._queue and self._role != "user":
            raise _misplaced()
        if self._unanswered or (self._role == "assistant" and self._calls):
            raise fails_locally("tool calls without immediate results")
        return len(self.run), (*self._opened(), _CLOSE)

    def _opened(self) -> tuple[Part, ...]:
        """The open turn and the queued system messages; the same parts until one of them changes."""
        if self._open_parts is None:
            index = len(self.run)
            turns: list[tuple[str, list[Piece]]] = []
            if self._role is not None:
                turns.append((self._role, [*self._results, *self._others]))
            turns += [("system", queued) for queued in self._queue]
            self._open_parts = tuple(
                merged_element("messages", index + number, _HEADS[role], pieces, b"]}", role)
                for number, (role, pieces) in enumerate(turns)
            )
        return self._open_parts

    def _take(self, seq: int, message: dict[str, Json], blocks: Mapping[int, Sequence[Json]]) -> None:
        role, content = message.get("role"), message["content"]
        if role == "developer":
            self._take_changes(seq, blocks.get(seq, ()))
        elif role == "system":
            self._take_system(seq, content)
        elif role == "assistant":
            self._take_assistant(seq, message)
        elif role == "tool":
            self._open("user")
            self._take_result(seq, message)
        else:
            self._take_user(seq, content)

    def _take_user(self, seq: int, content: Sequence[Json]) -> None:
        legacy = self.route.legacy
        if legacy:
            self._open("user")
        for block in content:
            if legacy and block.get("type") == "tool-result":
                self._take_result(seq, block)
                continue
            for encoded in encode_input((block,), self.images, strict=legacy):
                self._open("user")
                self._hold(self._others, encoded, seq)

    def _take_result(self, seq: int, block: dict[str, Json]) -> None:
        if block["toolCallId"] not in self._unanswered:
            raise fails_locally("a tool result without a call in the answer before it")
        self._unanswered.remove(block["toolCallId"])
        self._hold(self._results, encode_result(block, self.images, strict=self.route.legacy), seq)

    def _take_assistant(self, seq: int, message: dict[str, Json]) -> None:
        encoded = list(encode_assistant(message, self.route.model))
        if not encoded:
            return
        self._open("assistant")
        for block in message["content"]:
            if block.get("type") == "tool-call":
                if block["id"] in self._calls:
                    raise fails_locally("one answer has a tool call id twice")
                self._calls.add(block["id"])
        for data in encoded:
            self._hold(self._others, data, seq)

    def _take_system(self, seq: int, content: Sequence[Json]) -> None:
        if any(block.get("type") != "text" for block in content):
            raise fails_locally("a system message holds more than text")
        text = ecma.join(block["text"] for block in content)
        if self._role is None or not self.route.in_history:
            self.system = (text, seq)
        elif text:
            self._enqueue(seq, (encode_text(text),))
        else:
            raise fails_locally("an empty system update in the history")

    def _take_changes(self, seq: int, blocks: Sequence[Json]) -> None:
        encoded = tuple(encode_tool_changes(blocks))
        if encoded:
            self._enqueue(seq, encoded)
            self.has_tool_changes |= any(block.get("type") != "text" for block in blocks)

    def _hold(self, held: list[Piece], data: bytes, seq: int) -> None:
        held.append((data, seq))
        self._open_parts = None

    def _enqueue(self, seq: int, blocks: Iterable[bytes]) -> None:
        self._queue.append([(data, seq) for data in blocks])
        self._open_parts = None

    def _open(self, role: Literal["user", "assistant"]) -> None:
        """Make the next blocks those of a turn of ``role``: the open one, or a new one after closing it."""
        if role == "assistant" and self._queue and self._role != "user":
            raise _misplaced()
        if self._role == role:
            return
        if self._role == "user" and self._unanswered:
            raise fails_locally("tool calls without immediate results")
        if self._role != "user":
            self._unanswered, self._calls = self._calls, set()
        opened = self._opened()
        # Queued system messages wait until an answer follows; a user turn in between goes before them.
        closed = opened if role == "assistant" else opened[:1] if self._role is not None else ()
        for part in closed:
            self.run.append(part)
        if role == "assistant":
            self._queue.clear()
        self._results, self._others = [], []
        self._open_parts = None
        self._role = role


def _misplaced() -> CannotEncodeError:
    return fails_locally("a system update that does not follow a user turn")
