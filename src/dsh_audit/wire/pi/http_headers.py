"""Which HTTP headers of a request are predictable, and the session id that stops a request.

Source: wire-pi-ai 9.
"""

from __future__ import annotations

from dsh_audit.wire.pi.compat import completions_compat, vendors_of
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.settings import Settings, compat_flag

HttpHeaders = list[tuple[str, str]]


def session_headers(settings: Settings) -> HttpHeaders:
    """The headers that carry the session id."""
    session_id = settings.session_id
    if not session_id:
        return []
    names = [] if settings.retention == "none" else _affinity_names(settings)
    is_opencode = settings.model["provider"] in ("opencode", "opencode-go") and settings.reuses_provider
    if settings.rules.has_transcripts and is_opencode:
        names.append("x-opencode-session")
    return [(name, session_id) for name in names]


def _affinity_names(settings: Settings) -> list[str]:
    model = settings.model
    match model["api"]:
        case "openai-responses":
            compat = model.get("compat") or {}
            names = _openai_names(compat.get("sessionAffinityFormat") or _format(settings))
        case "openai-completions":
            compat = completions_compat(model, settings.rules)
            names = []
            if compat["sendSessionAffinityHeaders"]:
                names = _openai_names(compat["sessionAffinityFormat"])
                names += [] if names == ["x-session-id"] else ["x-session-affinity"]
        case "anthropic-messages":
            names = _anthropic_names(settings)
        case _:
            names = []
    return names


def _anthropic_names(settings: Settings) -> list[str]:
    routed = settings.rules.has_transcripts and _format(settings) == "openrouter"
    sends = compat_flag(settings.compat, "sendSessionAffinityHeaders", routed)
    if not sends or settings.is_oauth or settings.model["provider"] == "github-copilot":
        return []
    name = settings.compat.get("sessionAffinityFormat") or ("openrouter" if routed else "")
    is_router = settings.rules.has_transcripts and name == "openrouter"
    return ["x-session-id"] if is_router else ["x-session-affinity"]


def _format(settings: Settings) -> str:
    vendors = vendors_of(settings.model["provider"], settings.model["baseUrl"])
    return "openrouter" if "openrouter" in vendors else "openai"


def _openai_names(affinity: str) -> list[str]:
    if affinity == "openrouter":
        return ["x-session-id"]
    return ["session_id", "x-client-request-id"] if affinity == "openai" else ["x-client-request-id"]


def check_sendable(settings: Settings) -> None:
    """Refuse a session id that cannot be a header value.

    Raises:
        PiRefusedError: header construction throws, so nothing is sent.
    """
    for name, value in session_headers(settings):
        if any(unit > "\u00ff" for unit in value):
            raise no_request(f"the session id cannot be written into the HTTP header {name}")
