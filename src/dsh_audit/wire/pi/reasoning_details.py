"""Reasoning details of chat completions: opaque values that travel in signatures.

Up to 0.82.1 each call's signature is one detail, whatever it parses to; from 0.84.4 the list is the signature
of a reasoning block, or the encrypted details of the calls, and malformed ones are dropped.
Source: wire-pi-ai 6.1; pi-ai 0.82.1 and 0.84.4 api/openai-completions.
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.text import ecma


def parsed_details(signature: str) -> list[Json]:
    """The parsed signature; nothing when it does not parse or is falsy in JavaScript."""
    detail = _parse(signature)
    return [detail] if isinstance(detail, dict | list) or detail else []


def signed_details(signature: str | None) -> list[Json] | None:
    """The details in the signature of a reasoning block; None unless it is a list of sound ones."""
    details = _parse(signature)
    if not isinstance(details, list) or not details or not all(map(_is_detail, details)):
        return None
    return details


def encrypted_details(signature: str | None) -> list[Json]:
    """The one encrypted detail in the signature of a call."""
    detail = _parse(signature)
    is_sound = (
        _is_detail(detail)
        and detail["type"] == "reasoning.encrypted"
        and isinstance(detail.get("id"), str)
        and bool(detail["id"])
        and bool(detail["data"])
    )
    return [detail] if is_sound else []


def _parse(signature: str | None) -> Json:
    try:
        return ecma.parse(signature) if signature else None
    except ecma.EcmaSyntaxError:
        return None


def _is_detail(detail: Json) -> bool:
    if not isinstance(detail, dict) or not _has_common_members(detail):
        return False
    match detail.get("type"):
        case "reasoning.summary":
            return isinstance(detail.get("summary"), str)
        case "reasoning.encrypted":
            return isinstance(detail.get("data"), str)
        case "reasoning.text":
            signature = detail.get("signature")
            return isinstance(detail.get("text"), str) and (signature is None or isinstance(signature, str))
        case _:
            return False


def _has_common_members(detail: dict[str, Json]) -> bool:
    identifier, index = detail.get("id"), detail.get("index", 0)
    is_number = isinstance(index, int | float) and not isinstance(index, bool)
    return (
        (identifier is None or isinstance(identifier, str)) and isinstance(detail.get("format", ""), str) and is_number
    )
