"""Protocol anthropic-messages.

Source: wire-pi-ai 6.3; pi-ai 0.82.1 api/anthropic-messages.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.anthropic_messages import claude_messages, claude_tool_name, mark_history
from dsh_audit.wire.pi.assemble import Seqs, assemble
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.responses import compat_flag
from dsh_audit.wire.pi.settings import Settings
from dsh_audit.wire.pi.strings import clean

_IDENTITY = "You are Claude Code, Anthropic's official CLI for Claude."
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}


def encode_anthropic(context: Context, settings: Settings, seqs: Seqs) -> Body:
    """The body of a Messages request."""
    model, compat = settings.model, settings.model.get("compat") or {}
    marker = _cache_marker(compat, settings)
    allow_unsigned = compat_flag(compat, "allowEmptySignature", False)
    items = claude_messages(context, model, settings.rules, settings.is_oauth, allow_unsigned)
    mark_history(items, marker)
    limit = OutputLimit(model, context, settings.rules)
    logged, budgets = settings.max_tokens, settings.thinking_budgets
    max_tokens, budget = limit.plain(logged), 0
    is_adaptive = compat.get("forceAdaptiveThinking") is True
    if settings.effort and not is_adaptive:
        max_tokens, budget = limit.with_budget(logged, settings.effort, budgets)
    params: dict[str, Json] = {"model": model["id"], "messages": None, "max_tokens": max_tokens}
    params["stream"] = True
    if system := _system(context, settings, marker):
        params["system"] = system
    has_temperature = settings.temperature is not None and not settings.effort
    if has_temperature and compat_flag(compat, "supportsTemperature", True):
        params["temperature"] = settings.temperature
    if context.tools:
        params["tools"] = _tools(context, compat, settings, marker)
    if settings.is_reasoning:
        params |= _thinking(settings, is_adaptive, budget)
    return assemble(params, "messages", items, seqs)


def _cache_marker(compat: dict[str, Json], settings: Settings) -> dict[str, Json] | None:
    if settings.retention == "none":
        return None
    is_long = settings.retention == "long" and compat_flag(compat, "supportsLongCacheRetention", True)
    return {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}


def _system(context: Context, settings: Settings, marker: dict[str, Json] | None) -> list[Json]:
    texts = [_IDENTITY] if settings.is_oauth else []
    texts += [clean(context.system)] if context.system else []
    cache = {} if marker is None else {"cache_control": marker}
    return [{"type": "text", "text": text, **cache} for text in texts]


def _tools(
    context: Context, compat: dict[str, Json], settings: Settings, marker: dict[str, Json] | None
) -> list[Json]:
    """The definitions; of duplicate names the first place and the last definition."""
    rename = claude_tool_name if settings.is_oauth else str
    tools = list({rename(tool["name"]): tool for tool in context.tools}.items())
    eager = {"eager_input_streaming": True}
    eager = eager if compat_flag(compat, "supportsEagerToolInputStreaming", True) else {}
    printed: list[Json] = []
    for name, tool in tools:
        described = {"description": tool["description"]} if "description" in tool else {}
        printed.append({"name": name, **described, **eager, "input_schema": _schema(tool["parameters"])})
    if marker is not None and compat_flag(compat, "supportsCacheControlOnTools", True):
        printed[-1]["cache_control"] = marker
    return printed


def _schema(parameters: dict[str, Json]) -> dict[str, Json]:
    """Only the properties and the required names of a schema are sent."""
    properties, required = parameters.get("properties"), parameters.get("required")
    return {
        "type": "object",
        "properties": {} if properties is None else properties,
        "required": [] if required is None else required,
    }


def _thinking(settings: Settings, is_adaptive: bool, budget: int) -> dict[str, Json]:
    if not settings.effort:
        return {"thinking": {"type": "disabled"}} if settings.has_off else {}
    if not is_adaptive:
        return {"thinking": {"type": "enabled", "budget_tokens": budget, "display": "summarized"}}
    level = settings.levels.get(settings.effort)
    effort = level if isinstance(level, str) else _EFFORTS.get(settings.effort, "high")
    members: dict[str, Json] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    # An effort that the map declares as an empty string is not sent.
    return {**members, "output_config": {"effort": effort}} if effort else members
