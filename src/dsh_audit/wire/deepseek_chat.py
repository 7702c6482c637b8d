"""Adapter llm-deepseek, chat completions: harness 0.1.0-rc.8 to 0.1.5 (and 0.1.6 by setting).

Rules, each seen in captured bytes (spec wire-deepseek 4):

* Keys in order: model, messages, stream, stream_options, thinking?, reasoning_effort?, tools?, temperature?,
  max_tokens?, stop?; compact JSON as JSON.stringify prints it.
* Blocks of one message are joined without a separator; a tool result without text says ``(no output)``; a user
  message is left out only when it has no text but tool results; assistant content is never null.
* Tool-call arguments go out verbatim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dsh_audit.deployment import DEFAULT_CHAT_URL
from dsh_audit.events import Json
from dsh_audit.projection.messages import DerivedMessage, derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.request.neutral import Request
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, UnloggedInputs
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.chat_images import ChatImages
from dsh_audit.wire.images import ImageWriter
from dsh_audit.wire.instruction import instruction
from dsh_audit.wire.learned import LearnedEfforts, default_effort
from dsh_audit.wire.parts import (
    END,
    Kind,
    Part,
    PartMemory,
    Piece,
    close_list,
    element,
    member,
    merged_element,
    open_list,
)
from dsh_audit.wire.protocol import CHAT

_SETTINGS = (("temperature", "temperature"), ("maxTokens", "max_tokens"), ("stop", "stop"))
_NO_OUTPUT = "(no output)"
_OPEN, _CLOSE = open_list("messages"), close_list("messages")
_OPEN_TOOLS, _CLOSE_TOOLS = open_list("tools"), close_list("tools")
_STREAM = (member("stream", b"true"), member("stream_options", b'{"include_usage":true}'))


class ChatEncoder:
    """Writes chat completions bodies; keeps the encoded messages of the surface it saw last."""

    def __init__(self) -> None:
        self._surface: Surface | None = None
        self._messages = _Messages(0, None)
        self._tools: tuple[int | None, tuple[Part, ...]] = (None, ())
        self._efforts = LearnedEfforts()
        self._memory = PartMemory()

    def encode(self, request: Request, inputs: UnloggedInputs) -> Encoded:
        """The body of a request."""
        self._efforts.learn(request.snapshot.request_header)
        head = self._head(request)
        tail = tuple(self._tail(request, inputs))
        first_index = len(head) - 2
        if request.messages is None:
            messages = self._step_messages(request.snapshot.surface, first_index, inputs.images)
        else:
            messages = _Messages(first_index, inputs.images)
            messages.push([*request.messages, *instruction(request, inputs)])
        body = Body(head, messages.run, len(messages.run), (*messages.open_parts(), *tail))
        return Encoded(CHAT, "bytes", body, (), (), "/chat/completions", _http_headers(request, inputs))

    def _step_messages(self, surface: Surface, first_index: int, images: ImageWriter | None) -> _Messages:
        """The surface's messages: those of the last request, extended where it only grew."""
        start = 0
        is_longer = self._surface is not None and surface.extends(self._surface)
        if is_longer and self._surface is not None and self._messages.continues(first_index, images):
            start = len(self._surface)
        else:
            self._messages = _Messages(first_index, images)
        self._surface = None
        self._messages.push(derive_nodes(surface[start:], surface.marks))
        self._surface = surface
        return self._messages

    def _head(self, request: Request) -> tuple[Part, ...]:
        """Model, opening bracket and, before format 3, the system message."""
        keep = self._memory.keep
        model = keep(member("model", ecma.stringify(request.model), request.tools_seq, first=True))
        if request.system is None:
            return model, _OPEN
        text = b'{"role":"system","content":' + ecma.stringify(request.system) + b"}"
        return model, _OPEN, keep(element("messages", 0, text, "system", request.system_seq, "system"))

    def _tail(self, request: Request, inputs: UnloggedInputs) -> Iterator[Part]:
        config, keep = request.config, self._memory.keep
        is_step = request.purpose == "step"
        yield _CLOSE
        yield from _STREAM
        for name, value in _thinking(self._effort(request, inputs), request, inputs):
            yield keep(member(name, value, request.tools_seq))
        if request.tools:
            yield _OPEN_TOOLS
            yield from self._encoded_tools(request)
            yield _CLOSE_TOOLS
        seq = request.tools_seq if is_step else request.dispatch.settled_seq
        for key, name in _SETTINGS:
            if key in config and (is_step or key == "maxTokens"):
                yield keep(member(name, ecma.stringify(config[key]), seq))
        yield END

    def _effort(self, request: Request, inputs: UnloggedInputs) -> str | None:
        if request.purpose == "session-title":
            return "off"
        if request.purpose == "compaction":
            learned = self._efforts.get(request.provider, request.model)
            if learned is not None:
                return learned
            return str(inputs.take(default_effort(inputs.deployment, request.provider, request.model)).value)
        effort = request.config.get("reasoningEffort")
        return effort if isinstance(effort, str) else None

    def _encoded_tools(self, request: Request) -> tuple[Part, ...]:
        if self._tools[0] != request.tools_seq or request.tools_seq is None:
            tools = request.tools or []
            parts = tuple(
                element("tools", index, _encode_tool(tool), tool["name"], request.tools_seq, "tool")
                for index, tool in enumerate(tools)
            )
            self._tools = (request.tools_seq, parts)
        return self._tools[1]


