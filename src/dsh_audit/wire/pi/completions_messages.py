"""The messages of a chat completions body.

Source: wire-pi-ai 6.1; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.assemble import WireItem
from dsh_audit.wire.pi.history import RewriteId
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
from dsh_audit.wire.pi.reasoning_details import encrypted_details, parsed_details, signed_details
from dsh_audit.wire.pi.strings import clean, hash36, is_blank, safe_id
from dsh_audit.wire.pi.versions import PiRules

NO_TOOL_OUTPUT = "(no tool output)"
SEE_IMAGE = "(see attached image)"
_BRIDGE = "I have processed the tool results."
_RESULT_IMAGES = "Attached image(s) from tool result:"
_ID_UNITS = 40
_REASONING_KEYS = ("reasoning", "reasoning_content", "reasoning_text")


def chat_id_rule(model: dict[str, Json]) -> RewriteId:
    """How the ids of another model's calls are rewritten."""
    return lambda call_id, _message: chat_call_id(call_id, model["provider"])


def chat_call_id(call_id: str, provider: str) -> str:
    """The id that another model's call gets."""
    if "|" not in call_id:
        return ecma.utf16_slice(call_id, 0, _ID_UNITS) if provider == "openai" else call_id
    first, second = (safe_id(half) for half in call_id.split("|", 1))
    joined = f"{first}_{second}" if second else first
    if len(joined) <= _ID_UNITS:
        return joined
    short = hash36(call_id)[:8]
    return f"{first[: max(1, _ID_UNITS - 1 - len(short))]}_{short}"


def chat_tools(tools: Iterable[dict[str, Json]], compat: dict[str, Json]) -> list[Json]:
    """Tool definitions."""
    strict = {} if compat["supportsStrictMode"] is False else {"strict": False}
    return [{"type": "function", "function": {**tool, **strict}} for tool in tools]


def data_url(image: Image) -> str:
    """An image as both OpenAI protocols send it."""
    return f"data:{image.media_type};base64,{image.data}"


def joined_texts(content: tuple[Part, ...]) -> str:
    """The texts of a tool result, a line each."""
    return ecma.join(["\n".join(part.text for part in content if isinstance(part, Text))])


def result_text(content: tuple[Part, ...]) -> str:
    """The text of a tool result or its stand-in; emptiness is tested before cleaning."""
    if text := joined_texts(content):
        return clean(text)
    return SEE_IMAGE if any(isinstance(part, Image) for part in content) else NO_TOOL_OUTPUT


def _image_part(image: Image) -> dict[str, Json]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def instructions_item(text: str, seq: int | None, model: dict[str, Json], compat: dict[str, Json]) -> WireItem:
    """A message of the system."""
    is_developer = bool(model["reasoning"]) and bool(compat["supportsDeveloperRole"])
    return WireItem({"role": "developer" if is_developer else "system", "content": clean(text)}, (seq,))


def can_carry_marker(item: WireItem) -> bool:
    """Whether the cache marker at the end of the history can stand on an item."""
    content = item.value.get("content")
    has_text = bool(content) if isinstance(content, str) else any(part["type"] == "text" for part in content or ())
    return has_text and item.value["role"] in ("user", "assistant", "tool")


def marked(item: WireItem, marker: dict[str, Json]) -> WireItem | None:
    """The item with a marker on its last text; None when it has none."""
    content = item.value.get("content")
    if isinstance(content, str):
        parts: list[Json] = [{"type": "text", "text": content}] if content else []
    else:
        parts = list(content or [])
    for index in reversed(range(len(parts))):
        if parts[index]["type"] == "text":
            parts[index] = {**parts[index], "cache_control": marker}
            return replace(item, value={**item.value, "content": parts})
    return None


