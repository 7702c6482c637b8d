"""Protocol azure-openai-responses, as a difference to openai-responses.

Source: wire-pi-ai 13; pi-ai 0.82.1 api/azure-openai-responses.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.assemble import BodyPrinter, Seqs
from dsh_audit.wire.pi.limits import OutputLimit
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.responses import (
    CACHE_KEY_POINTS,
    PAIRED_PROVIDERS,
    common_members,
    reasoning_with_effort,
)
from dsh_audit.wire.pi.responses_input import ResponseItems
from dsh_audit.wire.pi.responses_items import response_tools
from dsh_audit.wire.pi.settings import Settings, compat_flag, sampling_members
from dsh_audit.wire.pi.strings import trim

_PROVIDERS = PAIRED_PROVIDERS | {"azure-openai-responses"}


class AzureEncoder:
    """Writes the Azure Responses bodies of one session."""

    def __init__(self) -> None:
        self._printer = BodyPrinter("input")
        self._items = ResponseItems(_PROVIDERS)

    def encode(self, context: Context, settings: Settings, seqs: Seqs) -> Body:
        """The body of a request."""
        model, compat = settings.model, settings.model.get("compat") or {}
        strict = compat_flag(compat, "supportsStrictMode", True)
        limit = OutputLimit(model, context).plain(settings.max_tokens)
        items, tools = self._items.of(context, settings, seqs, strict=strict)
        self._printer.print_tools((tools, strict), lambda: response_tools(tools, strict), seqs.tools)
        deployment = deployment_name(model["id"], settings.env.get("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", ""))
        params: dict[str, Json] = {"model": deployment, "input": None, "stream": True}
        if settings.session_id is not None:
            params["prompt_cache_key"] = settings.session_id[:CACHE_KEY_POINTS]
        params |= common_members(limit, settings)
        if tools:
            params["tools"] = None
        if settings.is_reasoning and settings.effort:
            params |= reasoning_with_effort(settings, settings.effort)
        elif settings.is_reasoning and settings.has_off:
            params["reasoning"] = {"effort": settings.level("off", "none")}
        params |= sampling_members(settings)
        return self._printer.body(params, items.prompt, items.run, items.open_parts, seqs)


def deployment_name(model_id: str, name_map: str) -> str:
    """The deployment that a ``model=deployment,…`` map names for a model, else the model id."""
    names: dict[str, str] = {}
    for entry in name_map.split(","):
        halves = trim(entry).split("=")[:2]
        if len(halves) == 2 and all(halves):
            names[trim(halves[0])] = trim(halves[1])
    return names.get(model_id) or model_id
