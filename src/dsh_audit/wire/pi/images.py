"""Image blocks → the parts that are sent for them.

Source: wire-pi-ai 7, images 5.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.wire.pi.neutral import Image, Part, Text
from dsh_audit.wire.pi.refusal import no_request, not_encoded


@dataclass(frozen=True, slots=True)
class ImageVersion:
    """The request version of an attachment.

    Args:
        data: the bytes that are sent.
        width, height: of this version, in pixels.
    """

    data: bytes
    media_type: str
    width: int
    height: int


def short_handle(attachment: dict[str, Json], version: ImageVersion) -> str:
    """The text before an image in harness 0.1.1."""
    return f"Image {attachment['attachmentId']}; request image {version.width}x{version.height}px."


def no_handle(_attachment: dict[str, Json], _version: ImageVersion) -> str | None:
    """For harness 0.1.0-rc.8, where an image goes alone."""
    return None


@dataclass(frozen=True, slots=True)
class ImageSource:
    """What the adapter's attachment service gives.

    Args:
        read: an image block's ``attachment`` → what is sent for it.
        handle: (attachment, version) → the text before the image, None for none.
        offloaded: attachment → the text in place of an image that is marked as offloaded.
    """

    read: Callable[[dict[str, Json]], ImageVersion]
    handle: Callable[[dict[str, Json], ImageVersion], str | None] = short_handle
    offloaded: Callable[[dict[str, Json]], str] | None = None


def has_image(blocks: list[dict[str, Json]]) -> bool:
    """Whether an image is among the blocks or inside one of their nested results."""
    return any(
        block["type"] == "image" or (block["type"] == "tool-result" and has_image(block["content"])) for block in blocks
    )


def image_parts(block: dict[str, Json], images: ImageSource | None) -> list[Part]:
    """The parts of one image block.

    Raises:
        PiRefusedError: there is nothing to read the image from.
    """
    attachment = block["attachment"]
    if images is None:
        raise no_request("the request holds an image and no attachment store is given")
    if block.get("offloaded") is True:
        if images.offloaded is None:
            raise not_encoded("an image is marked as offloaded and the text in its place is not given")
        return [Text(images.offloaded(attachment))]
    version = images.read(attachment)
    image = Image(version.media_type, base64.b64encode(version.data).decode("ascii"))
    handle = images.handle(attachment, version)
    return [image] if handle is None else [Text(handle), image]
