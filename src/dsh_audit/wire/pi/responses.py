"""Protocols openai-responses and, as a small difference, azure-openai-responses.

Source: wire-pi-ai 6.2, 13; pi-ai 0.82.1 api/openai-responses, api/azure-openai-responses.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.assemble import Seqs, assemble
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.responses_input import response_items
from dsh_audit.wire.pi.settings import Settings

CACHE_KEY_POINTS = 64
PAIRED_PROVIDERS = frozenset({"openai", "openai-codex", "opencode"})
_MIN_OUTPUT = 16
_ENCRYPTED = ["reasoning.encrypted_content"]


def encode_responses(context: Context, settings: Settings, seqs: Seqs) -> Body:
    """The body of a Responses request."""
    model, compat = settings.model, settings.model.get("compat") or {}
    items = response_items(context, model, PAIRED_PROVIDERS, settings.rules, seqs)
    params: dict[str, Json] = {"model": model["id"], "input": None, "stream": True}
    if settings.retention != "none" and settings.session_id is not None:
        params["prompt_cache_key"] = settings.session_id[:CACHE_KEY_POINTS]
    if settings.retention == "long" and compat_flag(compat, "supportsLongCacheRetention", True):
        params["prompt_cache_retention"] = "24h"
    if settings.retention == "none" and compat_flag(compat, "supportsExplicitPromptCacheMode", False):
        params["prompt_cache_options"] = {"mode": "explicit"}
    params |= common_members(context, settings)
    # Duplicate names: the first place, the last definition.
    tools = list({tool["name"]: tool for tool in context.tools}.values())
    if tools:
        params["tools"] = response_tools(tools, compat_flag(compat, "supportsStrictMode", False))
    if settings.is_reasoning:
        params |= _reasoning(settings)
    return assemble(params, "input", items, seqs)


def compat_flag(compat: dict[str, Json], field: str, default: bool) -> bool:
    """A compat field, null counting as unset."""
    value = compat.get(field)
    return default if value is None else bool(value)


def common_members(context: Context, settings: Settings) -> dict[str, Json]:
    """store, max_output_tokens and temperature."""
    limit = OutputLimit(settings.model, context, settings.rules).plain(settings.max_tokens)
    members: dict[str, Json] = {"store": False, "max_output_tokens": max(limit, _MIN_OUTPUT)}
    if settings.temperature is not None:
        members["temperature"] = settings.temperature
    return members


def response_tools(tools: list[dict[str, Json]], has_strict: bool) -> list[Json]:
    """Tool definitions, flat."""
    strict = {"strict": False} if has_strict else {}
    return [{"type": "function", **tool, **strict} for tool in tools]


def reasoning_with_effort(settings: Settings, effort: str) -> dict[str, Json]:
    """The members of a request with an effort."""
    wire_level = settings.level(effort, effort)
    return {"reasoning": {"effort": wire_level, "summary": "auto"}, "include": _ENCRYPTED}


def _reasoning(settings: Settings) -> dict[str, Json]:
    provider = settings.model["provider"]
    members: dict[str, Json] = {}
    if settings.effort:
        members = reasoning_with_effort(settings, settings.effort)
    elif provider != "github-copilot" and settings.has_off:
        members = {"reasoning": {"effort": settings.level("off", "none")}}
    if provider == "xai":
        members["include"] = _ENCRYPTED
    return members
