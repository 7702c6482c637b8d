"""Which HTTP headers of a request are predictable, and the session id that stops a request.

Source: wire-pi-ai 9.
"""

from __future__ import annotations

from dsh_audit.wire.pi.compat import completions_compat, vendors_of
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.settings import Settings

HttpHeaders = list[tuple[str, str]]


def session_headers(settings: Settings) -> HttpHeaders:
    """The headers that carry the session id."""
    session_id = settings.session_id
    if not session_id or settings.retention == "none":
        return []
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
            sends = (model.get("compat") or {}).get("sendSessionAffinityHeaders")
            plain = not settings.is_oauth and model["provider"] != "github-copilot"
            names = ["x-session-affinity"] if sends and plain else []
        case _:
            names = []
    return [(name, session_id) for name in names]


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
