"""Protocol anthropic-messages.

Source: wire-pi-ai 6.3; pi-ai 0.82.1, 0.84.4, 0.85.1 and 1.3.0 api/anthropic-messages.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.anthropic_messages import ClaudeWriter, mark_history, with_effort_messages
from dsh_audit.wire.pi.anthropic_tools import PLACEHOLDER, ToolPrinter
from dsh_audit.wire.pi.assemble import Seqs, assemble
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.settings import Settings, compat_flag
from dsh_audit.wire.pi.strings import clean
from dsh_audit.wire.pi.transcript import resolve_transcript

_IDENTITY = "You are Claude Code, Anthropic's official CLI for Claude."
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}


def encode_anthropic(context: Context, settings: Settings, seqs: Seqs) -> Body:
    """The body of a Messages request."""
    model, compat = settings.model, settings.compat
    marker = _cache_marker(settings)
    max_tokens, budget = _limits(context, settings)
    takes_system = compat_flag(compat, "supportsMidConvoSystemMessages", False)
    transcript = resolve_transcript(context, settings.rules, native=takes_system)
    printer = ToolPrinter(settings)
    takes_changes = takes_system and compat_flag(compat, "supportsMidConvoToolChanges", False)
    in_place = settings.rules.has_transcripts and takes_changes and bool(transcript.head_tools)
    writer = ClaudeWriter(settings, printer if in_place else None)
    items = writer.write(transcript.context)
    mark_history(items, marker)
    if _manages_effort(settings):
        items = with_effort_messages(items, writer.levels, _effort_name(settings))
    params: dict[str, Json] = {"model": model["id"], "messages": None, "max_tokens": max_tokens}
    params["stream"] = True
    if system := _system(transcript.context, settings, marker):
        params["system"] = system
    if _takes_temperature(settings):
        params["temperature"] = settings.temperature
    tool_marker = marker if compat_flag(compat, "supportsCacheControlOnTools", True) else None
    if in_place:
        params["tools"] = [*printer.definitions(transcript.head_tools, tool_marker), PLACEHOLDER]
    elif transcript.context.tools:
        params["tools"] = printer.definitions(transcript.context.tools, tool_marker)
    params |= _thinking(settings, budget)
    fallbacks = compat.get("allowedFallbackModels") if settings.rules.has_thinking_budgets else None
    if fallbacks:
        params["fallbacks"] = [{"model": fallback["model"]} for fallback in fallbacks]
    return assemble(params, "messages", items, seqs)


def _limits(context: Context, settings: Settings) -> tuple[int, int]:
    """(max_tokens, thinking budget)."""
    limit = OutputLimit(settings.model, context, settings.rules)
    if settings.effort and not _is_adaptive(settings):
        return limit.with_budget(settings.max_tokens, settings.effort, settings.thinking_budgets)
    return limit.plain(settings.max_tokens), 0


def _is_adaptive(settings: Settings) -> bool:
    return settings.compat.get("forceAdaptiveThinking") is True


def _cache_marker(settings: Settings) -> dict[str, Json] | None:
    if settings.retention == "none":
        return None
    takes_long = compat_flag(settings.compat, "supportsLongCacheRetention", True)
    is_long = settings.retention == "long" and takes_long
    return {"type": "ephemeral", **({"ttl": "1h"} if is_long else {})}


def _system(context: Context, settings: Settings, marker: dict[str, Json] | None) -> list[Json]:
    texts = [_IDENTITY] if settings.is_oauth else []
    texts += [clean(context.system)] if context.system else []
    cache = {} if marker is None else {"cache_control": marker}
    return [{"type": "text", "text": text, **cache} for text in texts]


def _takes_temperature(settings: Settings) -> bool:
    if settings.temperature is None or settings.effort or _can_manage_effort(settings):
        return False
    return compat_flag(settings.compat, "supportsTemperature", True)


def _can_manage_effort(settings: Settings) -> bool:
    return settings.rules.managed_effort != "no" and settings.compat.get("supportsMidConvoEffort") is True


def _manages_effort(settings: Settings) -> bool:
    """Whether messages in the history carry the effort."""
    is_off = settings.is_reasoning and not settings.effort and settings.has_off
    return _can_manage_effort(settings) and not (settings.rules.managed_effort == "off-aware" and is_off)


def _effort_name(settings: Settings) -> str:
    if not settings.effort or not _is_adaptive(settings):
        return "high"
    level = settings.levels.get(settings.effort)
    return level if isinstance(level, str) else _EFFORTS.get(settings.effort, "high")


def _thinking(settings: Settings, budget: int) -> dict[str, Json]:
    adaptive: dict[str, Json] = {"type": "adaptive", "display": "summarized"}
    if _manages_effort(settings):
        binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        return {"thinking": {**adaptive, **binding}, "output_config": {"effort": "high"}}
    if not settings.is_reasoning:
        return {}
    if not settings.effort:
        return {"thinking": {"type": "disabled"}} if settings.has_off else {}
    if not _is_adaptive(settings):
        return {"thinking": {"type": "enabled", "budget_tokens": budget, "display": "summarized"}}
    effort = _effort_name(settings)
    # An effort that the map declares as an empty string is not sent.
    return {"thinking": adaptive, **({"output_config": {"effort": effort}} if effort else {})}
