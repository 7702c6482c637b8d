"""Content blocks of Messages as the DeepSeek adapter writes them. Source: spec wire-deepseek 5.2, 5.6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import CannotEncodeError
from dsh_audit.wire.images import ImageWriter
from dsh_audit.wire.replay_signatures import read_signatures


def fails_locally(reason: str) -> CannotEncodeError:
    """The adapter itself refuses the call: an attempt in the log, nothing on the wire."""
    return CannotEncodeError(f"fails locally, nothing is sent: {reason}", "none")


def encode_text(text: str) -> bytes:
    """A text block."""
    return b'{"type":"text","text":' + ecma.stringify(text) + b"}"


def encode_input(blocks: Sequence[Json], images: ImageWriter | None, *, strict: bool) -> Iterator[bytes]:
    """Blocks of user or tool content; empty texts are left out.

    Args:
        images: where the request holds images.
        strict: 0.1.6, which refuses reasoning and tool calls here; later releases leave them out.
    """
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            if block["text"]:
                yield encode_text(block["text"])
        elif kind == "image" and images is not None:
            handle = images.handle(block)
            if handle is not None:
                yield encode_text(handle)
            yield _encode_image(block, images)
        elif strict or kind not in ("reasoning", "tool-call"):
            raise fails_locally(f"Messages has no {kind} block in user or tool content")


def _encode_image(block: dict[str, Json], images: ImageWriter) -> bytes:
    if images.form.carrier == "file":
        source = b'{"type":"file","file_id":' + ecma.stringify(images.file_id(block)) + b"}"
    else:
        media_type, data = images.data(block)
        source = b'{"type":"base64","media_type":' + ecma.stringify(media_type) + b',"data":"' + data + b'"}'
    return b'{"type":"image","source":' + source + b"}"


def encode_result(block: dict[str, Json], images: ImageWriter | None, *, strict: bool) -> bytes:
    """A tool result: a v4 tool message, or the ``tool-result`` block of earlier formats."""
    content = b",".join(encode_input(block["content"], images, strict=strict))
    encoded = b'{"type":"tool_result","tool_use_id":' + ecma.stringify(block["toolCallId"])
    encoded += b',"content":[' + content + b"]"
    if "isError" in block:
        encoded += b',"is_error":' + ecma.stringify(block["isError"])
    return encoded + b"}"


def encode_assistant(message: dict[str, Json], model: str) -> Iterator[bytes]:
    """Blocks of an assistant message, signatures included where they are valid for ``model``."""
    signatures = read_signatures(message, model)
    for index, block in enumerate(message["content"]):
        kind = block.get("type")
        if kind == "text":
            if block["text"]:
                yield encode_text(block["text"])
        elif kind == "reasoning":
            signature = signatures[index] if signatures else None
            yield _encode_thinking(block["text"], signature)
        elif kind == "tool-call":
            yield _encode_call(block)
        else:
            raise fails_locally(f"Messages has no {kind} block in assistant content")


def _encode_thinking(text: str, signature: str | None) -> bytes:
    encoded = b'{"type":"thinking","thinking":' + ecma.stringify(text)
    return encoded + (b"}" if signature is None else b',"signature":' + ecma.stringify(signature) + b"}")


def _encode_call(block: dict[str, Json]) -> bytes:
    encoded = b'{"type":"tool_use","id":' + ecma.stringify(block["id"])
    encoded += b',"name":' + ecma.stringify(block["name"])
    return encoded + b',"input":' + _encode_arguments(block["arguments"]) + b"}"


def _encode_arguments(arguments: str) -> bytes:
    """The arguments parsed and printed again; an empty object where they are no JSON object."""
    try:
        value = ecma.parse(arguments)
    except ecma.EcmaSyntaxError:
        return b"{}"
    return ecma.stringify(value) if isinstance(value, dict) else b"{}"


def encode_tool_changes(blocks: Sequence[Json]) -> Iterator[bytes]:
    """Blocks of a developer message."""
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            if block["text"]:
                yield encode_text(block["text"])
        elif kind in ("tool-addition", "tool-removal"):
            reference = b'{"type":"tool_reference","name":' + ecma.stringify(block["toolName"]) + b"}"
            wire = b"tool_addition" if kind == "tool-addition" else b"tool_removal"
            yield b'{"type":"' + wire + b'","tool":' + reference + b"}"
        else:
            raise fails_locally(f"Messages has no {kind} block in a developer message")


def encode_tool(tool: dict[str, Json]) -> bytes:
    """A tool definition of the request."""
    names = (("name", "name"), ("description", "description"), ("parameters", "input_schema"))
    wire: dict[str, Json] = {name: tool[key] for key, name in names if key in tool}
    if tool.get("deferLoading") is True:
        wire["defer_loading"] = True
    return ecma.stringify(wire)
