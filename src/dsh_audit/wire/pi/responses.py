"""Protocols openai-responses and, as a small difference, azure-openai-responses.

Source: wire-pi-ai 6.2, 13; pi-ai 0.82.1 api/openai-responses, api/azure-openai-responses.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.assemble import BodyPrinter, Seqs
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.responses_input import ResponseItems
from dsh_audit.wire.pi.responses_items import response_tools
from dsh_audit.wire.pi.settings import Settings, compat_flag, sampling_members

CACHE_KEY_POINTS = 64
PAIRED_PROVIDERS = frozenset({"openai", "openai-codex", "opencode"})
_MIN_OUTPUT = 16
_ENCRYPTED = ["reasoning.encrypted_content"]


class ResponsesEncoder:
    """Writes the Responses bodies of one session."""

    def __init__(self) -> None:
        self._printer = BodyPrinter("input")
        self._items = ResponseItems(PAIRED_PROVIDERS)

    def encode(self, context: Context, settings: Settings, seqs: Seqs) -> Body:
        """The body of a request."""
        compat = settings.model.get("compat") or {}
        strict = compat_flag(compat, "supportsStrictMode", False)
        update = _effort_update(compat, settings)
        items, tools = self._items.of(context, settings, seqs, strict=strict, update=update)

        def define() -> list[Json]:
            # Duplicate names: the first place, the last definition.
            return response_tools(list({tool["name"]: tool for tool in tools}.values()), strict)

        self._printer.print_tools((tools, strict), define, seqs.tools)
        params = self._members(context, settings, update, has_tools=bool(tools))
        return self._printer.body(params, items.prompt, items.run, items.open_parts, seqs)

    def _members(self, context: Context, settings: Settings, update: str | None, *, has_tools: bool) -> dict[str, Json]:
        """All members in wire order; input and tools are placeholders."""
        model, compat = settings.model, settings.model.get("compat") or {}
        limit = OutputLimit(model, context).plain(settings.max_tokens)
        params: dict[str, Json] = {"model": model["id"], "input": None, "stream": True}
        params |= _cache_members(compat, settings)
        params |= common_members(limit, settings)
        if settings.is_chatgpt and settings.rules.has_transcripts:
            for refused in ("max_output_tokens", "temperature", "prompt_cache_retention", "prompt_cache_options"):
                params.pop(refused, None)
        if has_tools:
            params["tools"] = None
        if settings.is_reasoning:
            params |= _reasoning(settings, update)
        return params | sampling_members(settings)


def _cache_members(compat: dict[str, Json], settings: Settings) -> dict[str, Json]:
    members: dict[str, Json] = {}
    if settings.retention != "none" and settings.session_id is not None:
        members["prompt_cache_key"] = settings.session_id[:CACHE_KEY_POINTS]
    is_explicit = compat_flag(compat, "supportsExplicitPromptCacheMode", False)
    has_ttl = is_explicit and settings.rules.has_output_flags
    if settings.retention == "long" and compat_flag(compat, "supportsLongCacheRetention", True):
        member: dict[str, Json] = {"prompt_cache_options": {"ttl": "30m"}}
        members |= member if has_ttl else {"prompt_cache_retention": "24h"}
    if settings.retention == "none" and is_explicit:
        members["prompt_cache_options"] = {"mode": "explicit"}
    return members


def _effort_update(compat: dict[str, Json], settings: Settings) -> str | None:
    """The effort that goes into the input instead of the settings (pi-ai 1.3.0)."""
    takes_updates = settings.rules.has_transcripts and compat_flag(compat, "supportsMidConvoEffort", False)
    if not takes_updates or not settings.effort or settings.is_chatgpt:
        return None
    return settings.level(settings.effort, settings.effort)


def common_members(limit: int, settings: Settings) -> dict[str, Json]:
    """store, max_output_tokens and temperature."""
    members: dict[str, Json] = {"store": False}
    compat = settings.model.get("compat") or {}
    is_azure = settings.model["api"] == "azure-openai-responses"
    has_flag = settings.rules.has_output_flags and not is_azure
    if not has_flag or compat_flag(compat, "supportsMaxOutputTokens", True):
        members["max_output_tokens"] = max(limit, _MIN_OUTPUT)
    if settings.temperature is not None:
        members["temperature"] = settings.temperature
    return members


def reasoning_with_effort(settings: Settings, effort: str) -> dict[str, Json]:
    """The members of a request with an effort."""
    wire_level = settings.level(effort, effort)
    return {"reasoning": {"effort": wire_level, "summary": "auto"}, "include": _ENCRYPTED}


def _reasoning(settings: Settings, update: str | None) -> dict[str, Json]:
    provider = settings.model["provider"]
    members: dict[str, Json] = {}
    if settings.effort:
        members = reasoning_with_effort(settings, settings.effort)
        if update is not None:
            members["reasoning"]["effort"] = "medium"
    elif provider != "github-copilot" and settings.has_off:
        members = {"reasoning": {"effort": settings.level("off", "none")}}
    if provider == "xai":
        members["include"] = _ENCRYPTED
    return members
