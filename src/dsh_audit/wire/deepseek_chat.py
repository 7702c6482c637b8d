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
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, Notes
from dsh_audit.wire.body import Body, Fragment, FragmentRun
from dsh_audit.wire.instruction import instruction
from dsh_audit.wire.learned import LearnedEfforts, default_effort
from dsh_audit.wire.shapes import check_message, check_tools

PROTOCOL = "deepseek-chat-completions"

_NO_OUTPUT = "(no output)"
_STREAM = b'],"stream":true,"stream_options":{"include_usage":true}'


class ChatEncoder:
    """Writes chat completions bodies; keeps the encoded messages of the surface it saw last."""

    def __init__(self) -> None:
        self._surface: Surface | None = None
        self._run = FragmentRun()
        self._leading: bytes = b""
        self._tools: tuple[int | None, bytes] = (None, b"")
        self._efforts = LearnedEfforts()

    def encode(self, request: Request, notes: Notes) -> Encoded:
        """The body of a request."""
        self._efforts.learn(request.snapshot.request_header)
        head = _head(request)
        tail = self._tail(request, notes)
        if request.messages is None:
            run, count = self._step_messages(request.snapshot.surface, first=request.system is None)
        else:
            run = FragmentRun()
            messages = [*request.messages, *instruction(request, notes)]
            _append(run, messages, first=request.system is None)
            count = len(run)
        body = Body(tuple(head), run, count, tuple(tail))
        return Encoded(PROTOCOL, "bytes", body, (), (), "/chat/completions", _http_headers(request, notes))

    def _step_messages(self, surface: Surface, *, first: bool) -> tuple[FragmentRun, int]:
        """Fragments of the surface's messages: those of the last request, extended where it only grew."""
        leading = b"" if first else b","
        start = 0
        if self._surface is not None and surface.extends(self._surface) and leading == self._leading:
            start = len(self._surface)
        else:
            self._run, self._leading = FragmentRun(), leading
        self._surface = None
        added = derive_nodes(surface[start:], surface.marks)
        _append(self._run, added, first=first and len(self._run) == 0)
        self._surface = surface
        return self._run, len(self._run)

    def _tail(self, request: Request, notes: Notes) -> Iterator[Fragment]:
        config = request.config
        yield Fragment(_STREAM)
        yield Fragment(_thinking(self._effort(request, notes), request, notes), request.tools_seq)
        if request.tools:
            yield Fragment(self._encoded_tools(request), request.tools_seq)
        settings = b""
        if "temperature" in config and request.purpose == "step":
            settings += b',"temperature":' + ecma.stringify(config["temperature"])
        if "maxTokens" in config:
            settings += b',"max_tokens":' + ecma.stringify(config["maxTokens"])
        if "stop" in config and request.purpose == "step":
            settings += b',"stop":' + ecma.stringify(config["stop"])
        yield Fragment(settings, request.tools_seq if request.purpose == "step" else request.dispatch.settled_seq)
        yield Fragment(b"}")

    def _effort(self, request: Request, notes: Notes) -> str | None:
        if request.purpose == "session-title":
            return "off"
        if request.purpose == "compaction":
            learned = self._efforts.get(request.provider, request.model)
            if learned is not None:
                return learned
            return str(notes.take(default_effort(notes.deployment, request.provider, request.model)).value)
        effort = request.config.get("reasoningEffort")
        return effort if isinstance(effort, str) else None

    def _encoded_tools(self, request: Request) -> bytes:
        if self._tools[0] != request.tools_seq or request.tools_seq is None:
            check_tools(request.tools or ())
            encoded = b",".join(_encode_tool(tool) for tool in request.tools or ())
            self._tools = (request.tools_seq, b',"tools":[' + encoded + b"]")
        return self._tools[1]


def _head(request: Request) -> Iterator[Fragment]:
    yield Fragment(b'{"model":' + ecma.stringify(request.model), request.tools_seq)
    yield Fragment(b',"messages":[')
    if request.system is not None:
        content = ecma.stringify(request.system)
        yield Fragment(b'{"role":"system","content":' + content + b"}", request.system_seq)


def _thinking(effort: str | None, request: Request, notes: Notes) -> bytes:
    if effort is None:
        used = notes.take(notes.deployment.model(request.provider, request.model, "thinking"))
        return b"" if used.value is None else b',"thinking":{"type":' + ecma.stringify(used.value) + b"}"
    if effort == "off":
        return b',"thinking":{"type":"disabled"}'
    return b',"thinking":{"type":"enabled"},"reasoning_effort":' + ecma.stringify(effort)


def _encode_tool(tool: Json) -> bytes:
    function = {key: tool[key] for key in ("name", "description", "parameters") if key in tool}
    return b'{"type":"function","function":' + ecma.stringify(function) + b"}"


def _append(run: FragmentRun, messages: Iterable[DerivedMessage], *, first: bool) -> None:
    for derived in messages:
        check_message(derived.message, derived.seq)
        for encoded in encode_message(derived.message):
            run.append(encoded if first else b"," + encoded, derived.seq)
            first = False


def encode_message(message: dict[str, Json]) -> Iterator[bytes]:
    """The wire messages of one harness message, text path; each is one JSON object.

    Raises:
        CannotEncodeError: the message holds an image or a file.
    """
    role, content = message["role"], message["content"]
    if role == "assistant":
        yield _encode_assistant(content)
    elif role == "system":
        yield b'{"role":"system","content":' + ecma.stringify(_text(content)) + b"}"
    elif role == "tool":
        yield _encode_result(message)
    else:
        results = [block for block in content if block["type"] == "tool-result"]
        text = _text(content)
        if text or not results:
            yield b'{"role":"user","content":' + ecma.stringify(text) + b"}"
        for block in results:
            yield _encode_result(block)


def _encode_result(block: dict[str, Json]) -> bytes:
    text = _result_text(block["content"]) or _NO_OUTPUT
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
            raise CannotEncodeError(f"a message holds {_article(block['type'])}, which is not reproduced yet")
    return ecma.join(block["text"] for block in content if block["type"] == "text")


def _result_text(content: list[Json]) -> str:
    parts: list[str] = []
    for block in content:
        parts.append(_result_text(block["content"]) if block["type"] == "tool-result" else _text([block]))
    return ecma.join(parts)


def _article(kind: str) -> str:
    return "an image" if kind == "image" else "a file"


def _http_headers(request: Request, notes: Notes) -> tuple[tuple[str, str | None], ...]:
    """Names in the order sent; the key and the user id are never known. Source: spec wire-deepseek 4.4."""
    deployment = notes.deployment
    version = notes.take(deployment.harness_version(request.format_version)).value
    notes.take(deployment.model(request.provider, request.model, "base_url", DEFAULT_CHAT_URL))
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
