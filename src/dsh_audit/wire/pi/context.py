"""Stage A: harness messages → the neutral context.

Takes the messages of every log format: tool results as blocks inside user messages (formats 0 to 3) and as
messages of role ``tool`` (format 4). Which message is the system prompt, and what later system and developer
messages become, depends on the release.

Source: wire-pi-ai 2.1, 4.1, 7; dsh-llm-pi-ai 0.1.0-rc.8, 0.1.2-rc.1, 0.1.5-rc.1, 0.2.1-rc.2 context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.images import ImageSource, has_image, image_parts
from dsh_audit.wire.pi.limits import json_units, message_tokens, tokens_of
from dsh_audit.wire.pi.neutral import Assistant, Call, Context, Message, Part, System, Text, ToolResult, User
from dsh_audit.wire.pi.refusal import PiRefusedError, no_request
from dsh_audit.wire.pi.replay import neutral_assistant
from dsh_audit.wire.pi.versions import PiRules

NO_OUTPUT = "(no output)"


def owns_every_route(_provider: str) -> bool:
    """For messages whose unusable replay state is gone already."""
    return True


class Conversation:
    """A history that grows: a left fold over harness messages that gives the context of a request at any point.

    Args:
        owns: whether the adapter that serves these requests also owned a provider route; replay state of any other
            route never reaches it.
        images: needed when a message holds an image.
        has_system: whether requests bring a system prompt of their own.
    """

    def __init__(
        self,
        rules: PiRules,
        owns: Callable[[str], bool] = owns_every_route,
        images: ImageSource | None = None,
        *,
        has_system: bool,
    ) -> None:
        self._rules = rules
        self._owns = owns
        self._images = images
        self._messages: list[Message] = []
        self._changes: list[System] = []
        self._names: dict[str, str] = {}
        self._prompts: list[str] = []
        self._takes_prompt = rules.prompt == "leading" or (rules.prompt == "first" and not has_system)
        self._has_tool_history = False
        self._names_tools = False
        self._tokens = 0
        self._logged_tools: Sequence[dict[str, Json]] = ()
        self._by_name: dict[str, dict[str, Json]] = {}
        self._tools: tuple[dict[str, Json], ...] = ()
        self._tool_tokens = 0
        self._failure: PiRefusedError | None = None

    def set_tools(self, tools: Sequence[dict[str, Json]]) -> bool:
        """Declare the tools of the next request; False when messages were read with others, so the fold is void."""
        if tools is self._logged_tools or tools == self._logged_tools:
            return True
        if self._names_tools:
            return False
        self._logged_tools = tools
        self._by_name = {tool["name"]: tool for tool in reversed(tools)}
        hides = self._rules.has_transcripts
        self._tools = tuple(_tool(tool) for tool in tools if not (hides and tool.get("deferLoading")))
        self._tool_tokens = tokens_of(json_units(self._tools), self._rules)
        return True

    def add(self, message: dict[str, Json], seq: int | None) -> None:
        """Take the next message; after one that the adapter refuses the others have no effect."""
        if self._failure is not None or self._is_prompt(message):
            return
        try:
            self._convert(message, seq)
        except PiRefusedError as refusal:
            self._failure = refusal

    def context(self, system: str | None) -> Context:
        """The context of a request over the messages taken so far.

        Args:
            system: the prompt that is not among the messages.

        Raises:
            PiRefusedError: a message holds what the adapter refuses.
        """
        if self._failure is not None:
            raise self._failure
        prompt = system
        if self._rules.prompt == "leading":
            prompt = ecma.join(["\n\n".join(text for text in (system or "", *self._prompts) if text)])
        elif self._prompts:
            prompt = self._prompts[0]
        tokens = self._tokens + self._tool_tokens + tokens_of(ecma.length(prompt or ""), self._rules)
        return Context(prompt, self._messages, self._tools, self._changes, tokens, self._has_tool_history)

    def _is_prompt(self, message: dict[str, Json]) -> bool:
        """Whether a message is (part of) the system prompt: the first, or all leading ones, by release."""
        if not self._takes_prompt:
            return False
        is_prompt: bool = message["role"] == "system"
        self._takes_prompt = is_prompt and self._rules.prompt == "leading"
        if is_prompt:
            self._prompts.append(flat_text(message["content"]))
        return is_prompt

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        self._tokens += message_tokens(message, self._rules)
        if isinstance(message, System):
            self._changes.append(message)
        elif isinstance(message, Assistant):
            self._has_tool_history |= any(isinstance(block, Call) for block in message.blocks)
        else:
            self._has_tool_history |= isinstance(message, ToolResult)

    def _convert(self, message: dict[str, Json], seq: int | None) -> None:
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
        self._append(neutral_assistant(message, seq, self._owns, self._rules))

    def _add_system(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        _refuse_image(blocks, "system")
        text = flat_text(blocks)
        if self._rules.later_system == "user":
            self._append(User(text, seq))
        elif text:
            self._append(System(text, seq=seq))

    def _add_developer(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        """Instructions, tool additions and removals."""
        texts = [block["text"] for block in blocks if block["type"] == "text" and block["text"]]
        added = [block["toolName"] for block in blocks if block["type"] == "tool-addition"]
        removed = [block["toolName"] for block in blocks if block["type"] == "tool-removal"]
        self._names_tools |= bool(added)
        unknown = [name for name in added if name not in self._by_name]
        if unknown:
            raise no_request(f'a tool update names the undeclared tool "{unknown[0]}"')
        if texts or added or removed:
            definitions = tuple(_tool(self._by_name[name]) for name in added)
            text = ecma.join(["\n".join(texts)])
            self._append(System(text, definitions, tuple(removed), seq))

    def _add_user(self, blocks: list[dict[str, Json]], seq: int | None) -> None:
        results = [block for block in blocks if block["type"] == "tool-result"]
        content = self._content([block for block in blocks if block["type"] != "tool-result"])
        if content or not results:
            self._append(User(content, seq))
        for result in results:
            self._add_result(result, seq)

    def _add_result(self, result: dict[str, Json], seq: int | None) -> None:
        content = self._content(result["content"])
        parts = (Text(content or NO_OUTPUT),) if isinstance(content, str) else content
        is_error = result.get("isError")
        name = self._names.get(result["toolCallId"], "unknown")
        flag = False if is_error is None else is_error
        self._append(ToolResult(result["toolCallId"], name, parts, flag, seq))

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


def _tool(tool: dict[str, Json]) -> dict[str, Json]:
    return {key: tool[key] for key in ("name", "description", "parameters") if key in tool}


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