def _thinking(effort: str | None, request: Request, inputs: UnloggedInputs) -> Iterator[tuple[str, bytes]]:
    if effort is None:
        used = inputs.take(inputs.deployment.model(request.provider, request.model, "thinking"))
        if used.value is not None:
            yield "thinking", b'{"type":' + ecma.stringify(used.value) + b"}"
    elif effort == "off":
        yield "thinking", b'{"type":"disabled"}'
    else:
        yield "thinking", b'{"type":"enabled"}'
        yield "reasoning_effort", ecma.stringify(effort)


def _encode_tool(tool: Json) -> bytes:
    function = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
    return b'{"type":"function","function":' + ecma.stringify(function) + b"}"


class _Messages:
    """The parts of the messages of one request, or of ever longer ones.

    Args:
        images: writes what is no text; None where there is none.
    """

    def __init__(self, first_index: int, images: ImageWriter | None) -> None:
        self.run = PartRun()
        self._first_index = first_index
        self._offloaded = None if images is None else images.offloaded
        self._images = None if images is None else ChatImages(images)
        if images is not None:
            images.start()

    def continues(self, first_index: int, images: ImageWriter | None) -> bool:
        """Whether a longer history of such a request continues these messages; the next ones are then written by it."""
        offloaded = None if images is None else images.offloaded
        if (first_index, offloaded) != (self._first_index, self._offloaded):
            return False
        if images is not None and self._images is not None:
            images.follow(self._images.writer)
            self._images.writer = images
        return True

    def push(self, messages: Iterable[DerivedMessage]) -> None:
        """Take further messages."""
        for derived in messages:
            message = derived.message if self._images is None else self._images.writer.project(derived.message)
            for role, encoded in encode_message(message, self._images, derived.seq):
                if role != "tool" and self._images is not None:
                    for part in self._attached(self._images.taken()):
                        self.run.append(part)
                index = self._first_index + len(self.run)
                kind: Kind = "system" if index == 0 and role == "system" else "message"
                self.run.append(element("messages", index, encoded, role, derived.seq, kind))

    def open_parts(self) -> tuple[Part, ...]:
        """What stands behind the run for now."""
        return () if self._images is None else tuple(self._attached(self._images.waiting()))

    def _attached(self, items: list[Piece]) -> Iterator[Part]:
        """The message with the images of the tool results before it."""
        if items:
            index = self._first_index + len(self.run)
            yield merged_element("messages", index, b'{"role":"user","content":[', items, b"]}", "user")


