"""The messages of an Anthropic Messages body.

Source: wire-pi-ai 6.3; pi-ai 0.82.1, 0.85.1 and 1.3.0 api/anthropic-messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.anthropic_tools import ToolPrinter
from dsh_audit.wire.pi.assemble import WireItem
from dsh_audit.wire.pi.completions_messages import SEE_IMAGE, joined_texts
from dsh_audit.wire.pi.history import replace_images, transform
from dsh_audit.wire.pi.neutral import (
    Assistant,
    Call,
    Context,
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
    """Writes the messages of one request.

    Args:
        changes: prints tools that are added in place; None when tool changes are not native.
    """

    def __init__(self, settings: Settings, changes: ToolPrinter | None) -> None:
        self._items: list[WireItem] = []
        self.levels: dict[int, str] = {}
        self._settings = settings
        self._names = ToolPrinter(settings)
        self._changes = changes
        self._allow_unsigned = compat_flag(settings.compat, "allowEmptySignature", False)
        self._pending: list[WireItem] = []

    def write(self, context: Context) -> list[WireItem]:
        """The message list without markers; ``levels`` then holds the effort of assistant items by index."""
        history = transform(context.messages, self._settings.model, _rewrite_id, self._settings.rules)
        for is_result, run in groupby(history, lambda message: isinstance(message, ToolResult)):
            if is_result:
                self._write_results([message for message in run if isinstance(message, ToolResult)])
            else:
                for message in run:
                    self._write(message)
        self._flush()
        return self._items

    def _flush(self) -> None:
        self._items += self._pending
        self._pending = []

    def _write(self, message: Message) -> None:
        if isinstance(message, System):
            if blocks := self._system_blocks(message):
                self._pending.append(WireItem({"role": "system", "content": blocks}, (message.seq,)))
        elif isinstance(message, User):
            content = _user_content(message)
            if content or content == "":
                self._items.append(WireItem({"role": "user", "content": content}, (message.seq,)))
        elif isinstance(message, Assistant):
            self._write_assistant(message)

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

    def _write_assistant(self, message: Assistant) -> None:
        self._flush()
        blocks = [value for block in message.blocks for value in self._block(block)]
        if not blocks:
            return
        model = self._settings.model
        is_own = message.api == "anthropic-messages" and message.provider == model["provider"]
        if is_own and message.level in _EFFORTS:
            self.levels[len(self._items)] = message.level
        self._items.append(WireItem({"role": "assistant", "content": blocks}, (message.seq,)))

    def _block(self, block: Text | Thinking | Call) -> Iterator[Json]:
        if isinstance(block, Call):
            name = self._names.name(block.name)
            yield {"type": "tool_use", "id": block.id, "name": name, "input": block.arguments}
        elif isinstance(block, Thinking):
            yield from _thinking(block, self._allow_unsigned)
        elif not is_blank(block.text):
            yield {"type": "text", "text": clean(block.text)}

    def _write_results(self, run: list[ToolResult]) -> None:
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
        self._items.append(WireItem({"role": "user", "content": blocks}, tuple(seqs)))


def with_effort_messages(items: list[WireItem], levels: dict[int, str], level: str) -> list[WireItem]:
    """Put the effort of each assistant message before it, and the one in force at the end."""
    marked: list[WireItem] = []
    for index, item in enumerate(items):
        if index in levels:
            marked.append(replace(_effort_message(levels[index]), seqs=item.seqs[:1]))
        marked.append(item)
    return [*marked, _effort_message(level)]


def _effort_message(level: str) -> WireItem:
    return WireItem({"role": "system", "content": [], "output_config": {"effort": level}})


def mark_history(items: list[WireItem], marker: dict[str, Json] | None) -> None:
    """Put the marker on the last block of a final user or system message."""
    if marker is None or not items or items[-1].value["role"] == "assistant":
        return
    message = items[-1].value
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"], "cache_control": marker}]
    else:
        message["content"][-1]["cache_control"] = marker


def _rewrite_id(call_id: str, _message: Assistant) -> str:
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
