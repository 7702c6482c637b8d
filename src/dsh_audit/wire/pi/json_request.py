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
from collections.abc import Callable
from typing import Any

from dsh_audit.errors import UsageError
from dsh_audit.events import Json
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi import encode_pi_request
from dsh_audit.wire.pi.context import owns_every_route
from dsh_audit.wire.pi.images import ImageSource, ImageVersion, short_handle
from dsh_audit.wire.pi.profile import Catalogue, resolve_model
from dsh_audit.wire.pi.settings import CREDENTIALS

DEFAULT_VERSION = "0.82.1"
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
) -> Body:
    """The exact body of a request given as a JSON object.

    Args:
        find_catalogue: provider key → its catalogue.
        default_version: pi-ai version where the object names none.
        default_image: bytes of each image that the object does not give, in its own type and size.

    Raises:
        PiRefusedError: no request leaves, or it is not rebuilt here.
        UsageError: the object has another shape.
        DeploymentError: the profile does not describe the model.
    """
    options = _member(given, "options", dict, "the request")
    for name, kind in (("provider", str), ("model", str), ("messages", list)):
        _member(options, name, kind, "options")
    profile = given.get("profile") or {}
    key = given.get("key")
    routes = given.get("routes")
    try:
        model = given.get("resolvedModel")
        if model is None:
            route = given.get("profileKey") or given.get("route") or options["provider"]
            model = resolve_model(route, options["model"], profile, find_catalogue(route))
        return encode_pi_request(
            options,
            model,
            version=given.get("piVersion") or default_version,
            profile=profile,
            key=CREDENTIALS.get(given.get("credential", ""), "") if key is None else key,
            env=given.get("env") or {},
            owns=owns_every_route if routes is None else set(routes).__contains__,
            images=_images(given.get("images"), default_image),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(f"the request has another shape than expected ({type(error).__name__}: {error})") from error


def _member(value: Any, name: str, kind: type, place: str) -> Any:
    member = value.get(name) if isinstance(value, dict) else None
    if not isinstance(member, kind):
        raise UsageError(f"{place} has no {name}", hint='expected {"options": …, "resolvedModel" or "profile": …}')
    return member


def _images(entries: Any, default_image: bytes | None) -> ImageSource | None:
    given = entries if isinstance(entries, dict) else {}
    if not given and default_image is None:
        return None

    def entry(attachment: dict[str, Json]) -> dict[str, Json]:
        found = given.get(attachment["attachmentId"])
        if not isinstance(found, dict) and default_image is None:
            raise UsageError(f"images has no {attachment['attachmentId']}")
        return {**attachment, **(found or {})}

    def read(attachment: dict[str, Json]) -> ImageVersion:
        found = entry(attachment)
        data = _decoded(found["data"], attachment) if "data" in found else default_image
        if data is None:
            raise UsageError(f"image {attachment['attachmentId']}: data is missing")
        return ImageVersion(data, found["mediaType"], found["width"], found["height"])

    def handle(attachment: dict[str, Json], version: ImageVersion) -> str | None:
        found = entry(attachment)
        return found["handle"] if "handle" in found else short_handle(attachment, version)

    return ImageSource(read, handle, lambda attachment: str(entry(attachment)["offloaded"]))


def _decoded(text: Any, attachment: dict[str, Json]) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise UsageError(f"image {attachment['attachmentId']}: data is not base64") from error
