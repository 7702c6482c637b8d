"""Captured pi-ai bodies → the settings to search, each with a first value read from the bodies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dsh_audit.capture.exchange import Exchange
from dsh_audit.events import Json
from dsh_audit.releases import rules_of_format
from dsh_audit.replay.learning.search import ABSENT, Row, Setting
from dsh_audit.text import ecma
from dsh_audit.wire.pi.versions import VERSIONS, pi_version_of

_PATHS = {
    "/chat/completions": "openai-completions",
    "/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
}
_FLAGS: dict[str, tuple[str, ...]] = {
    "openai-completions": (
        *("supportsStore", "supportsDeveloperRole", "supportsReasoningEffort", "supportsUsageInStreaming"),
        *("requiresToolResultName", "requiresAssistantAfterToolResult", "requiresThinkingAsText"),
        *("requiresReasoningContentOnAssistantMessages", "supportsStrictMode", "supportsLongCacheRetention"),
    ),
    "openai-responses": (
        *("supportsDeveloperRole", "supportsStrictMode", "supportsLongCacheRetention"),
        "supportsMaxOutputTokens",
    ),
    "anthropic-messages": (
        *("supportsEagerToolInputStreaming", "supportsLongCacheRetention", "supportsCacheControlOnTools"),
        *("supportsTemperature", "forceAdaptiveThinking", "allowEmptySignature"),
    ),
}
_CHOICES: dict[str, dict[str, tuple[Json, ...]]] = {
    "openai-completions": {
        "maxTokensField": ("max_tokens", "max_completion_tokens"),
        "thinkingFormat": (
            *("openai", "deepseek", "openrouter", "together", "zai", "qwen", "qwen-chat-template"),
            *("string-thinking", "ant-ling"),
        ),
        "cacheControlFormat": ("anthropic",),
    }
}
_LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def first_settings(rows: list[Row]) -> list[Setting]:
    """The settings of all routes; the cheap and telling ones first."""
    if not rows:
        return []
    default = pi_version_of(rules_of_format(rows[0].request.format_version).assumed)
    known = tuple(VERSIONS)
    settings = [Setting(("pi_ai", "version"), default if default in VERSIONS else known[-1], known)]
    for provider in sorted({row.request.provider for row in rows}):
        settings += _route(provider, [row for row in rows if row.request.provider == provider])
    return settings


def _route(provider: str, rows: list[Row]) -> Iterable[Setting]:
    place = ("providers", provider)
    profile = (*place, "profile")
    api, base_url = address_of(rows[0].exchange)
    yield Setting((*place, "adapter"), "llm-pi-ai", ("llm-pi-ai",))
    yield Setting((*profile, "api"), api, (api,))
    yield Setting((*profile, "baseURL"), base_url, (base_url,))
    for model in sorted({row.request.model for row in rows}):
        yield from _model((*profile, "models", model), [row for row in rows if row.request.model == model])
    yield Setting((*profile, "cacheRetention"), ABSENT, (ABSENT, "none", "short", "long"))
    if api == "anthropic-messages":
        yield Setting((*place, "credential"), ABSENT, (ABSENT, "oauth"))
        yield from _budgets((*profile, "thinkingBudgets"), rows)
    for name, values in _CHOICES.get(api, {}).items():
        yield Setting((*profile, "compat", name), ABSENT, (ABSENT, *values))
    for name in _FLAGS.get(api, ()):
        yield Setting((*profile, "compat", name), ABSENT, (ABSENT, True, False))


def address_of(exchange: Exchange) -> tuple[str, str]:
    """(api, base URL) of a captured request."""
    path, host = exchange.url_path.partition("?")[0], exchange.host
    end = next((end for end in _PATHS if path.endswith(end)), None)
    prefix = path.removesuffix(end) if end is not None else path
    return _PATHS.get(end or "", "openai-completions"), f"http://{host or 'localhost'}{prefix}"


def _model(place: tuple[str, ...], rows: list[Row]) -> Iterable[Setting]:
    bodies = [parsed(row.body) for row in rows]
    window = next(filter(None, (_window(row) for row in rows)), None)
    yield Setting((*place, "contextWindow"), ABSENT if window is None else window, _unique([window, None]))
    seen = [body[name] for body in bodies for name in _LIMITS if isinstance(body.get(name), int)]
    logged = [row.request.config.get("maxTokens") for row in rows]
    unlogged = [value for value, given in zip(seen, logged, strict=False) if given is None]
    wanted = max(unlogged or seen or [0])
    candidates = _unique([*sorted({*seen, *(value for value in logged if isinstance(value, int))}), None])
    yield Setting((*place, "maxTokens"), wanted or ABSENT, candidates)
    efforts = _efforts(rows, bodies)
    yield Setting((*place, "reasoningEfforts"), efforts[0], tuple(efforts))


def _window(row: Row) -> int | None:
    event = row.request.snapshot.request_context
    data: Any = event.data if event is not None else {}
    matches = data.get("provider") == row.request.provider and data.get("model") == row.request.model
    window = data.get("contextWindow") if matches else None
    return window if isinstance(window, int) else None


def _unique(values: Iterable[Json]) -> tuple[Json, ...]:
    unique: list[Json] = []
    for value in values:
        item = ABSENT if value is None else value
        if item not in unique:
            unique.append(item)
    return tuple(unique)


def parsed(body: bytes) -> dict[str, Json]:
    """A body as a JSON object; empty when it is none."""
    try:
        value = ecma.parse(body)
    except ecma.EcmaSyntaxError:
        return {}
    return value if isinstance(value, dict) else {}


def _wire_level(body: dict[str, Json]) -> str | None:
    """The name of the effort in a body."""
    for holder in (body.get("reasoning"), body.get("output_config")):
        if isinstance(holder, dict) and isinstance(holder.get("effort"), str):
            return str(holder["effort"])
    for name in ("reasoning_effort", "thinking"):
        if isinstance(body.get(name), str):
            return str(body[name])
    return None


def _efforts(rows: list[Row], bodies: list[dict[str, Json]]) -> list[Json]:
    """Efforts that fit, the likeliest first: the levels seen, with each way to say off; not reasoning at all."""
    levels: dict[str, Json] = {}
    off_names: list[Json] = [None, ABSENT, "none", "off"]
    is_reasoning = False
    for row, body in zip(rows, bodies, strict=True):
        effort, level = row.request.config.get("reasoningEffort"), _wire_level(body)
        is_reasoning |= level is not None or any(key in body for key in ("thinking", "reasoning", "enable_thinking"))
        if effort in _LEVELS:
            levels[effort] = level or effort
        elif level is not None:
            off_names.insert(0, level)
    found = {level: levels[level] for level in _LEVELS if level in levels} or {"high": "high"}
    declared = [found if off is ABSENT else {"off": off, **found} for off in dict.fromkeys(off_names)]
    none: list[Json] = [ABSENT, False]
    return [*declared, *none] if is_reasoning or levels else [*none, *declared]


def _budgets(place: tuple[str, ...], rows: list[Row]) -> Iterable[Setting]:
    """Thinking budgets that the bodies name."""
    for level in _LEVELS[:4]:
        seen: list[Json] = []
        for row in rows:
            thinking = parsed(row.body).get("thinking")
            budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
            if row.request.config.get("reasoningEffort") == level and budget not in (None, *seen):
                seen.append(budget)
        if seen:
            yield Setting((*place, level), ABSENT, (ABSENT, *seen))
