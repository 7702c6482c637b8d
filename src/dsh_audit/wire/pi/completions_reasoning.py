"""The reasoning members of a chat completions body, one function a thinking format.

Each function gets the request's settings and whether the endpoint takes an effort; it is called for reasoning
models only. Source: wire-pi-ai 6.1; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from collections.abc import Callable

from dsh_audit.events import Json
from dsh_audit.wire.pi.limits import answer_budget
from dsh_audit.wire.pi.settings import Settings

Members = dict[str, Json]


def reasoning_members(compat: dict[str, Json], settings: Settings, limit: int) -> Members:
    """The members that say how to reason, in wire order.

    Args:
        limit: the output limit, which reasoning and answer share.
    """
    if not settings.is_reasoning:
        return {}
    budget = None
    if settings.effort and settings.rules.has_thinking_budgets:
        budget = answer_budget(settings.effort, settings.thinking_budgets, limit)
    takes_effort = bool(compat["supportsReasoningEffort"])
    thinking_format = compat["thinkingFormat"]
    if thinking_format == "chat-template":
        kwargs = _template_values(compat["chatTemplateKwargs"], settings, budget)
        members = {"chat_template_kwargs": kwargs} if kwargs else {}
    elif thinking_format == "baseten" and settings.rules.has_thinking_budgets:
        kwargs = _template_values(compat["chatTemplateArgs"], settings, budget)
        members = {"chat_template_args": kwargs} if kwargs else {}
        members |= _openai(settings, takes_effort)
    else:
        members = _FORMATS.get(thinking_format, _openai)(settings, takes_effort)
    return members | _budget_member(compat, budget)


def _budget_member(compat: Members, budget: int | None) -> Members:
    field = compat["thinkingTokenBudgetField"]
    if not field and compat["supportsThinkingTokenBudget"]:
        field = "thinking_token_budget"
    return {field: budget} if field and budget is not None else {}


def _openai(settings: Settings, takes_effort: bool) -> Members:
    if not takes_effort:
        return {}
    if settings.effort:
        return {"reasoning_effort": settings.level(settings.effort, settings.effort)}
    off = settings.levels.get("off")
    return {"reasoning_effort": off} if isinstance(off, str) else {}


def _effort(settings: Settings, takes_effort: bool) -> Members:
    return _openai(settings, takes_effort) if settings.effort else {}


def _deepseek(settings: Settings, takes_effort: bool) -> Members:
    if settings.effort:
        return {"thinking": {"type": "enabled"}, **_effort(settings, takes_effort)}
    return {"thinking": {"type": "disabled"}} if settings.has_off else {}


def _openrouter(settings: Settings, _takes_effort: bool) -> Members:
    if settings.effort:
        return {"reasoning": {"effort": settings.level(settings.effort, settings.effort)}}
    return {"reasoning": {"effort": settings.level("off", "none")}} if settings.has_off else {}


def _together(settings: Settings, takes_effort: bool) -> Members:
    return {"reasoning": {"enabled": bool(settings.effort)}, **_effort(settings, takes_effort)}


def _zai(settings: Settings, takes_effort: bool) -> Members:
    if not settings.effort:
        return {"thinking": {"type": "disabled"}}
    members: Members = {"thinking": {"type": "enabled", "clear_thinking": False}}
    return {**members, **_effort(settings, takes_effort)}


def _qwen(settings: Settings, takes_effort: bool) -> Members:
    effort = _effort(settings, takes_effort) if settings.rules.qwen_takes_effort else {}
    return {"enable_thinking": bool(settings.effort), **effort}


def _qwen_chat_template(settings: Settings, _takes_effort: bool) -> Members:
    return {"chat_template_kwargs": {"enable_thinking": bool(settings.effort), "preserve_thinking": True}}


def _string_thinking(settings: Settings, _takes_effort: bool) -> Members:
    if settings.effort:
        return {"thinking": settings.level(settings.effort, settings.effort)}
    return {"thinking": settings.level("off", "none")} if settings.has_off else {}


def _ant_ling(settings: Settings, takes_effort: bool) -> Members:
    if not settings.effort:
        return _openai(settings, takes_effort)
    level = settings.levels.get(settings.effort)
    return {"reasoning": {"effort": level}} if isinstance(level, str) else {}


_FORMATS: dict[str, Callable[[Settings, bool], Members]] = {
    "openai": _openai,
    "deepseek": _deepseek,
    "openrouter": _openrouter,
    "together": _together,
    "zai": _zai,
    "qwen": _qwen,
    "qwen-chat-template": _qwen_chat_template,
    "string-thinking": _string_thinking,
    "ant-ling": _ant_ling,
}


def _template_values(entries: Members, settings: Settings, budget: int | None) -> Members:
    resolved = {name: _template_value(entry, settings, budget) for name, entry in entries.items()}
    return {name: value for name, (is_sent, value) in resolved.items() if is_sent}


def _template_value(entry: Json, settings: Settings, budget: int | None) -> tuple[bool, Json]:
    """(whether it is sent, its value)."""
    if not isinstance(entry, dict):
        return True, entry
    if not settings.effort and entry.get("omitWhenOff"):
        return False, None
    if entry.get("$var") == "thinking.enabled":
        return True, bool(settings.effort)
    if entry.get("$var") == "thinking.budget" and settings.rules.has_thinking_budgets:
        return budget is not None, budget
    level = settings.effort or "off"
    if level in settings.levels:
        mapped = settings.levels[level]
        return isinstance(mapped, str), mapped
    return settings.effort is not None, settings.effort
