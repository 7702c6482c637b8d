"""Stage B: the history transform that all protocols share.

First pass: what another model said loses its signatures and gets ids of the target's shape. Second pass:
errored turns go, and calls without a result get one.

Source: wire-pi-ai 5; pi-ai 0.82.1 api/transform-messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dsh_audit.events import Json
from dsh_audit.wire.pi.neutral import (
    Assistant,
    Block,
    Call,
    Image,
    Message,
    Part,
    System,
    Text,
    Thinking,
    ToolResult,
    User,
)
from dsh_audit.wire.pi.strings import is_blank
from dsh_audit.wire.pi.versions import PiRules

NO_RESULT = "No result provided"
_USER_IMAGE = "(image omitted: model does not support images)"
_RESULT_IMAGE = "(tool image omitted: model does not support images)"

RewriteId = Callable[[str, Assistant], str]
"""(id of a call, the message it is in) → the id that the target protocol accepts."""


def _without_images(message: Message) -> Message:
    if isinstance(message, User) and not isinstance(message.content, str):
        return replace(message, content=replace_images(message.content, _USER_IMAGE))
    if isinstance(message, ToolResult):
        return replace(message, content=replace_images(message.content, _RESULT_IMAGE))
    return message


def replace_images(parts: tuple[Part, ...], stand_in: str) -> tuple[Part, ...]:
    """One stand-in for each run of images; a text that equals it absorbs the run after it."""
    shown: list[Part] = []
    for part in parts:
        is_image = isinstance(part, Image)
        previous = shown[-1] if shown else None
        if is_image and isinstance(previous, Text) and previous.text == stand_in:
            continue
        shown.append(Text(stand_in) if is_image else part)
    return tuple(shown)


class History:
    """The transform as a left fold: messages in, messages as the target model gets them out.

    Only what the end of the history adds is ever taken back: ``pending`` gives it and changes nothing.

    Args:
        model: the resolved model: id, api, provider, input.
    """

    def __init__(self, model: dict[str, Json], rewrite_id: RewriteId, rules: PiRules) -> None:
        self._target = (model["provider"], model["api"], model["id"])
        self._takes_images = "image" in model["input"]
        self._rewrite_id = rewrite_id
        self._rules = rules
        self._ids: dict[str, str] = {}
        self._outstanding: list[Call] = []
        self._seen: set[str] = set()
        self._held: list[System] = []

    def take(self, message: Message) -> Iterator[Message]:
        """The messages that a further one lets go."""
        if not self._takes_images:
            message = _without_images(message)
        if isinstance(message, ToolResult):
            # An id rewritten to nothing is not applied to results.
            new_id = self._ids.get(message.call_id) or message.call_id
            self._seen.add(new_id)
            yield message if new_id == message.call_id else replace(message, call_id=new_id)
        elif isinstance(message, System):
            # Transparent to calls: it waits until the results are in.
            if self._outstanding:
                self._held.append(message)
            else:
                yield message
        else:
            yield from self.pending()
            self._outstanding, self._seen, self._held = [], set(), []
            if isinstance(message, Assistant):
                message = self._assistant(message)
                if message.stop_reason in ("error", "aborted"):
                    return
                self._outstanding = [block for block in message.blocks if isinstance(block, Call)]
            yield message

    def pending(self) -> list[Message]:
        """What the end of the history adds: a result for each call without one, and what waited for them."""
        missing = (call for call in self._outstanding if call.id not in self._seen)
        return [*(ToolResult(call.id, call.name, (Text(NO_RESULT),), True) for call in missing), *self._held]

    def _assistant(self, message: Assistant) -> Assistant:
        same = (message.provider, message.api, message.model) == self._target
        blocks = [self._same(block) if same else self._other(block, message) for block in message.blocks]
        return replace(message, blocks=tuple(block for block in blocks if block is not None))

    def _same(self, block: Block) -> Block | None:
        if isinstance(block, Thinking) and not block.redacted and not block.signature:
            return None if is_blank(block.text) else block
        return block

    def _other(self, block: Block, message: Assistant) -> Block | None:
        if isinstance(block, Thinking):
            if block.redacted or is_blank(block.text) or self._rules.drops_foreign_reasoning:
                return None
            return Text(block.text)
        if isinstance(block, Text):
            return Text(block.text)
        new_id = self._rewrite_id(block.id, message)
        if new_id != block.id:
            self._ids[block.id] = new_id
        return Call(new_id, block.name, block.arguments, namespace=block.namespace)
