"""What the LiteLLM proxy adds to the client's body before it is logged, and what it cuts out of it.

``proxy_server_request.body`` is the client's body, parsed, with members of its own. ``complete_input_dict`` and
``standard_logging_object`` are other requests and are not read. Source: spec captures 3c, LiteLLM 1.108.7.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.text import ecma

_OWN = ("litellm_metadata", "litellm_call_id", "litellm_logging_obj", "proxy_server_request", "secret_fields")
_METADATA_SIGNS = ("user_api_key", "user_api_key_hash", "litellm_api_version", "requester_metadata", "endpoint")
_CUT = b"litellm_truncated"


def without_added(body: Json) -> tuple[Json, tuple[str, ...]]:
    """The client's body, and the names of the members that the proxy added; any other body as it is.

    The proxy's ``metadata`` mixes the client's with its own; the harness sends none, so it is left out as a whole.
    """
    if not isinstance(body, dict):
        return body, ()
    metadata = body.get("metadata")
    is_own = isinstance(metadata, dict) and any(sign in metadata for sign in _METADATA_SIGNS)
    added = tuple(name for name in (*_OWN, *(("metadata",) if is_own else ())) if name in body)
    return ({name: value for name, value in body.items() if name not in added} if added else body), added


def call_id_of(record: Json, body: Json) -> str | None:
    """The id that one call has in all records that its callbacks write."""
    for value in (body, record):
        if isinstance(value, dict) and isinstance(value.get("litellm_call_id"), str):
            return str(value["litellm_call_id"])
    return None


def is_cut(body: Json) -> bool:
    """Whether long texts were replaced by a note of their length."""
    return _CUT in ecma.stringify(body)
