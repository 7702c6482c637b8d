"""In which forms a request can have carried its images, and the writer for each.

Evidence, strongest first: the deployment file, captures, the ids in the file index (they prove recipe and policy), the
format of the log. Source: spec images 3, 6, 9, 10; wire-pi-ai 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from dsh_audit.attachments import handles
from dsh_audit.attachments.handles import Style
from dsh_audit.attachments.references import Reference, has_blocks
from dsh_audit.attachments.versions import LOW_PIXELS, Policy, Recipe, default_policy
from dsh_audit.deployment import Deployment, Used
from dsh_audit.projection.messages import DerivedMessage, derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.wire.images import (
    UNKNOWN_HOME,
    Carrier,
    ImageForm,
    ImagesUnknownError,
    ImageWriter,
    Occurrence,
    OffloadLimits,
    count_offloaded,
    occurrences_of,
)

_MIB = 1 << 20
_MAX_OFFLOADED = 64
_RECIPES: dict[Style, tuple[Recipe, ...]] = {
    "bare": (),
    "short": ("request-image-v4",),
    "named": ("request-image-v5", "request-image-v6"),
}
PI_PIXELS, PI_BYTES, PI_REQUEST_BYTES = 4_194_304, _MIB, 20 * _MIB


@dataclass(frozen=True, slots=True)
class RequestImages:
    """What a request holds of images and files.

    Args:
        occurrences: its images in order.
        has_files: it holds a file block.
    """

    occurrences: tuple[Occurrence, ...] = ()
    has_files: bool = False

    def __bool__(self) -> bool:
        return bool(self.occurrences) or self.has_files


_NONE = RequestImages()


class ImageScan:
    """Finds the images of successive requests; what a longer surface adds is looked at only."""

    def __init__(self) -> None:
        self._surface: Surface | None = None
        self._found = _NONE

    def of(self, request: Request) -> RequestImages:
        """The images of a request."""
        if request.messages is not None:
            return _scan(request.messages)
        surface, known = request.snapshot.surface, self._surface
        if known is not None and surface.extends(known):
            fresh = _scan(derive_nodes(surface[len(known) :], surface.marks)) if len(surface) > len(known) else _NONE
            if fresh:
                joined = (*self._found.occurrences, *fresh.occurrences)
                self._found = RequestImages(joined, self._found.has_files or fresh.has_files)
        else:
            self._found = _scan(derive_nodes(surface, surface.marks))
        self._surface = surface
        return self._found


def _scan(messages: Sequence[DerivedMessage]) -> RequestImages:
    pairs = [(item.seq, item.message) for item in messages if isinstance(item.message.get("content"), list)]
    has_files = any(has_blocks(message["content"], "file") for _, message in pairs)
    occurrences = occurrences_of(pairs)
    return RequestImages(tuple(occurrences), has_files) if occurrences or has_files else _NONE


def image_forms(request: Request, images: RequestImages, deployment: Deployment, *, is_pi: bool) -> list[ImageForm]:
    """The forms that the evidence leaves, likeliest first; those with ids from a capture come last but for notes."""
    styles = _styles(request, images, deployment, is_pi=is_pi)
    homes = _homes(deployment)
    carriers = _carriers(request, deployment, is_pi=is_pi)
    periods = deployment.shown.periods if deployment.shown is not None else ()
    forms: list[ImageForm] = []
    for style, carrier in product(styles, carriers):
        if style == "bare" and carrier == "file":
            continue
        for home in homes if style == "named" or images.has_files else (None,):
            forms.append(ImageForm(style, carrier, home))
            if carrier == "file":
                forms += [ImageForm(style, carrier, home, ids) for ids in _shown_ids(images, periods)]
    return [*forms, *_offloading(forms, request, images, deployment)]


def _offloading(
    forms: Sequence[ImageForm], request: Request, images: RequestImages, deployment: Deployment
) -> Iterator[ImageForm]:
    """The forms with fewer images, where captures show that some were left out and the limits may be others."""
    texts = {"named": handles.OFFLOAD_START, "short": handles.OFFLOADED, "bare": handles.OFFLOADED}
    most = len(images.occurrences) if request.format_version < 4 and deployment.shown is not None else 0
    for form in forms:
        if form.carrier != "text" and texts[form.style] in deployment.constants:
            yield from (replace(form, offloaded=count) for count in range(1, min(most, _MAX_OFFLOADED) + 1))


def _shown_ids(images: RequestImages, periods: Sequence[Any]) -> Iterator[Any]:
    """The captured ids of the images of a request, once each."""
    wanted = {item.reference.id for item in images.occurrences if item.reference is not None}
    seen = set()
    for period in periods:
        ids = tuple(pair for pair in period if pair[0] in wanted)
        if ids and ids not in seen:
            seen.add(ids)
            yield ids


def _homes(deployment: Deployment) -> tuple[str | None, ...]:
    given = deployment.look_up("harness", "home")
    if isinstance(given, str):
        return (given,)
    return (deployment.shown.homes if deployment.shown is not None else ()) or (UNKNOWN_HOME,)


def _carriers(request: Request, deployment: Deployment, *, is_pi: bool) -> tuple[Carrier, ...]:
    modalities = deployment.model(request.provider, request.model, "input").value
    if isinstance(modalities, list) and "image" not in modalities:
        return ("text",)
    if is_pi:  # the profile says whether the model takes images
        return ("inline", "text")
    is_seen = deployment.shown is None or deployment.shown.has_inline
    usual: tuple[Carrier, ...] = ("file", "inline") if is_seen else ("file",)
    is_known = not isinstance(modalities, list) and handles.TEXT_ONLY in deployment.constants
    return (*usual, "text") if is_known else usual


def _styles(request: Request, images: RequestImages, deployment: Deployment, *, is_pi: bool) -> tuple[Style, ...]:
    if request.format_version >= 2:
        return ("named", "short") if is_pi else ("named",)
    release = deployment.harness_version(request.format_version)
    if release.source == "deployment":
        return (_style_of(str(release.value)),)
    shown = deployment.shown
    if shown is not None and shown.styles:
        return tuple(style for style in ("short", "named") if style in shown.styles)
    proven = _proven_styles(images, deployment)
    return proven or ("short", "named", "bare")


def _style_of(release: str) -> Style:
    if release.startswith("0.1.0"):
        return "bare"
    return "short" if release.startswith("0.1.1") else "named"


def _proven_styles(images: RequestImages, deployment: Deployment) -> tuple[Style, ...]:
    """Those whose recipe gives an id of the file index or the name of a cached version."""
    store = deployment.attachments
    known = {record.variant_id for record in store.file_records} if store is not None else set()
    styles: tuple[Style, ...] = ("short", "named")
    references = {item.reference for item in images.occurrences if item.reference is not None}
    return tuple(
        style
        for style in styles
        if store is not None
        and any(
            (ident := policy.variant_id(reference)) in known or store.variant(ident) is not None
            for reference in references
            for policy in _default_policies(style)
        )
    )


def _default_policies(style: Style) -> list[Policy]:
    found = []
    for recipe in _RECIPES[style]:
        usual = default_policy(recipe)
        found += [usual, Policy(recipe, LOW_PIXELS, usual.max_bytes)]
    return found


def _policies(request: Request, deployment: Deployment, style: Style, *, is_pi: bool) -> list[Policy]:
    """The policies that may size the images of a route, likeliest first."""
    recipes = list(_RECIPES[style] or ("request-image-v4",))
    if request.format_version >= 4:
        recipes.reverse()
    pixels, size = (
        deployment.model(request.provider, request.model, key).value for key in ("image_pixels", "image_bytes")
    )
    if is_pi:
        profile = deployment.look_up("providers", request.provider, "profile") or {}
        pixels = pixels or profile.get("requestImagePixelBudget", PI_PIXELS)
        size = size or profile.get("requestImageMaxBytes", PI_BYTES)
    found: list[Policy] = []
    for recipe in recipes:
        usual = default_policy(recipe)
        max_bytes = size if isinstance(size, int) else usual.max_bytes
        found.append(Policy(recipe, pixels if isinstance(pixels, int) else usual.max_pixels, max_bytes))
        if not isinstance(pixels, int):
            found.append(Policy(recipe, LOW_PIXELS, max_bytes))
    return found


def make_writer(
    request: Request, images: RequestImages, deployment: Deployment, form: ImageForm, *, is_pi: bool
) -> ImageWriter:
    """The writer of a request's images in one form, with how many of the oldest ones are left out."""

    def text_of(name: str) -> str:
        text = deployment.constants.get(name)
        if text is None:
            raise ImagesUnknownError(f"the text {name} is known by digest only; give --constant or a capture")
        return text

    policies = _policies(request, deployment, form.style, is_pi=is_pi)
    ended = request.dispatch.settled_time_ms
    writer = ImageWriter(form, deployment.attachments, policies, text_of, ended)
    references = [item.reference for item in images.occurrences if item.reference is not None]
    if form.carrier in ("text", "placeholder") or request.format_version >= 4:
        return writer
    if form.offloaded is not None:
        writer.offloaded = form.offloaded
        return writer
    writer.offloaded = _count(request, deployment, writer, references, policies[0].max_bytes, is_pi=is_pi)
    return writer


