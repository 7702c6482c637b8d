"""One request given as a JSON object → its exact body, in any protocol.

The form is that of ``wire.pi.json_request``; an object with ``protocol`` ``deepseek-chat-completions`` or
``deepseek-messages`` is a request of the other adapter, with its ``options`` in the same shape.
"""

from __future__ import annotations

from typing import Any

from dsh_audit.attachments.store import AttachmentStore
from dsh_audit.attachments.versions import RECIPES, Policy
from dsh_audit.deployment import Deployment
from dsh_audit.dispatch.model import Dispatch, WireCount
from dsh_audit.errors import NotReconstructibleError, UsageError
from dsh_audit.events import SessionHeader
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.projection.state import SessionState
from dsh_audit.request.neutral import Request
from dsh_audit.wire.body import Body
from dsh_audit.wire.image_forms import PI_BYTES, PI_PIXELS
from dsh_audit.wire.images import ImageForm, ImagesUnknownError, ImageWriter
from dsh_audit.wire.pi.images import ImageVersion
from dsh_audit.wire.pi.json_request import (
    DEFAULT_VERSION,
    FindCatalogue,
    ReadImage,
    check_options,
    encode_pi_json_request,
    no_catalogue,
)
from dsh_audit.wire.protocols import PROTOCOLS
from dsh_audit.wire.session import SessionEncoder

_SETTINGS = ("maxTokens", "reasoningEffort", "temperature", "stop")


def encode_json_request(
    given: Any,
    deployment: Deployment,
    find_catalogue: FindCatalogue = no_catalogue,
    *,
    pi_version: str = DEFAULT_VERSION,
    image: bytes | None = None,
) -> Body:
    """The exact body of a request given as a JSON object.

    Args:
        deployment: of routes of llm-deepseek.
        find_catalogue: provider key → its catalogue in pi-ai.
        pi_version: where the object names none.
        image: bytes of each image that the object does not give.

    Raises:
        NotReconstructibleError: no request leaves, or it cannot be rebuilt.
        UsageError: the object has another shape.
        DeploymentError: the profile does not describe the model.
    """
    protocol = given.get("protocol") if isinstance(given, dict) else None
    try:
        if protocol is None:
            stored = None if image is not None or deployment.attachments is None else _reader(deployment.attachments)
            return encode_pi_json_request(
                given, find_catalogue, default_version=pi_version, default_image=image, read_stored=stored
            )
        return _encode(protocol, given.get("options"), deployment)
    except ImagesUnknownError as error:
        raise NotReconstructibleError(str(error)) from None
    except RecursionError:
        raise UsageError("the request is nested too deeply") from None


def _reader(store: AttachmentStore) -> ReadImage:
    """Reads what a route of llm-pi-ai sends for an image, by the sizes that hold where nothing is configured."""
    policies = [Policy(recipe, PI_PIXELS, PI_BYTES) for recipe in RECIPES]
    writer = ImageWriter(ImageForm("short", "inline"), store, policies, str, None)

    def read(attachment: dict[str, Any]) -> ImageVersion:
        version = writer.version(writer.reference({"attachment": attachment}))
        data = b"".join(writer.sound_file(version).pieces())
        return ImageVersion(data, version.media_type, version.width, version.height)

    return read


def _encode(protocol: Any, options: Any, deployment: Deployment) -> Body:
    """The body of a request of llm-deepseek."""
    formats = {name: record.single_format for name, record in PROTOCOLS.items() if record.single_format is not None}
    if not isinstance(protocol, str) or protocol not in formats:
        hint = "routes of llm-pi-ai name their protocol in the resolved model or the profile"
        raise UsageError(f"protocol {protocol!r:.80} is none of {', '.join(formats)}", hint=hint)
    if not isinstance(options, dict) or not isinstance(options.get("messages"), list):
        raise UsageError("the request has no options with messages")
    check_options(options)
    encoded = SessionEncoder(deployment).encode(_request(options, formats[protocol]), protocol)
    if encoded.body is None:
        raise NotReconstructibleError("; ".join(encoded.why) or "the request cannot be rebuilt")
    return encoded.body


def _request(options: dict[str, Any], version: int) -> Request:
    """The options as a request of a session without a log."""
    header = SessionHeader(version, str(options.get("sessionId", "")), 0, None, None, None, None, None, 0, None, {})
    return Request(
        dispatch=Dispatch("step", None, None, None, -1, 0, None, WireCount(0, 1, "given"), "none"),
        session_header=header,
        purpose="step",
        provider=str(options["provider"]),
        model=str(options["model"]),
        config={name: options[name] for name in _SETTINGS if name in options},
        system=options.get("system"),
        system_seq=None,
        tools=options.get("tools"),
        tools_seq=None,
        snapshot=SessionState(version).snapshot(),
        messages=tuple(DerivedMessage(seq, message) for seq, message in enumerate(options["messages"])),
    )
