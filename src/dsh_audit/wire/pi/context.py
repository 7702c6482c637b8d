"""Stage A: harness messages → the neutral context.

Takes the messages of every log format: tool results as blocks inside user messages (formats 0 to 3) and as
messages of role ``tool`` (format 4). Which message is the system prompt, and what later system and developer
messages become, depends on the release.

Source: wire-pi-ai 2.1, 4.1, 7; dsh-llm-pi-ai 0.1.0-rc.8, 0.1.2-rc.1, 0.1.5-rc.1, 0.2.1-rc.2 context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.images import ImageSource, has_image, image_parts
from dsh_audit.wire.pi.neutral import Context, Message, Part, System, Text, ToolResult, User
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.replay import neutral_assistant
from dsh_audit.wire.pi.versions import PiRules

NO_OUTPUT = "(no output)"
Sourced = tuple[int | None, dict[str, Json]]
"""(seq of the log event, message)."""


def owns_every_route(_provider: str) -> bool:
    """For messages whose unusable replay state is gone already."""
    return True


def build_context(
    messages: Sequence[Sourced],
    rules: PiRules,
    *,
    system: str | None = None,
    tools: Iterable[dict[str, Json]] = (),
    owns: Callable[[str], bool] = owns_every_route,
    images: ImageSource | None = None,
) -> Context:
    """Convert a request's history.

    Args:
        messages: in surface order.
        system: the prompt that is not among the messages.
        owns: whether the adapter that serves this request also owned a provider route; replay state of any
            other route never reaches it.
        images: needed when a message holds an image.

    Raises:
        PiRefusedError: a message holds what the adapter refuses.
    """
    prompt, rest = split_prompt(messages, system, rules)
    converter = _Converter(rules, owns, images, {tool["name"]: tool for tool in reversed(list(tools))})
    for seq, message in rest:
        converter.add(message, seq)
    shown = tools if not rules.has_transcripts else (tool for tool in tools if not tool.get("deferLoading"))
    return Context(prompt, tuple(converter.messages), tuple(map(_tool, shown)))


def split_prompt(
    messages: Sequence[Sourced], system: str | None, rules: PiRules
) -> tuple[str | None, Sequence[Sourced]]:
    """The system prompt and the messages after it."""
    if rules.prompt == "first" and system is None and messages and messages[0][1]["role"] == "system":
        return flat_text(messages[0][1]["content"]), messages[1:]
    if rules.prompt != "leading":
        return system, messages
    roles = [message["role"] for _, message in messages]
    count = next((at for at, role in enumerate(roles) if role != "system"), len(roles))
    texts = [system or "", *(flat_text(message["content"]) for _, message in messages[:count])]
    return ecma.join(["\n\n".join(text for text in texts if text)]), messages[count:]


def _tool(tool: dict[str, Json]) -> dict[str, Json]:
    return {key: tool[key] for key in ("name", "description", "parameters") if key in tool}


class _Converter:
    """Walks the history once and remembers the tool names of earlier calls."""

    def __init__(
        self,
        rules: PiRules,
        owns: Callable[[str], bool],
        images: ImageSource | None,
        tools: dict[str, dict[str, Json]],
    ) -> None:
        self.messages: list[Message] = []
        self._rules = rules
        self._owns = owns
        self._images = images
        self._tools = tools
        self._names: dict[str, str] = {}

    def add(self, message: dict[str, Json], seq: int | None) -> None:
        match message["role"]:
            case "assistant":
                self._add_assistant(message, seq)
            case "system":
                self._add_system(message["content"], seq)
            case "developer":
                self._add_developer(message["content"], seq)
            case "tool":
                self._add_result(message, seq)
            case _:
                self._add_user(message["content"], seq)

    def _add_assistant(self, message: dict[str, Json], seq: int | None) -> None:
        _refuse_image(message["content"], "assistant")
        for block in message["content"]:
            if block.get("type") == "tool-call":
                self._names[block["id"]] = block["name"]
        self.messages.append(neutral_assistant(message, seq, self._owns, self._rules))

    def _add_system(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        _refuse_image(blocks, "system")
        text = flat_text(blocks)
        if self._rules.later_system == "user":
            self.messages.append(User(text, seq))
        elif text:
            self.messages.append(System(text, seq=seq))

    def _add_developer(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        """Instructions, tool additions and removals."""
        texts = [block["text"] for block in blocks if block["type"] == "text" and block["text"]]
        added = [block["toolName"] for block in blocks if block["type"] == "tool-addition"]
        removed = [block["toolName"] for block in blocks if block["type"] == "tool-removal"]
        unknown = [name for name in added if name not in self._tools]
        if unknown:
            raise no_request(f'a tool update names the undeclared tool "{unknown[0]}"')
        if texts or added or removed:
            definitions = tuple(_tool(self._tools[name]) for name in added)
            text = ecma.join(["\n".join(texts)])
            self.messages.append(System(text, definitions, tuple(removed), seq))

    def _add_user(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        results = [block for block in blocks if block["type"] == "tool-result"]
        content = self._content([block for block in blocks if block["type"] != "tool-result"])
        if content or not results:
            self.messages.append(User(content, seq))
        for result in results:
            self._add_result(result, seq)

    def _add_result(self, result: dict[str, Json], seq: int | None) -> None:
        content = self._content(result["content"])
        parts = (Text(content or NO_OUTPUT),) if isinstance(content, str) else content
        is_error = result.get("isError")
        name = self._names.get(result["toolCallId"], "unknown")
        flag = False if is_error is None else is_error
        self.messages.append(ToolResult(result["toolCallId"], name, parts, flag, seq))

    def _content(self, blocks: list[dict[str, Json]]) -> str | tuple[Part, ...]:
        """One string, or parts when an image is among the blocks, nested results included."""
        if not has_image(blocks):
            return flat_text(blocks, nested=True)
        parts: list[Part] = []
        for block in blocks:
            match block["type"]:
                case "text":
                    parts += [Text(block["text"])] if block["text"] else []
                case "image":
                    parts += image_parts(block, self._images)
                case "tool-result":
                    inner = self._content(block["content"])
                    parts += inner if not isinstance(inner, str) else [Text(inner)] if inner else []
        if all(isinstance(part, Text) for part in parts):
            return ecma.join(part.text for part in parts if isinstance(part, Text))
        return tuple(parts)


def flat_text(blocks: list[dict[str, Json]], *, nested: bool = False) -> str:
    """The texts of a message joined with nothing; those of nested results only where asked for."""
    return ecma.join(
        block["text"] if block["type"] == "text" else flat_text(block["content"], nested=True)
        for block in blocks
        if block["type"] == "text" or (nested and block["type"] == "tool-result")
    )


def _refuse_image(blocks: list[dict[str, Json]], role: str) -> None:
    if has_image(blocks):
        raise no_request(f"the adapter refuses an image in a {role} message of the history")