def _count(
    request: Request,
    deployment: Deployment,
    writer: ImageWriter,
    references: list[Reference],
    max_bytes: int,
    *,
    is_pi: bool,
) -> int:
    """How many of the oldest images a request up to 0.1.5 leaves out."""

    def limit(key: str, default: int) -> int:
        value = deployment.model(request.provider, request.model, key, default).value
        return value if isinstance(value, int) else default

    def logged(reference: Reference) -> int:
        return min(reference.size_bytes, max_bytes)

    step = limit("image_count_step", 20)
    inline = OffloadLimits(limit("max_inline_bytes", 20 * _MIB), 10 * _MIB, limit("max_images", 600), step, True)
    if is_pi or writer.form.style == "bare":
        profile = deployment.look_up("providers", request.provider, "profile") or {}
        size = profile.get("maxRequestImageBytes") if is_pi else limit("max_inline_bytes", PI_REQUEST_BYTES)
        alone = OffloadLimits(size if isinstance(size, int) else PI_REQUEST_BYTES, 1, None, 1, True)
        first = (alone, logged if is_pi else lambda reference: reference.size_bytes)
        return count_offloaded(references, (first, (alone, writer.size_bytes))[: 1 + is_pi])
    raw = OffloadLimits(limit("max_image_bytes", 128 * _MIB), 64 * _MIB, limit("max_images", 600), step)
    exact = inline if writer.form.carrier == "inline" else raw
    return count_offloaded(references, ((raw, logged), (exact, writer.size_bytes)))


def used_in_form(form: ImageForm, deployment: Deployment) -> Iterator[Used]:
    """What a form takes that is in no log."""
    if form.home not in (None, UNKNOWN_HOME):
        is_given = deployment.look_up("harness", "home") is not None
        yield Used("harness.home", form.home, "deployment" if is_given else "capture")


def capture_ids(images: RequestImages, writer: ImageWriter) -> frozenset[str]:
    """The file ids of a form that no index explains."""
    shown = dict(writer.form.ids)
    references = {item.reference for item in images.occurrences if item.reference is not None}
    return frozenset(
        shown[one.id] for one in references if one.id in shown and writer.indexed_file_id(one) != shown[one.id]
    )


def check_images(images: RequestImages, writer: ImageWriter) -> None:
    """Look at the stored images of a request; each file is read once a run."""
    for item in images.occurrences:
        if item.reference is not None:
            writer.check(item.reference)
            writer.version(item.reference)
