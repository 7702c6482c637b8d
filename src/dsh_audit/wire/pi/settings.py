"""The settings of one request that every protocol reads.

Source: wire-pi-ai 2, 4.3, 6; dsh-llm-pi-ai 0.1.0-rc.8 adapter.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.versions import PiRules

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
CREDENTIALS = {"api-key": "sk-", "oauth": "sk-ant-oat", "chatgpt": "sign-in"}
"""Credential kind → a text of that kind; no more of a key matters."""

Retention = Literal["none", "short", "long"]


@dataclass(frozen=True, slots=True)
class Settings:
    """One request's settings after the adapter has looked at them.

    Args:
        effort: a level other than off that the model supports, or None.
        max_tokens: the logged limit.
        is_oauth: whether the effective key is an Anthropic OAuth token.
        reuses_provider: whether pi-ai's own provider of that key serves the route (the profile names no api).
        is_chatgpt: whether the request goes to OpenAI itself with a ChatGPT sign-in instead of a key.
    """

    model: dict[str, Json]
    rules: PiRules
    retention: Retention
    effort: str | None = None
    max_tokens: int | None = None
    temperature: Json = None
    session_id: str | None = None
    thinking_budgets: dict[str, Json] = field(default_factory=dict)
    is_oauth: bool = False
    is_chatgpt: bool = False
    reuses_provider: bool = False
    env: dict[str, str] = field(default_factory=dict)

    @property
    def compat(self) -> dict[str, Json]:
        """The compat block of the resolved model."""
        return self.model.get("compat") or {}

    @property
    def levels(self) -> dict[str, Json]:
        """The thinking level map of the model."""
        return self.model.get("thinkingLevelMap") or {}

    def level(self, level: str, default: str) -> str:
        """What a level is called on the wire: its map entry unless that is absent or null."""
        name: str | None = self.levels.get(level)
        return default if name is None else name

    @property
    def has_off(self) -> bool:
        """Whether reasoning can be switched off: the map does not hold a null for it."""
        return self.levels.get("off", "") is not None

    @property
    def is_reasoning(self) -> bool:
        """Whether the model reasons."""
        return bool(self.model["reasoning"])


def compat_flag(compat: dict[str, Json], field_name: str, default: bool) -> bool:
    """A compat field, null counting as unset."""
    value = compat.get(field_name)
    return default if value is None else bool(value)


def is_chatgpt(model: dict[str, Json], key: str) -> bool:
    """Whether a key is a ChatGPT sign-in: OpenAI's own keys start with ``sk-``."""
    is_openai = model["provider"] == "openai" and model["baseUrl"] == "https://api.openai.com/v1"
    return is_openai and bool(key) and not key.startswith("sk-")


def sampling_members(settings: Settings) -> dict[str, Json]:
    """Sampling parameters of the catalogue entry; they override members of the body."""
    if not settings.rules.has_thinking_budgets:
        return {}
    members = dict(settings.model.get("samplingParams") or {})
    if settings.rules.has_transcripts:
        level = settings.effort or next(iter(supported_levels(settings.model)), "off")
        members |= (settings.model.get("samplingParamsByThinkingLevel") or {}).get(level) or {}
    return members


def retention_of(profile: dict[str, Json], env: dict[str, str]) -> Retention:
    """Cache retention: the profile's, else ``long`` when the environment says exactly so, else ``short``."""
    configured: Retention | None = profile.get("cacheRetention")
    if configured:
        return configured
    return "long" if env.get("PI_CACHE_RETENTION") == "long" else "short"


def effort_of(model: dict[str, Json], logged: str | None, profile: dict[str, Json]) -> str | None:
    """The effort in force.

    Raises:
        PiRefusedError: the model does not support it; the adapter throws before any request.
    """
    effort = profile.get("reasoning") if logged is None else logged
    if effort is not None and effort not in supported_levels(model):
        raise no_request(f'model "{model["id"]}" does not support reasoning effort "{effort}"')
    return None if effort == "off" else effort


def supported_levels(model: dict[str, Json]) -> list[str]:
    """The efforts that a resolved model accepts."""
    if not model["reasoning"]:
        return ["off"]
    levels = model.get("thinkingLevelMap") or {}
    return [
        level
        for level in LEVELS
        if levels.get(level, "") is not None and (level in levels or level not in ("xhigh", "max"))
    ]
