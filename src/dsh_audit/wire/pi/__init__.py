"""Adapter llm-pi-ai: the request bodies of its three main protocols and of Azure Responses.

A request travels: harness messages → neutral context (stage A, ``context``) → shared history transform
(stage B, ``history``) → one protocol (stage C) → ``Body``. Source: wire-pi-ai.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi.anthropic import AnthropicEncoder
from dsh_audit.wire.pi.assemble import NO_SEQS, Seqs
from dsh_audit.wire.pi.azure import AzureEncoder
from dsh_audit.wire.pi.completions import CompletionsEncoder
from dsh_audit.wire.pi.context import Conversation, owns_every_route
from dsh_audit.wire.pi.http_headers import check_sendable
from dsh_audit.wire.pi.images import ImageSource, ImageVersion, has_image
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.profile import Catalogue, resolve_model
from dsh_audit.wire.pi.refusal import PiRefusedError, no_request, not_encoded
from dsh_audit.wire.pi.responses import ResponsesEncoder
from dsh_audit.wire.pi.settings import Settings, effort_of, is_chatgpt, retention_of
from dsh_audit.wire.pi.versions import rules_of

__all__ = [
    "Catalogue",
    "ImageSource",
    "ImageVersion",
    "PiRefusedError",
    "Seqs",
    "build_settings",
    "encode_pi_request",
    "resolve_model",
]

class ProtocolEncoder(Protocol):
    """Writes the bodies of one session in one protocol."""

    def encode(self, context: Context, settings: Settings, seqs: Seqs) -> Body:
        """The body of a request; cheap where its context extends that of the last one."""
        ...


@dataclass(frozen=True, slots=True)
class PiProtocol:
    """One protocol of pi-ai: the path of its requests, and a new encoder for one session."""

    path: str
    encoder: Callable[[], ProtocolEncoder]


PROTOCOLS: dict[str, PiProtocol] = {
    "openai-completions": PiProtocol("/chat/completions", CompletionsEncoder),
    "openai-responses": PiProtocol("/responses", ResponsesEncoder),
    "azure-openai-responses": PiProtocol("/responses", AzureEncoder),
    "anthropic-messages": PiProtocol("/v1/messages", AnthropicEncoder),
}


def encode_pi_request(
    options: dict[str, Json],
    resolved_model: dict[str, Json],
    *,
    version: str = "0.82.1",
    profile: dict[str, Json] | None = None,
    key: str | None = None,
    env: dict[str, str] | None = None,
    owns: Callable[[str], bool] = owns_every_route,
    images: ImageSource | None = None,
    message_seqs: Sequence[int | None] | None = None,
    seqs: Seqs = NO_SEQS,
) -> Body:
    """The exact body of one request.

    Args:
        options: what the adapter's ``stream`` is called with: provider, model, messages, system, tools,
            sessionId, reasoningEffort, maxTokens, temperature, stop; messages of any log format.
        resolved_model: ``resolve_model`` or a captured one.
        version: of pi-ai.
        profile: of the route; cacheRetention, reasoning and thinkingBudgets matter here.
        key: the effective key or any text of its kind; only whether it is an Anthropic OAuth token matters.
        env: environment of the process; PI_CACHE_RETENTION and AZURE_OPENAI_DEPLOYMENT_NAME_MAP matter.
        owns: whether the same adapter owns a provider route. The runtime takes replay state of other routes
            away before it calls the adapter, so messages as the adapter gets them need no such test; logged
            ones do.
        message_seqs: the log event of each message.
        seqs: the log events of system prompt and tools.

    Raises:
        PiRefusedError: no request leaves, or this protocol or version is not rebuilt here.
    """
    settings = build_settings(options, resolved_model, version, profile or {}, key or "", env or {})
    encoder = protocol_encoder(resolved_model)
    messages, system = options["messages"], options.get("system")
    if any(has_image(message["content"]) for message in messages) and "image" not in resolved_model["input"]:
        raise no_request(f'model "{resolved_model["id"]}" does not take images')
    conversation = Conversation(settings.rules, owns, images, has_system=system is not None)
    conversation.set_tools(options.get("tools") or ())
    for message, seq in zip(messages, message_seqs or [None] * len(messages), strict=True):
        conversation.add(message, seq)
    context = conversation.context(system)
    check_sendable(settings)
    return encoder.encode(context, settings, seqs)


def protocol_encoder(model: dict[str, Json]) -> ProtocolEncoder:
    """A new encoder for the protocol of a resolved model.

    Raises:
        PiRefusedError: the protocol is not rebuilt here.
    """
    if model["api"] not in PROTOCOLS:
        raise not_encoded(f'protocol "{model["api"]}" is not rebuilt here')
    return PROTOCOLS[model["api"]].encoder()


def build_settings(
    options: dict[str, Json],
    model: dict[str, Json],
    version: str,
    profile: dict[str, Json],
    key: str,
    env: dict[str, str],
) -> Settings:
    """The settings of a request from its options and its route.

    Raises:
        PiRefusedError: the adapter refuses one of them, or the version is unknown.
    """
    if options.get("stop") is not None:
        raise no_request("the adapter does not support stop sequences")
    return Settings(
        model=model,
        rules=rules_of(version),
        retention=retention_of(profile, env),
        effort=effort_of(model, options.get("reasoningEffort"), profile),
        max_tokens=options.get("maxTokens"),
        temperature=options.get("temperature"),
        session_id=options.get("sessionId"),
        thinking_budgets=profile.get("thinkingBudgets") or {},
        is_oauth="sk-ant-oat" in key and model["provider"] != "github-copilot",
        is_chatgpt=is_chatgpt(model, key),
        reuses_provider=not profile.get("api"),
        env=env,
    )
