"""Stage A: harness messages → the neutral context.

Takes the messages of every log format: tool results as blocks inside user messages (formats 0 to 3) and as
messages of role ``tool`` (format 4).

Source: wire-pi-ai 2.1, 4.1, 4.2, 7; dsh-llm-pi-ai 0.1.0-rc.8 context, replay.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsh_audit import ecma
from dsh_audit.events import Json
from dsh_audit.wire.pi.neutral import Assistant, Context, Image, Message, Part, Text, ToolResult, User
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.replay import neutral_assistant

NO_OUTPUT = "(no output)"


@dataclass(frozen=True, slots=True)
class ImageVersion:
    """The request version of an attachment.

    Args:
        data: the bytes that are sent.
        width, height: of this version, in pixels; printed in the handle text.
    """

    data: bytes
    media_type: str
    width: int
    height: int


ReadImage = Callable[[dict[str, Json]], ImageVersion]
"""An image block's ``attachment`` → what is sent for it."""


def owns_every_route(_provider: str) -> bool:
    """For messages whose unusable replay state is gone already."""
    return True


def build_context(
    messages: Iterable[tuple[int | None, dict[str, Json]]],
    *,
    system: str | None = None,
    tools: Iterable[dict[str, Json]] = (),
    owns: Callable[[str], bool] = owns_every_route,
    read_image: ReadImage | None = None,
    image_handles: bool = True,
) -> Context:
    """Convert a request's history.

    Args:
        messages: (seq, message) in surface order, without the head system message of formats 3 and later.
        owns: whether the adapter that serves this request also owned a provider route; replay state of any
            other route never reaches it.
        read_image: needed when a message holds an image.
        image_handles: whether a text that names the attachment goes before each image.

    Raises:
        PiRefusedError: an image stands where the adapter refuses it.
    """
    converter = _Converter(owns, _ImageReader(read_image, image_handles))
    for seq, message in messages:
        converter.add(message, seq)
    return Context(system, tuple(converter.messages), tuple(_tool(tool) for tool in tools))


def _tool(tool: dict[str, Json]) -> dict[str, Json]:
    return {key: tool[key] for key in ("name", "description", "parameters") if key in tool}


class _ImageReader:
    """Turns image blocks into parts."""

    def __init__(self, read: ReadImage | None, handles: bool) -> None:
        self._read = read
        self._handles = handles

    def parts(self, block: dict[str, Json]) -> list[Part]:
        if self._read is None:
            raise no_request("the request holds an image and no attachment store is given")
        attachment = block["attachment"]
        version = self._read(attachment)
        image = Image(version.media_type, base64.b64encode(version.data).decode("ascii"))
        if not self._handles:
            return [image]
        size = f"{version.width}x{version.height}px"
        return [Text(f"Image {attachment['attachmentId']}; request image {size}."), image]


class _Converter:
    """Walks the history once and remembers the tool names of earlier calls."""

    def __init__(self, owns: Callable[[str], bool], images: _ImageReader) -> None:
        self.messages: list[Message] = []
        self._owns = owns
        self._images = images
        self._names: dict[str, str] = {}

    def add(self, message: dict[str, Json], seq: int | None) -> None:
        match message["role"]:
            case "assistant":
                self._add_assistant(message, seq)
            case "system":
                _refuse_image(message["content"], "system")
                self.messages.append(User(_flat_text(message["content"]), seq))
            case "tool":
                self._add_result(message, seq)
            case _:
                self._add_user(message["content"], seq)

    def _add_assistant(self, message: dict[str, Json], seq: int | None) -> None:
        _refuse_image(message["content"], "assistant")
        assistant: Assistant = neutral_assistant(message, seq, self._owns)
        for block in message["content"]:
            if block.get("type") == "tool-call":
                self._names[block["id"]] = block["name"]
        self.messages.append(assistant)

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
            return _flat_text(blocks, nested=True)
        parts: list[Part] = []
        for block in blocks:
            match block["type"]:
                case "text":
                    parts += [Text(block["text"])] if block["text"] else []
                case "image":
                    parts += self._images.parts(block)
                case "tool-result":
                    inner = self._content(block["content"])
                    parts += inner if not isinstance(inner, str) else [Text(inner)] if inner else []
        return tuple(parts)


def _flat_text(blocks: list[dict[str, Json]], *, nested: bool = False) -> str:
    return ecma.join(
        block["text"] if block["type"] == "text" else _flat_text(block["content"], nested=True)
        for block in blocks
        if block["type"] == "text" or (nested and block["type"] == "tool-result")
    )


def has_image(blocks: list[dict[str, Json]]) -> bool:
    """Whether an image is among the blocks or inside one of their nested results."""
    return any(
        block["type"] == "image" or (block["type"] == "tool-result" and has_image(block["content"]))
        for block in blocks
    )


def _refuse_image(blocks: list[dict[str, Json]], role: str) -> None:
    if has_image(blocks):
        raise no_request(f"the adapter refuses an image in a {role} message of the history")