class ChatWriter:
    """Writes the transformed history.

    Args:
        adds_in_place: tools that a later message adds are declared there.
        marker: for the first system message; None when there is none, or when the prompt before has it.
    """

    def __init__(
        self,
        model: dict[str, Json],
        compat: dict[str, Json],
        rules: PiRules,
        adds_in_place: bool,
        marker: dict[str, Json] | None,
    ) -> None:
        self._rules = rules
        self._adds_in_place = adds_in_place
        self._model = model
        self._compat = compat
        self._marker = marker
        self._after_results = False
        self._run: list[ToolResult] = []

    def fork(self) -> ChatWriter:
        """A writer in the same state whose work leaves this one alone."""
        fork = copy(self)
        fork._run = self._run.copy()
        return fork

    def write(self, message: Message) -> Iterator[WireItem]:
        """The items that are final with a message."""
        if isinstance(message, ToolResult):
            self._run.append(message)
            yield self._result(message)
            return
        yield from self.finish()
        if isinstance(message, System):
            yield from map(self._marked_first, self._system(message))
            self._after_results = False
        elif isinstance(message, User):
            yield from self._bridge(self._after_results)
            if message.content or isinstance(message.content, str):
                yield WireItem({"role": "user", "content": _user_content(message)}, (message.seq,))
                self._after_results = False
        else:
            value = self._assistant(message)
            if value is not None:
                yield WireItem(value, (message.seq,))
                self._after_results = False

    def finish(self) -> Iterator[WireItem]:
        """End a run of results: their images follow in a message of their own."""
        if not self._run:
            return
        images = [part for result in self._run for part in result.content if isinstance(part, Image)]
        if "image" not in self._model["input"]:
            images = []
        if images:
            yield from self._bridge(True)
            parts = [{"type": "text", "text": _RESULT_IMAGES}, *map(_image_part, images)]
            yield WireItem({"role": "user", "content": parts}, (self._run[-1].seq,))
        self._after_results = not images
        self._run = []

    def _system(self, message: System) -> Iterator[WireItem]:
        if message.added and self._adds_in_place:
            yield WireItem({"role": "system", "tools": chat_tools(message.added, self._compat)}, (message.seq,))
        if message.text:
            yield instructions_item(message.text, message.seq, self._model, self._compat)

    def _marked_first(self, item: WireItem) -> WireItem:
        marker, self._marker = self._marker, None
        return item if marker is None else marked(item, marker) or item

    def _bridge(self, is_needed: bool) -> Iterator[WireItem]:
        if is_needed and self._compat["requiresAssistantAfterToolResult"]:
            yield WireItem({"role": "assistant", "content": _BRIDGE})

    def _result(self, result: ToolResult) -> WireItem:
        value: dict[str, Json] = {"role": "tool", "content": result_text(result.content)}
        value["tool_call_id"] = result.call_id
        if self._compat["requiresToolResultName"] and result.name:
            value["name"] = result.name
        return WireItem(value, (result.seq,))

    def _assistant(self, message: Assistant) -> dict[str, Json] | None:
        """The wire message, or None when it says nothing."""
        empty = "" if self._compat["requiresAssistantAfterToolResult"] else None
        value: dict[str, Json] = {"role": "assistant", "content": empty}
        shown = [b for b in message.blocks if isinstance(b, Call) or not is_blank(b.text)]
        texts = [clean(block.text) for block in shown if isinstance(block, Text)]
        if joined := ecma.join(texts):
            value["content"] = joined
        calls = [block for block in message.blocks if isinstance(block, Call)]
        details = self._details(message, calls)
        thinking = [block for block in shown if isinstance(block, Thinking)]
        self._add_thinking(value, thinking, texts, hides_reasoning=bool(details) and self._checks)
        if calls:
            value["tool_calls"] = [_call(call) for call in calls]
        if details:
            value["reasoning_details"] = details
        is_filled = self._compat["requiresReasoningContentOnAssistantMessages"] and self._model["reasoning"]
        if is_filled and "reasoning_content" not in value:
            value["reasoning_content"] = ""
        return value if value["content"] or "tool_calls" in value else None

    @property
    def _checks(self) -> bool:
        return self._rules.checks_reasoning_details

    def _details(self, message: Assistant, calls: list[Call]) -> list[Json]:
        if not self._checks:
            return [detail for call in calls if call.signature for detail in parsed_details(call.signature)]
        signatures = [block.signature for block in message.blocks if isinstance(block, Thinking)]
        signed = next(filter(None, map(signed_details, signatures)), None)
        return signed or [detail for call in calls for detail in encrypted_details(call.signature)]

    def _add_thinking(
        self, value: dict[str, Json], blocks: list[Thinking], texts: list[str], *, hides_reasoning: bool
    ) -> None:
        if not blocks:
            return
        if self._compat["requiresThinkingAsText"]:
            parts = [ecma.join(["\n\n".join(clean(block.text) for block in blocks)]), *texts]
            value["content"] = [{"type": "text", "text": part} for part in parts]
            return
        key = blocks[0].signature
        if self._model["provider"] == "opencode-go" and key == "reasoning":
            key = "reasoning_content"
        if key and not hides_reasoning and (not self._checks or key in _REASONING_KEYS):
            _set_member(value, key, ecma.join(["\n".join(block.text for block in blocks)]))


def _user_content(message: User) -> str | list[Json]:
    if isinstance(message.content, str):
        return clean(message.content)
    return [
        {"type": "text", "text": clean(part.text)} if isinstance(part, Text) else _image_part(part)
        for part in message.content
    ]


def _set_member(value: dict[str, Json], key: str, text: str) -> None:
    """Set a member whose name is data: array-index names go first, ``__proto__`` is not a member."""
    if key == "__proto__":
        return
    value[key] = text
    if key.isdecimal():
        ordered = ecma.parse(ecma.stringify(value))
        value.clear()
        value.update(ordered)


def _call(call: Call) -> dict[str, Json]:
    function = {"name": call.name, "arguments": ecma.stringify_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
