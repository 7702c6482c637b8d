"""The reasoning members of a chat completions body, one function a thinking format.

Each function gets the request's settings and whether the endpoint takes an effort; it is called for reasoning
models only. Source: wire-pi-ai 6.1; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from collections.abc import Callable

from dsh_audit.events import Json
from dsh_audit.wire.pi.settings import Settings

Members = dict[str, Json]


def reasoning_members(compat: dict[str, Json], settings: Settings) -> Members:
    """The members that say how to reason, in wire order."""
    if not settings.is_reasoning:
        return {}
    if compat["thinkingFormat"] == "chat-template":
        kwargs = _kwargs(compat["chatTemplateKwargs"], settings)
        return {"chat_template_kwargs": kwargs} if kwargs else {}
    write = _FORMATS.get(compat["thinkingFormat"], _openai)
    return write(settings, bool(compat["supportsReasoningEffort"]))


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


def _qwen(settings: Settings, _takes_effort: bool) -> Members:
    return {"enable_thinking": bool(settings.effort)}


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


def _kwargs(entries: Members, settings: Settings) -> Members:
    resolved = {name: _kwarg(entry, settings) for name, entry in entries.items()}
    return {name: value for name, (is_sent, value) in resolved.items() if is_sent}


def _kwarg(entry: Json, settings: Settings) -> tuple[bool, Json]:
    """(whether it is sent, its value)."""
    if not isinstance(entry, dict):
        return True, entry
    if not settings.effort and entry.get("omitWhenOff"):
        return False, None
    if entry.get("$var") == "thinking.enabled":
        return True, bool(settings.effort)
    level = settings.effort or "off"
    if level in settings.levels:
        mapped = settings.levels[level]
        return isinstance(mapped, str), mapped
    return settings.effort is not None, settings.effort