def encode_message(
    message: dict[str, Json], images: ChatImages | None = None, seq: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """The wire messages of one harness message; each a role and one JSON object.

    Args:
        images: where the request holds images.

    Raises:
        CannotEncodeError: the message holds an image or a file, and nobody writes it.
    """
    role, content = message["role"], message["content"]
    if role == "assistant":
        yield role, _encode_assistant(content)
    elif role == "system":
        yield role, b'{"role":"system","content":' + ecma.stringify(_text(content)) + b"}"
    elif role == "tool":
        yield role, _encode_result(message, images, seq)
    else:
        results = [block for block in content if block["type"] == "tool-result"]
        own = None if images is None else images.user_content([b for b in content if b["type"] != "tool-result"])
        text = "" if own is not None else _text(content)
        if own is not None or text or not results:
            yield "user", b'{"role":"user","content":' + (own or ecma.stringify(text)) + b"}"
        for block in results:
            yield "tool", _encode_result(block, images, seq)


def _encode_result(block: dict[str, Json], images: ChatImages | None, seq: int | None) -> bytes:
    text = _result_text(block["content"]) or _NO_OUTPUT if images is None else images.result_text(block["content"], seq)
    ident = ecma.stringify(block["toolCallId"])
    return b'{"role":"tool","tool_call_id":' + ident + b',"content":' + ecma.stringify(text) + b"}"


def _encode_assistant(content: list[Json]) -> bytes:
    encoded = b'{"role":"assistant","content":' + ecma.stringify(_text(content))
    reasoning = ecma.join(block["text"] for block in content if block["type"] == "reasoning")
    if reasoning:
        encoded += b',"reasoning_content":' + ecma.stringify(reasoning)
    calls = [_encode_call(block) for block in content if block["type"] == "tool-call"]
    if calls:
        encoded += b',"tool_calls":[' + b",".join(calls) + b"]"
    return encoded + b"}"


def _encode_call(block: dict[str, Json]) -> bytes:
    name, arguments = ecma.stringify(block["name"]), ecma.stringify(block["arguments"])
    function = b'{"name":' + name + b',"arguments":' + arguments + b"}"
    return b'{"id":' + ecma.stringify(block["id"]) + b',"type":"function","function":' + function + b"}"


def _text(content: list[Json]) -> str:
    for block in content:
        if block["type"] in ("image", "file"):
            raise CannotEncodeError(f"{_article(block['type'])} stands where the adapter takes none", "none")
    return ecma.join(block["text"] for block in content if block["type"] == "text")


def _result_text(content: list[Json]) -> str:
    parts: list[str] = []
    for block in content:
        parts.append(_result_text(block["content"]) if block["type"] == "tool-result" else _text([block]))
    return ecma.join(parts)


def _article(kind: str) -> str:
    return "an image" if kind == "image" else "a file"


def _http_headers(request: Request, inputs: UnloggedInputs) -> tuple[tuple[str, str | None], ...]:
    """Names in the order sent; the key and the user id are never known. Source: spec wire-deepseek 4.4."""
    deployment = inputs.deployment
    version = inputs.take(deployment.harness_version(request.format_version)).value
    inputs.take(deployment.model(request.provider, request.model, "base_url", DEFAULT_CHAT_URL))
    home = "https://github.com/deepseek-ai/deepseek-harness"
    headers: list[tuple[str, str | None]] = [
        ("authorization", None),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("user-agent", f"deepseek-harness/{version} (+{home})"),
        ("x-deepseek-harness-user-id", deployment.look_up("harness", "user_id")),
    ]
    if request.session_header.id:
        headers.append(("x-deepseek-harness-session-id", request.session_header.id))
    if request.purpose == "compaction":
        headers.append(("x-deepseek-harness-compact", "1"))
    return tuple(headers)
