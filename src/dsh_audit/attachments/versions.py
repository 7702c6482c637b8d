"""Request versions: what is sent in place of a stored image, by release. Source: spec images 3, 4."""

from __future__ import annotations

import hashlib
import math
from typing import Literal

from dsh_audit.attachments.references import Reference
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

Recipe = Literal["request-image-v4", "request-image-v5", "request-image-v6"]

RECIPES: tuple[Recipe, ...] = ("request-image-v4", "request-image-v5", "request-image-v6")
"""Of 0.1.1, of 0.1.2 to 0.1.5, of 0.2.1."""

LOW_PIXELS = 512 * 512
DEFAULT_PIXELS = 640_000
_MIB = 1 << 20
_ORDER = ["alpha:webp", "opaque:jpeg"]
_V4 = {
    "png": {"compressionLevel": 9, "palette": "opaque-only"},
    "webpQualities": [85, 80],
    "jpegQualities": [85, 80],
    "order": ["low-colour:png-webp", *_ORDER],
    "colourspace": "srgb",
}
_LATER = {
    "webpQualities": [85, 75, 60],
    "webpEffort": 0,
    "jpegQualities": [85, 75, 60],
    "order": _ORDER,
    "colourspace": "srgb",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """How a route sizes images.

    Args:
        max_pixels: the pixel budget; None for the token grid of ``request-image-v6``.
        max_bytes: of one version.
    """

    recipe: Recipe
    max_pixels: int | None
    max_bytes: int

    def size(self, reference: Reference) -> tuple[int, int]:
        """Target width and height."""
        if self.max_pixels is not None:
            return fit_pixels(reference.width, reference.height, self.max_pixels)
        return fit_tokens(reference.width, reference.height)

    def variant_id(self, reference: Reference) -> str:
        """``sha256:`` and the digest of the recipe."""
        recipe: dict[str, object] = {"transformVersion": self.recipe, "attachmentId": reference.id}
        if self.recipe == "request-image-v6":
            recipe["targetWidth"], recipe["targetHeight"] = self.size(reference)
        else:
            recipe["routePixelBudget"] = self.max_pixels
        recipe["encodedByteBudget"] = self.max_bytes
        recipe["encoding"] = _V4 if self.recipe == "request-image-v4" else _LATER
        return "sha256:" + hashlib.sha256(ecma.stringify(recipe)).hexdigest()

    def keeps(self, reference: Reference) -> bool:
        """Whether the object itself is sent."""
        width, height = self.size(reference)
        return width >= reference.width and height >= reference.height and reference.size_bytes <= self.max_bytes


def default_policy(recipe: Recipe) -> Policy:
    """That of a route for which nothing is configured."""
    return Policy(recipe, None, 2 * _MIB) if recipe == "request-image-v6" else Policy(recipe, DEFAULT_PIXELS, _MIB)


def resized(policy: Policy, reference: Reference) -> tuple[int, int]:
    """Size of a re-encoded version whose file is lost; a formula, not a reading."""
    width, height = policy.size(reference)
    if policy.recipe == "request-image-v6":
        return width, height
    across, down = reference.width / width, reference.height / height
    if across > down:
        return width, max(1, _round(reference.height / across))
    return max(1, _round(reference.width / down)), height


def fit_pixels(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """The largest size with at most so many pixels."""
    scale = min(1.0, math.sqrt(max_pixels / (width * height)))
    if scale == 1:
        return width, height
    is_wide = width >= height
    long, short = (width, height) if is_wide else (height, width)
    edge = math.floor(long * scale)
    other = max(1, _round(edge * short / long))
    while edge * other > max_pixels and edge > 1:
        edge -= 1
        other = max(1, _round(edge * short / long))
    return (edge, other) if is_wide else (other, edge)


def fit_tokens(width: int, height: int) -> tuple[int, int]:
    """The largest size within 1024 tokens of a grid of 42 px cells, its long edge at most 4096."""
    target = _with_edge(width, height, _token_edge(width, height))
    return target if max(target) <= 4096 else _with_edge(width, height, 4096)


def _token_edge(width: int, height: int) -> int:
    rows, columns = _cells(height), _cells(width)
    if rows * (columns + 1) + 2 <= 1024:
        return max(width, height)
    ratio = height / width
    across = math.sqrt(1022 / ratio + 0.25) - 0.5
    down = across * ratio
    if across < 1:
        grid = (42, 511 * 42)
    elif down < 1:
        grid = (1021 * 42, 42)
    else:
        scale = min(math.trunc(across) * 42 / width, math.trunc(down) * 42 / height)
        grid = (math.trunc(width * scale / 14) * 14, math.trunc(height * scale / 14) * 14)
    return grid[0] if width >= height else grid[1]


def _cells(side: int) -> int:
    return math.ceil(math.floor(math.ceil(side / 14)) / 3)


def _with_edge(width: int, height: int, edge: int) -> tuple[int, int]:
    if edge >= max(width, height):
        return width, height
    if width >= height:
        return edge, max(1, _round(edge * height / width))
    return max(1, _round(edge * width / height)), edge


def _round(value: float) -> int:
    return math.floor(value + 0.5)
