"""The input items of a Responses body.

Source: wire-pi-ai 6.2; pi-ai 0.82.1 api/openai-responses-shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dsh_audit import ecma
from dsh_audit.events import Json
from dsh_audit.wire.pi.assemble import Seqs, WireItem
from dsh_audit.wire.pi.completions_messages import data_url, joined_texts, result_text
from dsh_audit.wire.pi.history import transform
from dsh_audit.wire.pi.neutral import (
    Assistant,
    Call,
    Context,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolResult,
    User,
)
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.strings import clean, hash36, safe_id
from dsh_audit.wire.pi.versions import PiRules

_ID_UNITS = 64
_PHASES = ("commentary", "final_answer")


def response_items(
    context: Context, model: dict[str, Json], paired: Collection[str], rules: PiRules, seqs: Seqs
) -> list[WireItem]:
    """The input list, system item first.

    Args:
        paired: the provider keys whose call ids keep their ``call|item`` form.

    Raises:
        PiRefusedError: a reasoning signature is not JSON, so the call fails before it sends anything.
    """

    def rewrite_id(call_id: str, message: Assistant) -> str:
        is_paired = model["provider"] in paired and "|" in call_id
        return _paired_id(call_id, message, model) if is_paired else _id_part(call_id)

    items: list[WireItem] = []
    if context.system:
        compat = model.get("compat") or {}
        is_developer = model["reasoning"] and compat.get("supportsDeveloperRole") is not False
        system = {"role": "developer" if is_developer else "system", "content": clean(context.system)}
        items.append(WireItem(system, (seqs.system,)))
    number = 0
    for message in transform(context.messages, model, rewrite_id, rules):
        values = list(_values(message, model, number))
        items += [WireItem(value, (message.seq,)) for value in values]
        # Messages that write nothing are not numbered.
        number += 1 if values else 0
    return items


def _id_part(text: str) -> str:
    return safe_id(text)[:_ID_UNITS].rstrip("_")


def _paired_id(call_id: str, message: Assistant, model: dict[str, Json]) -> str:
    first, second = call_id.split("|")[:2]
    is_foreign = (message.provider, message.api) != (model["provider"], model["api"])
    item = f"fc_{hash36(second)}" if is_foreign else _id_part(second)
    if not item.startswith("fc_"):
        item = _id_part(f"fc_{item}")
    return f"{_id_part(first)}|{item}"


def _values(message: Message, model: dict[str, Json], number: int) -> Iterator[Json]:
    if isinstance(message, User):
        parts = (Text(message.content),) if isinstance(message.content, str) else message.content
        if parts:
            yield {"role": "user", "content": [_input_part(part) for part in parts]}
    elif isinstance(message, ToolResult):
        output = _result_output(message.content, model)
        yield {"type": "function_call_output", "call_id": message.call_id.split("|")[0], "output": output}
    else:
        yield from _assistant(message, model, number)


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


def _assistant(message: Assistant, model: dict[str, Json], number: int) -> Iterator[Json]:
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
            yield _call_item(block, is_sibling)


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
