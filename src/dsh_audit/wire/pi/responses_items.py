"""The Responses items of one message.

Source: wire-pi-ai 6.2; pi-ai 0.82.1 api/openai-responses-shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.completions_messages import data_url, joined_texts, result_text
from dsh_audit.wire.pi.neutral import Assistant, Call, Image, Part, Text, Thinking, ToolResult, User
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.strings import clean, hash36
from dsh_audit.wire.pi.versions import PiRules

_ID_UNITS = 64
_PHASES = ("commentary", "final_answer")


def response_tools(tools: Sequence[dict[str, Json]], has_strict: bool, *, deferred: bool = False) -> list[Json]:
    """Tool definitions, flat."""
    loading = {"defer_loading": True} if deferred else {}
    strict = {"strict": False} if has_strict else {}
    return [{"type": "function", **tool, **loading, **strict} for tool in tools]


def message_items(
    message: User | Assistant | ToolResult, model: dict[str, Json], number: int, rules: PiRules
) -> Iterator[Json]:
    """The items of one message.

    Args:
        number: of the message; names texts that have no id.

    Raises:
        PiRefusedError: a reasoning signature is not JSON, so the call fails before it sends anything.
    """
    if isinstance(message, User):
        parts = (Text(message.content),) if isinstance(message.content, str) else message.content
        if parts:
            yield {"role": "user", "content": [_input_part(part) for part in parts]}
    elif isinstance(message, ToolResult):
        output = _result_output(message.content, model)
        yield {"type": "function_call_output", "call_id": message.call_id.split("|")[0], "output": output}
    else:
        yield from _assistant(message, model, number, rules)


def _input_part(part: Part) -> dict[str, Json]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": clean(part.text)}
    return {"type": "input_image", "detail": "auto", "image_url": data_url(part)}


def _result_output(content: tuple[Part, ...], model: dict[str, Json]) -> str | list[Json]:
    images = [part for part in content if isinstance(part, Image)]
    if not images or "image" not in model["input"]:
        return result_text(content)
    text = joined_texts(content)
    texts = [_input_part(Text(text))] if text else []
    return texts + [_input_part(image) for image in images]


def _assistant(message: Assistant, model: dict[str, Json], number: int, rules: PiRules) -> Iterator[Json]:
    same_route = (message.provider, message.api) == (model["provider"], model["api"])
    is_sibling = same_route and message.model != model["id"]
    texts = 0
    for block in message.blocks:
        if isinstance(block, Thinking):
            if block.signature:
                yield _reasoning_item(block.signature)
        elif isinstance(block, Text):
            name = f"msg_pi_{number}_{texts}" if texts else f"msg_pi_{number}"
            texts += 1
            yield _message_item(block, name)
        else:
            item = _call_item(block, is_sibling)
            shows_namespace = rules.has_transcripts and same_route and not is_sibling
            yield ({**item, "namespace": block.namespace} if shows_namespace and block.namespace is not None else item)


def _reasoning_item(signature: str) -> Json:
    try:
        return ecma.parse(signature)
    except ecma.EcmaSyntaxError:
        raise no_request("a reasoning signature in the history is not JSON") from None


def _message_item(block: Text, name: str) -> dict[str, Json]:
    message_id, phase = _text_signature(block.signature)
    if not message_id:
        message_id = name
    elif ecma.length(message_id) > _ID_UNITS:
        message_id = f"msg_{hash36(message_id)}"
    item: dict[str, Json] = {"type": "message", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": clean(block.text), "annotations": []}]
    item |= {"status": "completed", "id": message_id}
    return item if phase is None else {**item, "phase": phase}


def _text_signature(signature: str | None) -> tuple[str, str | None]:
    """(message id or "", phase)."""
    if not signature or not signature.startswith("{"):
        return signature or "", None
    try:
        parsed = ecma.parse(signature)
    except ecma.EcmaSyntaxError:
        return signature, None
    version, message_id, phase = parsed.get("v"), parsed.get("id"), parsed.get("phase")
    if isinstance(version, bool) or version != 1 or not isinstance(message_id, str):
        return signature, None
    return message_id, phase if phase in _PHASES else None


def _call_item(call: Call, is_sibling: bool) -> dict[str, Json]:
    halves = call.id.split("|")
    item: dict[str, Json] = {"type": "function_call"}
    if len(halves) > 1 and halves[1].startswith("fc_") and not is_sibling:
        item["id"] = halves[1]
    item |= {"call_id": halves[0], "name": call.name, "arguments": ecma.stringify_text(call.arguments)}
    return item
