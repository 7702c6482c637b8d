"""The messages of an Anthropic Messages body.

Source: wire-pi-ai 6.3; pi-ai 0.82.1, 0.85.1 and 1.3.0 api/anthropic-messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.anthropic_tools import ToolPrinter
from dsh_audit.wire.pi.assemble import WireItem
from dsh_audit.wire.pi.completions_messages import SEE_IMAGE, joined_texts
from dsh_audit.wire.pi.history import replace_images
from dsh_audit.wire.pi.neutral import (
    Assistant,
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
from dsh_audit.wire.pi.settings import Settings, compat_flag
from dsh_audit.wire.pi.strings import clean, is_blank, safe_id

_ID_UNITS = 64
_LATER_IMAGE = "(image attached after the tool results)"
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


class ClaudeWriter:
    """Writes the transformed history.

    Args:
        changes: prints tools that are added in place; None when tool changes are not native.
        shows_effort: the effort behind each answer goes before it.
    """

    def __init__(self, settings: Settings, changes: ToolPrinter | None, *, shows_effort: bool) -> None:
        self._settings = settings
        self._names = ToolPrinter(settings)
        self._changes = changes
        self._shows_effort = shows_effort
        self._allow_unsigned = compat_flag(settings.compat, "allowEmptySignature", False)
        self._pending: list[WireItem] = []
        self._run: list[ToolResult] = []

    def fork(self) -> ClaudeWriter:
        """A writer in the same state whose work leaves this one alone."""
        fork = copy(self)
        fork._pending, fork._run = self._pending.copy(), self._run.copy()
        return fork

    def write(self, message: Message) -> Iterator[WireItem]:
        """The items that are final with a message."""
        if isinstance(message, ToolResult):
            self._run.append(message)
            return
        yield from self._end_run()
        if isinstance(message, System):
            if blocks := self._system_blocks(message):
                self._pending.append(WireItem({"role": "system", "content": blocks}, (message.seq,)))
        elif isinstance(message, User):
            content = _user_content(message)
            if content or content == "":
                yield WireItem({"role": "user", "content": content}, (message.seq,))
        else:
            yield from self._answer(message)

    def finish(self) -> Iterator[WireItem]:
        """What the end of the history gives: an open run of results, and system messages that wait."""
        yield from self._end_run()
        yield from self._pending
        self._pending = []

    def _end_run(self) -> Iterator[WireItem]:
        if self._run:
            yield self._results(self._run)
            self._run = []

    def _system_blocks(self, message: System) -> list[Json]:
        blocks: list[Json] = [{"type": "text", "text": clean(message.text)}] if message.text else []
        if self._changes is None:
            return blocks
        defined = {tool["name"] for tool in message.added}
        for name in message.removed:
            if name not in defined:
                reference = {"type": "tool_reference", "name": self._changes.name(name)}
                blocks.append({"type": "tool_removal", "tool": reference})
        for definition in self._changes.definitions(message.added, None):
            tool = {"type": "tool_definition", "definition": definition}
            blocks.append({"type": "tool_addition", "tool": tool})
        return blocks

    def _answer(self, message: Assistant) -> Iterator[WireItem]:
        yield from self.finish()
        blocks = [value for block in message.blocks for value in self._block(block)]
        if not blocks:
            return
        is_own = message.api == "anthropic-messages" and message.provider == self._settings.model["provider"]
        if self._shows_effort and is_own and message.level in _EFFORTS:
            yield effort_item(str(message.level), message.seq)
        yield WireItem({"role": "assistant", "content": blocks}, (message.seq,))

    def _block(self, block: Text | Thinking | Call) -> Iterator[Json]:
        if isinstance(block, Call):
            name = self._names.name(block.name)
            yield {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}
        elif isinstance(block, Thinking):
            yield from _thinking(block, self._allow_unsigned)
        elif not is_blank(block.text):
            yield {"type": "text", "text": clean(block.text)}

    def _results(self, run: list[ToolResult]) -> WireItem:
        """A run of results is one user message; the images of failed ones come last in 1.3.0."""
        blocks: list[Json] = []
        seqs: list[int | None] = []
        later: list[tuple[Json, int | None]] = []
        for result in run:
            content = result.content
            images = [part for part in content if isinstance(part, Image)]
            if self._settings.rules.has_transcripts and result.is_error and images:
                content = replace_images(content, _LATER_IMAGE)
                moved: list[Json] = [{"type": "text", "text": _caption(result)}, *map(_part, images)]
                later += [(part, result.seq) for part in moved]
            blocks.append(_result(result, content))
            seqs.append(result.seq)
        blocks += [block for block, _ in later]
        seqs += [seq for _, seq in later]
        return WireItem({"role": "user", "content": blocks}, tuple(seqs))


def effort_item(level: str, seq: int | None = None) -> WireItem:
    """A message that sets the effort."""
    return WireItem({"role": "system", "content": [], "output_config": {"effort": level}}, (seq,))


def can_carry_marker(_item: WireItem) -> bool:
    """Whether an item is held back for the marker: always, since the marker stands on the last one."""
    return True


def mark_last(items: list[WireItem], marker: dict[str, Json] | None) -> list[WireItem]:
    """The items with the marker on the last block of a final user or system message."""
    if marker is None or not items or items[-1].value["role"] == "assistant":
        return items
    content = items[-1].value["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    value = {**items[-1].value, "content": [*blocks[:-1], {**blocks[-1], "cache_control": marker}]}
    return [*items[:-1], replace(items[-1], value=value)]


def rewrite_id(call_id: str, _message: Assistant) -> str:
    """The id that another model's call gets."""
    return safe_id(call_id)[:_ID_UNITS]


def _caption(result: ToolResult) -> str:
    return ecma.join([f"Images from the error result of tool call {result.call_id} ({result.name}):"])


def _result(result: ToolResult, content: tuple[Part, ...]) -> dict[str, Json]:
    return {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": _result_content(content),
        "is_error": result.is_error,
    }


def _result_content(content: tuple[Part, ...]) -> str | list[Json]:
    if not any(isinstance(part, Image) for part in content):
        return clean(joined_texts(content))
    blocks = [_part(part) for part in content]
    if any(isinstance(part, Text) for part in content):
        return blocks
    return [{"type": "text", "text": SEE_IMAGE}, *blocks]


def _part(part: Part) -> dict[str, Json]:
    if isinstance(part, Text):
        return {"type": "text", "text": clean(part.text)}
    source = {"type": "base64", "media_type": part.media_type, "data": part.data}
    return {"type": "image", "source": source}


def _user_content(message: User) -> str | list[Json] | None:
    if isinstance(message.content, str):
        # Blankness comes first: a text of unpaired surrogates alone is sent as an empty one.
        return None if is_blank(message.content) else clean(message.content)
    parts = [_part(part) for part in message.content]
    return [part for part in parts if part["type"] != "text" or not is_blank(part["text"])]


def _thinking(block: Thinking, allow_unsigned: bool) -> Iterator[Json]:
    if block.redacted:
        data = {} if block.signature is None else {"data": block.signature}
        yield {"type": "redacted_thinking", **data}
    elif block.signature and not is_blank(block.signature):
        yield {"type": "thinking", "thinking": clean(block.text), "signature": block.signature}
    elif is_blank(block.text):
        return
    elif allow_unsigned:
        yield {"type": "thinking", "thinking": clean(block.text), "signature": ""}
    else:
        yield {"type": "text", "text": clean(block.text)}
