"""The texts beside and in place of images and files, by release; long fixed pieces are known by digest only.

Source: spec images 5 to 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from dsh_audit.attachments.references import Reference
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

Style = Literal["bare", "short", "named"]
"""Of 0.1.0-rc.8, of 0.1.1, and of 0.1.2 and later."""

HANDLE_PATH, HANDLE_EDITING, HANDLE_PATHLESS = "image-handle-path", "image-handle-editing", "image-handle-without-path"
OFFLOADED, OFFLOAD_START, OFFLOAD_PATHLESS = (
    "image-offloaded",
    "image-offload-start",
    "image-offload-without-path",
)
TEXT_ONLY = "image-text-only"
FILE_PATH, FILE_READING, FILE_PATHLESS = "file-handle-path", "file-handle-reading", "file-handle-without-path"

_EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
_TAIL_UNITS = 61
_STRING = r'"(?:[^"\\]|\\.)*"'
_NAMED = re.compile(
    rf"Image (?:{_STRING} \()?(sha256:[0-9a-f]{{64}})\)?; request preview \d+x\d+"
    rf"(?:(.{{63}})({_STRING}) \(\d+x\d+px, [a-z/]+(.{{90}})\.[a-z]+ before editing\.|px\.(.{{86}}))",
    re.DOTALL,
)
_SHORT = re.compile(r"Image (sha256:[0-9a-f]{64}); request image \d+x\d+px\.")
_START = re.compile(rf"(.{{44}})(?:{_STRING} \()?sha256:[0-9a-f]{{64}}", re.DOTALL)
_PATHLESS = re.compile(r"sha256:[0-9a-f]{64}\)?(.{90})", re.DOTALL)
_TEXT_ONLY = re.compile(r"(.{71})[0-9a-f]{8}\]", re.DOTALL)
_FILE = re.compile(
    rf"\[File {_STRING} \(\d+ bytes, sha256:[0-9a-f]{{8}}(?:(.{{36}})({_STRING})(.{{260}})|(.{{166}}))", re.DOTALL
)

TextOf = Callable[[str], str]
"""Name of a fixed text → the text; raises where it is not known."""


@dataclass(frozen=True, slots=True)
class Handle:
    """What a text before an image shows of its harness.

    Args:
        home: ``$DSH_HOME`` as in its path; None where it has none.
    """

    style: Style
    attachment_id: str
    home: str | None = None


def image_handle(
    style: Style, reference: Reference, size: tuple[int, int], home: str | None, text_of: TextOf
) -> str | None:
    """The text before an image; None where the release has none."""
    if style == "bare":
        return None
    sent = f"{size[0]}x{size[1]}"
    if style == "short":
        return f"Image {reference.id}; request image {sent}px."
    start = f"Image {_subject(reference)}; request preview {sent}"
    if home is None:
        return f"{start}px.{text_of(HANDLE_PATHLESS)}"
    return f"{start}{text_of(HANDLE_PATH)}{_place(reference, home, text_of)}"


def offloaded_image(style: Style, reference: Reference, home: str | None, text_of: TextOf) -> str:
    """The text in place of an image that is not sent any more."""
    if style != "named":
        return text_of(OFFLOADED)
    start = text_of(OFFLOAD_START) + _subject(reference)
    if home is None:
        return start + text_of(OFFLOAD_PATHLESS)
    lead = text_of(HANDLE_PATH)[-_TAIL_UNITS:]
    return f"{start}{lead}{_place(reference, home, text_of)}]"


def unseen_image(reference: Reference, text_of: TextOf) -> str:
    """The text in place of an image on a route without image input."""
    return f"{text_of(TEXT_ONLY)}{reference.hex[:8]}]"


def file_handle(name: str, size_bytes: int, digest: str, home: str | None, text_of: TextOf) -> str:
    """The text in place of a file."""
    start = f"[File {_quoted(name)} ({size_bytes} bytes, sha256:{digest[:8]}"
    if home is None:
        return start + text_of(FILE_PATHLESS)
    path = f"{home}/attachments/v1/files/{digest[:2]}/{digest}/{name}"
    return f"{start}{text_of(FILE_PATH)}{_quoted(path)}{text_of(FILE_READING)}"


def parse_handle(text: str) -> Iterator[Handle]:
    """The handles in a text, in order."""
    for found in _SHORT.finditer(text):
        yield Handle("short", found[1])
    for found in _NAMED.finditer(text):
        yield Handle("named", found[1], None if found[3] is None else _home_of(found[3], found[1]))


def fixed_texts(text: str) -> Iterator[str]:
    """Pieces of a text that may be fixed texts; their digests decide."""
    for pattern in (_NAMED, _START, _PATHLESS, _TEXT_ONLY, _FILE):
        for found in pattern.finditer(text):
            yield from (piece for piece in found.groups() if piece is not None)
    yield text


def _place(reference: Reference, home: str, text_of: TextOf) -> str:
    path = _quoted(f"{home}/attachments/v1/objects/{reference.hex[:2]}/{reference.hex}")
    stored = f"({reference.width}x{reference.height}px, {reference.media_type}"
    return f"{path} {stored}{text_of(HANDLE_EDITING)}{_EXTENSIONS.get(reference.media_type, '')} before editing."


def _subject(reference: Reference) -> str:
    return reference.id if reference.name is None else f"{_quoted(reference.name)} ({reference.id})"


def _quoted(text: str) -> str:
    return ecma.stringify_text(text)


def _home_of(quoted: str, attachment_id: str) -> str | None:
    digest = attachment_id[7:]
    end = f"/attachments/v1/objects/{digest[:2]}/{digest}"
    path = ecma.parse(quoted)
    return path.removesuffix(end) if isinstance(path, str) and path.endswith(end) else None
