"""Compat detection: which dialect of chat completions an endpoint speaks.

A value is the model's own compat field when that is set, else it follows from the provider key and from
substrings of the base URL. Source: wire-pi-ai 6.1, 6.4; pi-ai 0.82.1 api/openai-completions.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.pi.versions import PiRules

_KEYS: dict[str, tuple[str, ...]] = {
    "zai": ("zai", "zai-coding-cn"),
    "together": ("together",),
    "moonshot": ("moonshotai", "moonshotai-cn"),
    "openrouter": ("openrouter",),
    "cf-workers": ("cloudflare-workers-ai",),
    "cf-gateway": ("cloudflare-ai-gateway",),
    "nvidia": ("nvidia",),
    "ant-ling": ("ant-ling",),
    "xai": ("xai",),
    "deepseek": ("deepseek",),
    "cerebras": ("cerebras",),
    "opencode": ("opencode",),
}
_URLS: dict[str, tuple[str, ...]] = {
    "zai": ("api.z.ai", "open.bigmodel.cn"),
    "together": ("api.together.ai", "api.together.xyz"),
    "moonshot": ("api.moonshot.",),
    "openrouter": ("openrouter.ai",),
    "cf-workers": ("api.cloudflare.com",),
    "cf-gateway": ("gateway.ai.cloudflare.com",),
    "nvidia": ("integrate.api.nvidia.com",),
    "ant-ling": ("api.ant-ling.com",),
    "xai": ("api.x.ai",),
    "deepseek": ("deepseek.com",),
    "cerebras": ("cerebras.ai",),
    "opencode": ("opencode.ai",),
    "chutes": ("chutes.ai",),
}
_FORMATS = ("deepseek", "zai", "together", "ant-ling", "openrouter")
# A deepseek route counts as non-standard by its URL alone, not by its key.
_NON_STANDARD = {
    *("nvidia", "cerebras", "xai", "together", "chutes", "zai", "moonshot", "opencode"),
    *("cf-workers", "cf-gateway", "ant-ling"),
}
_NO_EFFORT = {"xai", "zai", "moonshot", "together", "cf-gateway", "nvidia", "ant-ling"}
_NO_STRICT = {"moonshot", "together", "cf-gateway", "nvidia"}
_MAX_TOKENS = {"chutes", "moonshot", "cf-gateway", "together", "nvidia", "ant-ling"}
_NO_LONG_RETENTION = {"together", "cf-workers", "cf-gateway", "nvidia", "ant-ling"}


def vendors_of(provider: str, base_url: str) -> set[str]:
    """The vendors that a route counts as."""
    return {name for name, keys in _KEYS.items() if provider in keys} | {
        name for name, urls in _URLS.items() if any(url in base_url for url in urls)
    }


def completions_compat(model: dict[str, Json], rules: PiRules) -> dict[str, Json]:
    """The compat fields of a chat-completions model, under their pi-ai names."""
    detected = _detect(model, rules)
    own = model.get("compat") or {}
    return {**detected, **{field: value for field, value in own.items() if value is not None}}


def _detect(model: dict[str, Json], rules: PiRules) -> dict[str, Json]:
    provider, base_url, model_id = model["provider"], model["baseUrl"], model["id"]
    vendors = vendors_of(provider, base_url)
    short_limit, non_standard = _MAX_TOKENS, _NON_STANDARD
    if rules.deepseek_is_non_standard:
        vendors |= {"deepseek"} if "deepseek.com" in base_url.lower() else set()
        short_limit, non_standard = short_limit | {"deepseek", "zai"}, non_standard | {"deepseek"}
    is_router = "openrouter" in vendors
    standard = not vendors & non_standard and "deepseek.com" not in base_url
    routed_developer = is_router and model_id.startswith(("anthropic/", "openai/"))
    marked = provider == "openrouter" and model_id.startswith("anthropic/")
    return {
        "supportsStore": standard,
        "supportsDeveloperRole": routed_developer or (standard and not is_router),
        "supportsReasoningEffort": not vendors & _NO_EFFORT,
        "supportsUsageInStreaming": True,
        "maxTokensField": "max_tokens" if vendors & short_limit else "max_completion_tokens",
        "requiresToolResultName": False,
        "requiresAssistantAfterToolResult": False,
        "requiresThinkingAsText": False,
        "requiresReasoningContentOnAssistantMessages": "deepseek" in vendors,
        "thinkingFormat": next((name for name in _FORMATS if name in vendors), "openai"),
        "chatTemplateKwargs": {},
        "chatTemplateArgs": {},
        "thinkingTokenBudgetField": None,
        "supportsThinkingTokenBudget": False,
        "supportsMidConvoSystemMessages": False,
        "supportsMidConvoToolAdditions": False,
        "zaiToolStream": False,
        "supportsStrictMode": rules.detects_strict and not vendors & _NO_STRICT,
        "cacheControlFormat": "anthropic" if marked else None,
        "sendSessionAffinityHeaders": rules.has_transcripts and is_router,
        "sessionAffinityFormat": "openrouter" if is_router else "openai",
        "supportsLongCacheRetention": not vendors & _NO_LONG_RETENTION,
    }
