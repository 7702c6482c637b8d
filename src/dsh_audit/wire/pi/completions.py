"""Protocol openai-completions: the chat completions body.

Source: wire-pi-ai 6.1; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.assemble import BodyPrinter, Seqs, WireItem
from dsh_audit.wire.pi.compat import completions_compat
from dsh_audit.wire.pi.completions_messages import (
    ChatWriter,
    can_carry_marker,
    chat_id_rule,
    chat_tools,
    instructions_item,
    marked,
)
from dsh_audit.wire.pi.completions_reasoning import reasoning_members
from dsh_audit.wire.pi.history import History
from dsh_audit.wire.pi.items import ItemFold, resume
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.settings import Settings, sampling_members
from dsh_audit.wire.pi.transcript import resolve_transcript

CACHE_KEY_POINTS = 64


class CompletionsEncoder:
    """Writes the chat completions bodies of one session."""

    def __init__(self) -> None:
        self._printer = BodyPrinter("messages")
        self._fold: ItemFold | None = None

    def encode(self, context: Context, settings: Settings, seqs: Seqs) -> Body:
        """The body of a request."""
        model = settings.model
        compat = completions_compat(model, settings.rules)
        takes_system = compat["supportsMidConvoSystemMessages"] is True
        transcript = resolve_transcript(context, settings.rules, native=takes_system)
        in_place = takes_system and compat["supportsMidConvoToolAdditions"] is True and transcript.is_additive
        marker = _cache_marker(compat, settings)
        has_prompt = bool(transcript.system)
        key = (model, settings.rules, in_place, marker, has_prompt, transcript.skips_first, transcript.drops_system)

        def start() -> ItemFold:
            writer = ChatWriter(model, compat, settings.rules, in_place, None if has_prompt else marker)
            history = History(model, chat_id_rule(model), settings.rules)
            can_mark = None if marker is None else can_carry_marker
            index = int(has_prompt)
            return ItemFold(
                key, context, transcript, history, writer, list_key="messages", first_index=index, can_mark=can_mark
            )

        self._fold = fold = resume(self._fold, key, context, start)
        prompt = instructions_item(transcript.system, seqs.system, model, compat) if transcript.system else None
        items = fold.open_items()
        if marker is not None:
            prompt = prompt and (marked(prompt, marker) or prompt)
            items = _mark_last(items, marker)
        tools = transcript.head_tools if in_place else transcript.tools
        self._printer.print_tools(
            (tools, model, settings.rules, marker), lambda: _mark_tool(chat_tools(tools, compat), marker), seqs.tools
        )
        params = _members(context, settings, compat, has_tools=bool(tools))
        return self._printer.body(params, prompt, fold.run, fold.print_open(items), seqs)


def _members(context: Context, settings: Settings, compat: dict[str, Json], *, has_tools: bool) -> dict[str, Json]:
    """All members in wire order; messages and tools are placeholders."""
    model = settings.model
    limit = OutputLimit(model, context).plain(settings.max_tokens)
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
    # An empty list when there are none but the history calls some.
    if has_tools or context.has_tool_history:
        params["tools"] = None
    if has_tools and compat["zaiToolStream"]:
        params["tool_stream"] = True
    if settings.rules.has_output_flags and (model.get("compat") or {}).get("vllmPriority") is not None:
        params["priority"] = compat["vllmPriority"]
    params |= reasoning_members(compat, settings, limit)
    params |= _routing_members(model)
    return params | sampling_members(settings)


def _cache_members(compat: dict[str, Json], settings: Settings) -> dict[str, Json]:
    members: dict[str, Json] = {}
    is_long = settings.retention == "long" and bool(compat["supportsLongCacheRetention"])
    is_official = "api.openai.com" in settings.model["baseUrl"] and settings.retention != "none"
    if settings.session_id is not None and (is_official or is_long):
        members["prompt_cache_key"] = settings.session_id[:CACHE_KEY_POINTS]
    if is_long:
        members["prompt_cache_retention"] = "24h"
    return members


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


def _mark_tool(tools: list[Json], marker: dict[str, Json] | None) -> list[Json]:
    """The tools with the marker on the last one."""
    return tools if marker is None or not tools else [*tools[:-1], {**tools[-1], "cache_control": marker}]


def _mark_last(items: list[WireItem], marker: dict[str, Json]) -> list[WireItem]:
    """The items with the marker on the last one that can take it."""
    for index in reversed(range(len(items))):
        if can_carry_marker(items[index]):
            return [*items[:index], marked(items[index], marker) or items[index], *items[index + 1 :]]
    return items
