"""One request given as a JSON object: options plus route, the form in which single requests are exchanged.

Members: ``options`` (what the adapter's ``stream`` is called with); ``resolvedModel``, or the route's ``profile`` with
its key in ``profileKey`` or ``route`` (and a catalogue where the profile leans on one); ``key`` or ``credential``
(``api-key``, ``oauth``, ``chatgpt``); ``env``; ``piVersion``; ``routes`` (those the same adapter owns, when the
messages are as logged); ``images`` (attachment id → base64 ``data``, ``mediaType``, ``width``, ``height`` and
``handle``, the text before it, null for none). Source: spec wire-pi-ai 14.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from dsh_audit.errors import UsageError
from dsh_audit.events import Json, ShapeError
from dsh_audit.profile_shapes import MODEL, NUMBER, OBJECT, PROFILE, TEXT, Check, find_odd
from dsh_audit.projection.shapes import check_message, check_tools
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi import encode_pi_request
from dsh_audit.wire.pi.context import owns_every_route
from dsh_audit.wire.pi.images import ImageSource, ImageVersion, short_handle
from dsh_audit.wire.pi.profile import Catalogue, resolve_model
from dsh_audit.wire.pi.settings import CREDENTIALS

DEFAULT_VERSION = "0.82.1"
_HINT = 'expected {"options": …, "resolvedModel" or "profile": …}'
_TEXTS = (lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value)), "a list of strings"
_LIST = (lambda value: isinstance(value, list)), "a list"
_GIVEN: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("profile", "resolvedModel", "images"), OBJECT),
    **dict.fromkeys(("profileKey", "route", "piVersion", "credential", "key"), TEXT),
    "env": OBJECT,
    "routes": _TEXTS,
}
_OPTIONS: dict[str, tuple[Check, str]] = {
    **dict.fromkeys(("provider", "model", "system", "sessionId", "reasoningEffort"), TEXT),
    **dict.fromkeys(("maxTokens", "temperature"), NUMBER),
    "messages": (
        lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
        "a list of messages",
    ),
    "tools": _LIST,
    "stop": _LIST,
}
ReadImage = Callable[[dict[str, Json]], ImageVersion]
FindCatalogue = Callable[[str], Catalogue | None]


def no_catalogue(_provider: str) -> Catalogue | None:
    """When no package was named."""
    return None


def encode_pi_json_request(
    given: Any,
    find_catalogue: FindCatalogue = no_catalogue,
    *,
    default_version: str = DEFAULT_VERSION,
    default_image: bytes | None = None,
    read_stored: ReadImage | None = None,
) -> Body:
    """The exact body of a request given as a JSON object.

    Args:
        find_catalogue: provider key → its catalogue.
        default_version: pi-ai version where the object names none.
        default_image: bytes of each image that the object does not give, in its own type and size.
        read_stored: an image block's ``attachment`` → what is sent for it; asked for images that the object lacks.

    Raises:
        PiRefusedError: no request leaves, or it is not rebuilt here.
        UsageError: the object has another shape.
        DeploymentError: the profile does not describe the model.
    """
    if not isinstance(given, dict) or not isinstance(given.get("options"), dict):
        raise UsageError("the request has no options", hint=_HINT)
    check_members(given, _GIVEN, "the request")
    options: dict[str, Json] = given["options"]
    check_options(options)
    profile, model, key, routes = (given.get(name) for name in ("profile", "resolvedModel", "key", "routes"))
    profile = profile or {}
    check_members(profile, PROFILE, "profile")
    if model is None:
        route = given.get("profileKey") or given.get("route") or options["provider"]
        model = resolve_model(route, options["model"], profile, find_catalogue(route))
    check_members(model, MODEL, "the resolved model", *("id", "api", "provider", "baseUrl", "input", "reasoning"))
    return encode_pi_request(
        options,
        model,
        version=given.get("piVersion") or default_version,
        profile=profile,
        key=CREDENTIALS.get(given.get("credential") or "", "") if key is None else key,
        env=given.get("env") or {},
        owns=owns_every_route if routes is None else set(routes).__contains__,
        images=_images(given.get("images"), default_image, read_stored),
    )


def check_options(options: dict[str, Json]) -> None:
    """Refuse what no caller of an adapter can pass.

    Raises:
        UsageError: see there.
    """
    check_members(options, _OPTIONS, "options", "provider", "model", "messages")
    try:
        for place, message in enumerate(options["messages"]):
            check_message(message, place)
            _check_images(message["content"])
        check_tools(options.get("tools") or [])
    except ShapeError as error:
        raise UsageError(f"the request has another shape than expected: {error.reason}") from None


def check_members(value: dict[str, Json], shapes: Mapping[str, tuple[Check, str]], place: str, *required: str) -> None:
    """Refuse an object with a member of another type."""
    odd = find_odd(value, shapes, *required)
    if odd is not None:
        raise UsageError(f"the request has another shape than expected: {place}: {odd}", hint=_HINT)


def _check_images(blocks: list[Json]) -> None:
    for block in blocks:
        if block["type"] == "tool-result":
            _check_images(block["content"])
        elif block["type"] == "image":
            attachment = block.get("attachment")
            if not isinstance(attachment, dict) or not isinstance(attachment.get("attachmentId"), str):
                raise ShapeError("an image names no attachment")


def _images(entries: Any, default_image: bytes | None, read_stored: ReadImage | None) -> ImageSource | None:
    given = entries if isinstance(entries, dict) else {}
    if not given and default_image is None and read_stored is None:
        return None

    def entry(attachment: dict[str, Json]) -> dict[str, Json]:
        found = given.get(attachment["attachmentId"])
        if not isinstance(found, dict) and default_image is None:
            raise UsageError(f"images has no {attachment['attachmentId']}")
        merged = {**attachment, **(found or {})}
        if any(not isinstance(merged.get(name), int) for name in ("width", "height")):
            raise UsageError(f"image {attachment['attachmentId']}: width and height are missing")
        if not isinstance(merged.get("mediaType"), str):
            raise UsageError(f"image {attachment['attachmentId']}: mediaType is missing")
        return merged

    def read(attachment: dict[str, Json]) -> ImageVersion:
        if read_stored is not None and attachment["attachmentId"] not in given:
            return read_stored(attachment)
        found = entry(attachment)
        data = _decoded(found["data"], attachment) if "data" in found else default_image
        if data is None:
            raise UsageError(f"image {attachment['attachmentId']}: data is missing")
        return ImageVersion(data, found["mediaType"], found["width"], found["height"])

    def handle(attachment: dict[str, Json], version: ImageVersion) -> str | None:
        found = given.get(attachment["attachmentId"]) or {}
        return found["handle"] if "handle" in found else short_handle(attachment, version)

    return ImageSource(read, handle, lambda attachment: str(entry(attachment)["offloaded"]))


def _decoded(text: Any, attachment: dict[str, Json]) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise UsageError(f"image {attachment['attachmentId']}: data is not base64") from error
