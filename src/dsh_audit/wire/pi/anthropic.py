"""Protocol anthropic-messages.

Source: wire-pi-ai 6.3; pi-ai 0.82.1, 0.84.4, 0.85.1 and 1.3.0 api/anthropic-messages.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.anthropic_messages import ClaudeWriter, can_carry_marker, effort_item, mark_last, rewrite_id
from dsh_audit.wire.pi.anthropic_tools import PLACEHOLDER, ToolPrinter
from dsh_audit.wire.pi.assemble import BodyPrinter, Seqs
from dsh_audit.wire.pi.history import History
from dsh_audit.wire.pi.items import ItemFold, resume
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.settings import Settings, compat_flag
from dsh_audit.wire.pi.strings import clean
from dsh_audit.wire.pi.transcript import resolve_transcript

_IDENTITY = "You are Claude Code, Anthropic's official CLI for Claude."
_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}


class AnthropicEncoder:
    """Writes the Messages bodies of one session."""

    def __init__(self) -> None:
        self._printer = BodyPrinter("messages")
        self._fold: ItemFold | None = None

    def encode(self, context: Context, settings: Settings, seqs: Seqs) -> Body:
        """The body of a request."""
        model, compat, rules = settings.model, settings.compat, settings.rules
        marker = _cache_marker(settings)
        takes_system = compat_flag(compat, "supportsMidConvoSystemMessages", False)
        transcript = resolve_transcript(context, rules, native=takes_system)
        takes_changes = takes_system and compat_flag(compat, "supportsMidConvoToolChanges", False)
        in_place = rules.has_transcripts and takes_changes and bool(transcript.head_tools)
        shows_effort = _manages_effort(settings)
        key = (model, rules, settings.is_oauth, in_place, shows_effort, transcript.skips_first, transcript.drops_system)

        def start() -> ItemFold:
            changes = ToolPrinter(settings) if in_place else None
            writer = ClaudeWriter(settings, changes, shows_effort=shows_effort)
            history = History(model, rewrite_id, rules)
            return ItemFold(
                key,
                context,
                transcript,
                history,
                writer,
                list_key="messages",
                first_index=0,
                can_mark=can_carry_marker,
            )

        self._fold = fold = resume(self._fold, key, context, start)
        items = mark_last(fold.open_items(), marker)
        if shows_effort:
            items = [*items, effort_item(_effort_name(settings))]
        tools = transcript.head_tools if in_place else transcript.tools
        tool_marker = marker if compat_flag(compat, "supportsCacheControlOnTools", True) else None

        def define() -> list[Json]:
            return [*ToolPrinter(settings).definitions(tools, tool_marker), *([PLACEHOLDER] if in_place else ())]

        self._printer.print_tools((tools, model, rules, settings.is_oauth, tool_marker, in_place), define, seqs.tools)
        params = _members(context, transcript.system, settings, marker, has_tools=bool(tools))
        return self._printer.body(params, None, fold.run, fold.print_open(items), seqs)


def _members(
    context: Context, system: str | None, settings: Settings, marker: dict[str, Json] | None, *, has_tools: bool
) -> dict[str, Json]:
    """All members in wire order; messages and tools are placeholders."""
    max_tokens, budget = _limits(context, settings)
    params: dict[str, Json] = {"model": settings.model["id"], "messages": None, "max_tokens": max_tokens}
    params["stream"] = True
    if blocks := _system(system, settings, marker):
        params["system"] = blocks
    if _takes_temperature(settings):
        params["temperature"] = settings.temperature
    if has_tools:
        params["tools"] = None
    params |= _thinking(settings, budget)
    fallbacks = settings.compat.get("allowedFallbackModels") if settings.rules.has_thinking_budgets else None
    if fallbacks:
        params["fallbacks"] = [{"model": fallback["model"]} for fallback in fallbacks]
    return params


def _limits(context: Context, settings: Settings) -> tuple[int, int]:
    """(max_tokens, thinking budget)."""
    limit = OutputLimit(settings.model, context)
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


def _system(system: str | None, settings: Settings, marker: dict[str, Json] | None) -> list[Json]:
    texts = [_IDENTITY] if settings.is_oauth else []
    texts += [clean(system)] if system else []
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
