"""Protocol openai-completions: the chat completions body.

Source: wire-pi-ai 6.1; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.assemble import Seqs, WireItem, assemble
from dsh_audit.wire.pi.compat import completions_compat
from dsh_audit.wire.pi.completions_messages import chat_messages, chat_tools
from dsh_audit.wire.pi.completions_reasoning import reasoning_members
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Assistant, Call, Context, ToolResult
from dsh_audit.wire.pi.settings import Settings, sampling_members
from dsh_audit.wire.pi.transcript import resolve_transcript

CACHE_KEY_POINTS = 64


def encode_completions(context: Context, settings: Settings, seqs: Seqs) -> Body:
    """The body of a chat completions request."""
    model = settings.model
    compat = completions_compat(model, settings.rules)
    limit = OutputLimit(model, context, settings.rules).plain(settings.max_tokens)
    takes_system = compat["supportsMidConvoSystemMessages"] is True
    transcript = resolve_transcript(context, settings.rules, native=takes_system)
    context = transcript.context
    in_place = takes_system and compat["supportsMidConvoToolAdditions"] is True and transcript.is_additive
    items = chat_messages(context, model, compat, settings.rules, seqs, in_place)
    tools = _tools(context, transcript.head_tools if in_place else context.tools, compat)
    marker = _cache_marker(compat, settings)
    if marker is not None:
        _mark(items, tools, marker)
    params: dict[str, Json] = {"model": model["id"], "messages": None, "stream": True}
    params |= _cache_members(compat, settings)
    if compat["supportsUsageInStreaming"] is not False:
        params["stream_options"] = {"include_usage": True}
    if compat["supportsStore"]:
        params["store"] = False
    is_short = compat["maxTokensField"] == "max_tokens"
    params["max_tokens" if is_short else "max_completion_tokens"] = limit
    if settings.temperature is not None:
        params["temperature"] = settings.temperature
    if tools is not None:
        params["tools"] = tools
    if tools and compat["zaiToolStream"]:
        params["tool_stream"] = True
    if settings.rules.has_output_flags and (model.get("compat") or {}).get("vllmPriority") is not None:
        params["priority"] = compat["vllmPriority"]
    params |= reasoning_members(compat, settings, limit)
    params |= _routing_members(model)
    params |= sampling_members(settings)
    return assemble(params, "messages", items, seqs)


def _cache_members(compat: dict[str, Json], settings: Settings) -> dict[str, Json]:
    members: dict[str, Json] = {}
    is_long = settings.retention == "long" and bool(compat["supportsLongCacheRetention"])
    is_official = "api.openai.com" in settings.model["baseUrl"] and settings.retention != "none"
    if settings.session_id is not None and (is_official or is_long):
        members["prompt_cache_key"] = settings.session_id[:CACHE_KEY_POINTS]
    if is_long:
        members["prompt_cache_retention"] = "24h"
    return members


def _tools(context: Context, tools: tuple[dict[str, Json], ...], compat: dict[str, Json]) -> list[Json] | None:
    """The tools; an empty list when there are none but the history calls some."""
    if not tools:
        return [] if _has_tool_history(context) else None
    return chat_tools(tools, compat)


def _has_tool_history(context: Context) -> bool:
    return any(
        isinstance(message, ToolResult)
        or (isinstance(message, Assistant) and any(isinstance(block, Call) for block in message.blocks))
        for message in context.messages
    )


def _routing_members(model: dict[str, Json]) -> dict[str, Json]:
    """Provider routing; only a catalogue entry can hold it."""
    compat = model.get("compat") or {}
    members: dict[str, Json] = {}
    if isinstance(compat.get("openRouterRouting"), dict):
        members["provider"] = compat["openRouterRouting"]
    gateway = compat.get("vercelGatewayRouting") or {}
    chosen = {key: gateway[key] for key in ("only", "order") if gateway.get(key)}
    if chosen:
        members["providerOptions"] = {"gateway": chosen}
    return members


def _cache_marker(compat: dict[str, Json], settings: Settings) -> dict[str, Json] | None:
    if compat["cacheControlFormat"] != "anthropic" or settings.retention == "none":
        return None
    is_long = settings.retention == "long" and bool(compat["supportsLongCacheRetention"])
    return {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}


def _mark(items: list[WireItem], tools: list[Json] | None, marker: dict[str, Json]) -> None:
    """Put cache markers on the first system message, the last tool and the last message that can take one."""
    for item in items:
        if item.value["role"] in ("system", "developer"):
            _mark_text(item.value, marker)
            break
    if tools:
        tools[-1] = {**tools[-1], "cache_control": marker}
    for item in reversed(items):
        if item.value["role"] in ("user", "assistant", "tool") and _mark_text(item.value, marker):
            break


def _mark_text(message: dict[str, Json], marker: dict[str, Json]) -> bool:
    content = message.get("content")
    if isinstance(content, str):
        if content:
            message["content"] = [{"type": "text", "text": content, "cache_control": marker}]
        return bool(content)
    for part in reversed(content or []):
        if part["type"] == "text":
            part["cache_control"] = marker
            return True
    return False
