"""Scripted model replies, printed as the three streaming protocols and the Files API answer them.

A reply is a dict. What it says:
    reasoning, text   string, or list of strings (one streamed part each)
    tools             list of {id, name, arguments}; arguments is a string sent as it stands, or JSON
    signature         reasoning signature (Messages); None sends none
    finish            finish reason, in the words of the protocol
    usage             usage object, in the words of the protocol; default: a fixed one with cache hits
    status, error     answer with this HTTP status and this error object instead
    headers           extra response headers
How it says it:
    delay_ms          wait before the answer
    json              answer with this JSON, unstreamed
    drop              close the connection without an answer
    hang_after        after this many parts wait until the server is told to go on
    cut_after         after this many parts close the connection
    raw               list of strings sent as they stand instead of everything above
    ascii             escape every non-ASCII character
Which request it answers (see capture_server):
    to                "step" (default), "title", "compaction", "search", "files"
    when              only a request whose body holds this text
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = Any

PART = 7
"""Characters per streamed part of a string given as a whole."""


def parts(value: str | list[str]) -> list[str]:
    """The streamed parts of a text."""
    if isinstance(value, list):
        return value
    return [value[at : at + PART] for at in range(0, len(value), PART)]


def arguments_text(call: Json) -> str:
    """A tool call's arguments as the model would print them."""
    given = call["arguments"]
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def chat(reply: Json, number: int, usage: Json) -> Iterator[str]:
    """Chat-completions chunks."""
    yield from _chat_rows(reply, number, usage, lambda row: f"data: {_dump(reply, row)}\n\n")
    if "stream_error" not in reply:
        yield "data: [DONE]\n\n"


def _chat_rows(reply: Json, number: int, usage: Json, encode: Any) -> Iterator[str]:
    def chunk(delta: Json, finish: str | None = None, **more: Json) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        row = {"id": f"toy-{number}", "object": "chat.completion.chunk", "choices": [choice], **more}
        return str(encode(row))

    yield chunk({"role": "assistant", "content": ""})
    for part in parts(reply.get("reasoning", "")):
        yield chunk({"reasoning_content": part})
    for part in parts(reply.get("text", "")):
        yield chunk({"content": part})
    for index, call in enumerate(reply.get("tools", [])):
        function = {"name": call["name"], "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        )
        for part in parts(arguments_text(call)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    if "stream_error" in reply:
        yield str(encode({"error": reply["stream_error"]}))
        return
    finish = reply.get("finish") or ("tool_calls" if reply.get("tools") else "stop")
    yield chunk({}, finish, usage=usage)


def messages(reply: Json, number: int, usage: Json) -> Iterator[str]:
    """Messages events."""

    def event(kind: str, **more: Json) -> str:
        return f"event: {kind}\ndata: {_dump(reply, {'type': kind, **more})}\n\n"

    message: Json = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "toy",
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    yield event("message_start", message=message)
    blocks = list(_message_blocks(reply, number))
    for index, (block, deltas) in enumerate(blocks):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    if "stream_error" in reply:
        yield event("error", error=reply["stream_error"])
        return
    finish = reply.get("finish") or ("tool_use" if reply.get("tools") else "end_turn")
    yield event("message_delta", delta={"stop_reason": finish, "stop_sequence": None}, usage=usage)
    yield event("message_stop")


def _message_blocks(reply: Json, number: int) -> Iterator[tuple[Json, list[Json]]]:
    if "reasoning" in reply:
        deltas = [{"type": "thinking_delta", "thinking": part} for part in parts(reply["reasoning"])]
        signature = reply.get("signature", f"toy-signature-{number}")
        if signature is not None:
            deltas.append({"type": "signature_delta", "signature": signature})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if "text" in reply:
        deltas = [{"type": "text_delta", "text": part} for part in parts(reply["text"])]
        yield {"type": "text", "text": ""}, deltas
    for call in reply.get("tools", []):
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts(arguments_text(call))]
        yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": {}}, deltas


def responses(reply: Json, number: int, usage: Json) -> Iterator[str]:
    """Responses events."""

    def event(kind: str, **more: Json) -> str:
        return f"event: {kind}\ndata: {_dump(reply, {'type': kind, **more})}\n\n"

    head = {"id": f"resp_{number}", "object": "response"}
    yield event("response.created", response={**head, "status": "in_progress", "output": []})
    output: list[Json] = []
    for index, (opened, steps, done) in enumerate(_response_items(reply, number)):
        yield event("response.output_item.added", output_index=index, item=opened)
        for kind, more in steps:
            yield event(kind, output_index=index, item_id=done["id"], **more)
        yield event("response.output_item.done", output_index=index, item=done)
        output.append(done)
    yield event(
        "response.completed", response={**head, "status": "completed", "output": output, "usage": usage}
    )


def _response_items(reply: Json, number: int) -> Iterator[tuple[Json, list[tuple[str, Json]], Json]]:
    if reply.get("reasoning"):
        whole = "".join(reply["reasoning"])
        opened = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
        name = "response.reasoning_summary_"
        blank: Json = {"type": "summary_text", "text": ""}
        steps: list[tuple[str, Json]] = [(name + "part.added", {"summary_index": 0, "part": blank})]
        steps += [
            (name + "text.delta", {"summary_index": 0, "delta": part}) for part in parts(reply["reasoning"])
        ]
        full = {"type": "summary_text", "text": whole}
        steps.append((name + "part.done", {"summary_index": 0, "part": full}))
        yield opened, steps, {**opened, "summary": [full], "encrypted_content": f"toy-encrypted-{number}"}
    if reply.get("text"):
        whole = "".join(reply["text"])
        opened = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "in_progress"}
        empty: Json = {"type": "output_text", "text": "", "annotations": []}
        steps = [("response.content_part.added", {"content_index": 0, "part": empty})]
        steps += [
            ("response.output_text.delta", {"content_index": 0, "delta": p}) for p in parts(reply["text"])
        ]
        done = {**opened, "status": "completed", "content": [{**empty, "text": whole}]}
        yield {**opened, "content": []}, steps, done
    for call in reply.get("tools", []):
        whole = arguments_text(call)
        opened = {
            "type": "function_call",
            "id": f"fc_{call['id']}",
            "call_id": call["id"],
            "name": call["name"],
        }
        steps = [("response.function_call_arguments.delta", {"delta": part}) for part in parts(whole)]
        steps.append(("response.function_call_arguments.done", {"arguments": whole}))
        done = {**opened, "arguments": whole, "status": "completed"}
        yield {**opened, "arguments": "", "status": "in_progress"}, steps, done


def default_usage(protocol: str) -> Json:
    """A usage object with cache hits, in the words of the protocol."""
    if protocol == "messages":
        hit, miss = {"cache_read_input_tokens": 64}, {"input_tokens": 36, "cache_creation_input_tokens": 0}
        return {**miss, **hit, "output_tokens": 10}
    if protocol == "responses":
        details = {
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details}
    split = {"prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}
    return {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, **split}


def _dump(reply: Json, row: Json) -> str:
    # A lone surrogate has no UTF-8 form: it only ever travels escaped.
    text = json.dumps(row, ensure_ascii=bool(reply.get("ascii")))
    return text if text.isascii() or _encodes(text) else json.dumps(row)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
