"""Profile + catalogue → resolved model.

A profile is what a deployment configures for one provider route, raw or normalised (defaults filled in, empty
containers where nothing was set); both resolve alike. The catalogue is the model list of an installed pi-ai.
Source: wire-pi-ai 8; dsh-llm-pi-ai 0.1.0-rc.8 catalog, config.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.errors import DeploymentError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.wire.pi.settings import LEVELS

DEFAULT_CONTEXT_WINDOW = 262144
DEFAULT_MAX_TOKENS = 32768
DEFAULT_INPUT = ("text",)
_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
_RESPONSES_FIELDS = frozenset(
    {
        *("supportsDeveloperRole", "supportsStrictMode", "supportsLongCacheRetention"),
        "supportsMaxOutputTokens",
    }
)
_OFFERED: dict[str, frozenset[str]] = {
    "openai-completions": frozenset(
        {
            *("supportsStore", "supportsDeveloperRole", "supportsReasoningEffort"),
            *("supportsUsageInStreaming", "maxTokensField", "requiresToolResultName"),
            *("requiresAssistantAfterToolResult", "supportsFinishReason", "chatTemplateArgs", "vllmPriority"),
            *("supportsThinkingTokenBudget", "thinkingTokenBudgetField"),
            *("requiresThinkingAsText", "requiresReasoningContentOnAssistantMessages", "thinkingFormat"),
            *("chatTemplateKwargs", "supportsStrictMode", "cacheControlFormat", "supportsLongCacheRetention"),
        }
    ),
    "openai-responses": _RESPONSES_FIELDS,
    "azure-openai-responses": _RESPONSES_FIELDS,
    "openai-codex-responses": _RESPONSES_FIELDS,
    "anthropic-messages": frozenset(
        {
            *("supportsEagerToolInputStreaming", "supportsLongCacheRetention", "supportsCacheControlOnTools"),
            *("supportsTemperature", "forceAdaptiveThinking", "allowEmptySignature", "supportsStrictTools"),
        }
    ),
    "bedrock-converse-stream": frozenset({"supportsStrictMode"}),
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The models of one provider key in an installed pi-ai.

    Args:
        models: model id → entry.
        base_url: the provider's own default address, where the package names one.
    """

    models: dict[str, dict[str, Json]] = field(default_factory=dict)
    base_url: str | None = None

    @property
    def shared_api(self) -> str | None:
        """The one protocol that all models share."""
        apis = {model["api"] for model in self.models.values()}
        return apis.pop() if len(apis) == 1 else None


def resolve_model(
    provider: str, model_id: str, profile: dict[str, Json], catalogue: Catalogue | None = None
) -> dict[str, Json]:
    """The model that pi-ai is called with.

    Args:
        provider: the key of the route.
        catalogue: of that key; None when the package does not know it.

    Raises:
        DeploymentError: the profile does not describe that model.
    """
    known = catalogue or Catalogue()
    entry = _entry(model_id, profile, known)
    base = known.models.get(model_id, {})
    api = profile.get("api") or base.get("api") or known.shared_api
    if api is None:
        raise DeploymentError(f'provider "{provider}": model "{model_id}" needs an api')
    base_url = _first(profile.get("baseURL"), base.get("baseUrl"), known.base_url)
    if base_url is None:
        raise DeploymentError(f'provider "{provider}": model "{model_id}" needs a baseURL')
    default_input = list(profile.get("defaultInput") or DEFAULT_INPUT)
    window = _first(profile.get("defaultContextWindow"), DEFAULT_CONTEXT_WINDOW)
    max_tokens = _first(profile.get("defaultMaxTokens"), DEFAULT_MAX_TOKENS)
    return {
        **base,
        "id": model_id,
        "name": _first(entry.get("name"), base.get("name"), model_id),
        "api": api,
        "provider": provider,
        "baseUrl": base_url,
        "input": entry.get("input") or _first(base.get("input"), default_input),
        "cost": _first(base.get("cost"), _NO_COST),
        "contextWindow": _first(entry.get("contextWindow"), base.get("contextWindow"), window),
        "maxTokens": _first(entry.get("maxTokens"), base.get("maxTokens"), max_tokens),
        **_reasoning(entry, base),
        **_compat(entry, profile.get("compat"), base, api),
    }


def _first(*values: Json) -> Json:
    return next((value for value in values if value is not None), None)


def _entry(model_id: str, profile: dict[str, Json], known: Catalogue) -> dict[str, Json]:
    """The configured entry of a model: a models list replaces the catalogue."""
    configured: list[dict[str, Json]] = profile.get("models") or []
    if configured:
        found = next((entry for entry in configured if entry["id"] == model_id), None)
    else:
        overrides = profile.get("modelOverrides") or {}
        found = overrides.get(model_id, {}) if model_id in known.models else None
    if found is None:
        raise DeploymentError(f'the profile describes no model "{model_id}"')
    return found


def _reasoning(entry: dict[str, Json], base: dict[str, Json]) -> dict[str, Json]:
    """Declared efforts decide every level; without any the catalogue's word stands."""
    efforts = entry.get("reasoningEfforts")
    if efforts is None:
        return {"reasoning": base.get("reasoning", False)}
    if efforts is False:
        return {"reasoning": False}
    levels = {level: efforts.get(level) for level in LEVELS}
    declared_empty = {level for level in LEVELS if level in efforts and efforts[level] is None}
    return {
        "reasoning": True,
        "thinkingLevelMap": {name: value for name, value in levels.items() if name not in declared_empty},
    }


def _compat(entry: dict[str, Json], route: dict[str, Json] | None, base: dict[str, Json], api: str) -> dict[str, Json]:
    offered = _OFFERED.get(api, frozenset())
    configured = {field: value for field, value in _set_fields(route) if field in offered}
    configured |= dict(_set_fields(entry.get("compat")))
    if not configured:
        return {}
    inherited = (base.get("compat") or {}) if base.get("api") == api else {}
    return {"compat": {**inherited, **configured}}


def _set_fields(compat: dict[str, Json] | None) -> Iterable[tuple[str, Json]]:
    """The fields that are set; an empty object is what normalising makes of an unset one."""
    return [(name, value) for name, value in (compat or {}).items() if value != {}]
