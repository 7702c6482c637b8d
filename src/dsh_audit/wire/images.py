"""The images and files of one request as an adapter writes them: handles, places in files or inline data, notes.

What a log does not say of them is a *form*: which handle texts, files or inline data, which file ids. A request is
written in one form; ``wire.image_forms`` lists those that the evidence leaves. Source: spec images 3 to 9.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Literal

from dsh_audit.attachments import handles
from dsh_audit.attachments.checks import Problem, check_object, check_version
from dsh_audit.attachments.handles import Style
from dsh_audit.attachments.references import Reference, blocks_of, parse_reference
from dsh_audit.attachments.shown import FileIds
from dsh_audit.attachments.store import AttachmentStore, StoredFile
from dsh_audit.attachments.versions import Policy, resized
from dsh_audit.events import Json
from dsh_audit.record import dataclass

Carrier = Literal["file", "inline", "text", "placeholder"]
"""As an uploaded file, as data in the body, as a note on a route without image input, or as our own placeholder."""


UNKNOWN_HOME = "?"


@dataclass(frozen=True, slots=True)
class ImageForm:
    """One way in which a request can have carried its images.

    Args:
        home: ``$DSH_HOME`` in paths; None where texts have no path, UNKNOWN_HOME where nothing shows it.
        ids: file ids that a capture shows; others are those of the file index.
        offloaded: how many of the oldest images are replaced by notes; None where the limits decide.
    """

    style: Style
    carrier: Carrier
    home: str | None = None
    ids: FileIds = ()
    offloaded: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """What is sent for one image.

    Args:
        width, height: as the handle says.
        stored: the file that holds the bytes; None where they are lost.
        variant_id: of a re-encoded version, else None.
        is_computed: the size follows from a formula, because the file is lost.
    """

    reference: Reference
    media_type: str
    width: int
    height: int
    stored: StoredFile | None
    variant_id: str | None = None
    is_computed: bool = False


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One image of a request.

    Args:
        seq: the message.
        reference: None for one that no release writes.
        is_offloaded: marked in the log as not sent any more.
    """

    seq: int
    reference: Reference | None
    is_offloaded: bool


@dataclass(frozen=True, slots=True)
class SentImage:
    """One image in one message of a request.

    Args:
        seq: the message.
        attachment: id of the stored object; None where the log has none.
        count: how often the message shows it.
        sent_as: ``file``, ``inline``, ``file or inline``, or ``note``: a text in its place.
    """

    seq: int
    attachment: str | None
    media_type: str | None
    name: str | None
    count: int
    sent_as: str

    JSON: ClassVar = "seq attachment media_type name? count sent_as"


class ImagesUnknownError(Exception):
    """Something of the images cannot be known; the message says what."""


class ImageWriter:
    """Writes the images of one request in one form.

    Args:
        store: None where no home is known.
        policies: that may size the images, likeliest first.
        text_of: the fixed texts.
        sent_before_ms: the request ended then; later uploads were not for it.
    """

    def __init__(
        self,
        form: ImageForm,
        store: AttachmentStore | None,
        policies: Sequence[Policy],
        text_of: handles.TextOf,
        sent_before_ms: float | None,
    ) -> None:
        self.form = form
        self.problems: dict[str, Problem] = {}
        self.offloaded = 0
        self._store = store
        self._policies = policies
        self._text_of = text_of
        self._ids = dict(form.ids)
        self._before = sent_before_ms
        self._versions: dict[str, Version] = {}
        self._left = 0
        self.has_file_ids = False

    def start(self) -> None:
        """Begin with the first message."""
        self._left = self.offloaded

    def follow(self, earlier: ImageWriter) -> None:
        """Go on behind the messages of an earlier request."""
        self._left = earlier._left
        self.has_file_ids = earlier.has_file_ids

    def project(self, message: dict[str, Json]) -> dict[str, Json]:
        """The message with text in place of every file and of every image that is not sent."""
        return {**message, "content": [self._projected(block) for block in message["content"]]}

    def handle(self, block: dict[str, Json]) -> str | None:
        """The text before an image."""
        reference = self.reference(block)
        version = self.version(reference)
        size = version.width, version.height
        return handles.image_handle(self.form.style, reference, size, self._home(), self._text_of)

    def file_id(self, block: dict[str, Json]) -> str:
        """The id of the uploaded version of an image."""
        ident = self.known_file_id(self.reference(block))
        self.has_file_ids = True
        if ident is None:
            raise ImagesUnknownError(f"the file id of {self.reference(block).id} is in no index")
        return ident

    def known_file_id(self, reference: Reference) -> str | None:
        """The same; None where it is not known."""
        return self._ids.get(reference.id) or self.indexed_file_id(reference)

    def indexed_file_id(self, reference: Reference) -> str | None:
        """The id that the file index has for a request of this time; None where it has none or several."""
        version = self.version(reference)
        wanted = self._variant_ids(reference, version)
        found = {
            record.file_id
            for record in (self._store.file_records if self._store is not None else ())
            if record.variant_id in wanted and (self._before is None or record.created_ms <= self._before)
        }
        return found.pop() if len(found) == 1 else None

    def data(self, block: dict[str, Json]) -> tuple[str, bytes]:
        """Media type and base64 text of an image."""
        version = self.version(self.reference(block))
        stored = self.sound_file(version)
        return version.media_type, b"".join(map(base64.b64encode, stored.pieces()))

    def sound_file(self, version: Version) -> StoredFile:
        """The file with the bytes that were sent."""
        reference = version.reference
        if self._store is None:
            raise ImagesUnknownError(f"no store of attachments is known that has object {reference.id}; give --home")
        problem = self.problems.get(reference.id) or self.check(reference)
        if version.variant_id is None and problem is not None:
            raise ImagesUnknownError(problem.what)
        if version.variant_id is not None and version.variant_id in self.problems:
            raise ImagesUnknownError(self.problems[version.variant_id].what)
        if version.stored is None:
            raise ImagesUnknownError(f"the request version of object {reference.id} is not in the cache any more")
        return version.stored

    def check(self, reference: Reference) -> Problem | None:
        """What is wrong with the object of an image; remembered."""
        if self._store is None:
            return None
        problem = check_object(self._store, reference)
        if problem is not None:
            self.problems[reference.id] = problem
        return problem

    def reference(self, block: dict[str, Json]) -> Reference:
        """What an image block refers to."""
        found = parse_reference(block.get("attachment"))
        if found is None:
            raise ImagesUnknownError("an image has no reference to an object that any release writes")
        return found

    def version(self, reference: Reference) -> Version:
        """What is sent for an image."""
        if reference.id not in self._versions:
            self._versions[reference.id] = self._find_version(reference)
        return self._versions[reference.id]

    def size_bytes(self, reference: Reference) -> int:
        """Bytes of what is sent, by the file or as far as the log limits them."""
        stored = self.version(reference).stored
        return min(reference.size_bytes, self._policies[0].max_bytes) if stored is None else stored.size_bytes

    def _home(self) -> str | None:
        if self.form.home == UNKNOWN_HOME and self.form.style == "named":
            raise ImagesUnknownError("the path of the home in image texts is in no log; give harness.home or a capture")
        return self.form.home

    def _find_version(self, reference: Reference) -> Version:
        own = self._store.object(reference.id) if self._store is not None else None
        original = Version(reference, reference.media_type, reference.width, reference.height, own)
        if self.form.style == "bare":
            return original
        policy = self._policy(reference)
        if policy.keeps(reference):
            return original
        ident = policy.variant_id(reference)
        stored = self._store.variant(ident) if self._store is not None else None
        if self._store is not None and stored is not None:
            problem = check_version(self._store, reference, ident, stored)
            if problem is None and stored.media is not None:
                media = stored.media
                return Version(reference, media.media_type, media.width, media.height, stored, ident)
            if problem is not None:
                self.problems[ident] = problem
        return Version(reference, reference.media_type, *resized(policy, reference), None, ident, is_computed=True)

    def _policy(self, reference: Reference) -> Policy:
        """The policy whose version was uploaded or cached, else the likeliest."""
        if self._store is not None and len(self._policies) > 1:
            known = {record.variant_id for record in self._store.file_records}
            for policy in self._policies:
                ident = policy.variant_id(reference)
                if ident in known or (not policy.keeps(reference) and self._store.variant(ident) is not None):
                    return policy
        return self._policies[0]

    def _variant_ids(self, reference: Reference, version: Version) -> set[str]:
        if version.variant_id is not None:
            return {version.variant_id}
        return {policy.variant_id(reference) for policy in self._policies}

    def _projected(self, block: Json) -> Json:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("image", "file") and self.form.carrier == "placeholder":
            return {"type": "text", "text": _placeholder(kind, block)}
        if kind == "file":
            return {"type": "text", "text": self._file_text(block)}
        if kind == "tool-result" and isinstance(block.get("content"), list):
            return {**block, "content": [self._projected(inner) for inner in block["content"]]}
        if kind != "image":
            return block
        if self.form.carrier == "text":
            return {"type": "text", "text": handles.unseen_image(self.reference(block), self._text_of)}
        if self._left > 0 or block.get("offloaded") is True:
            self._left -= self._left > 0
            reference = self.reference(block)
            text = handles.offloaded_image(self.form.style, reference, self._home(), self._text_of)
            return {"type": "text", "text": text}
        return block

    def _file_text(self, block: dict[str, Json]) -> str:
        file = block.get("attachment")
        ident, size, name = (file.get(key) for key in ("attachmentId", "bytes", "name")) if isinstance(
            file, dict
        ) else (None, None, None)
        if not (isinstance(ident, str) and isinstance(size, int) and isinstance(name, str)):
            raise ImagesUnknownError("a file has no reference that any release writes")
        return handles.file_handle(name, size, ident.removeprefix("sha256:"), self._home(), self._text_of)



PLACEHOLDER = ImageForm("bare", "placeholder")
"""No request was sent in this form: it shows one whose images cannot be written."""


def _placeholder(kind: str, block: dict[str, Json]) -> str:
    shown = block.get("attachment")
    shown = shown if isinstance(shown, dict) else {}
    size = f"{shown.get('width')}x{shown.get('height')}, " if kind == "image" else ""
    named = f"{json.dumps(shown['name'], ensure_ascii=False)} " if isinstance(shown.get("name"), str) else ""
    what = f"{shown.get('attachmentId')} ({shown.get('mediaType', 'file')}, {size}{shown.get('bytes')} bytes)"
    return f"[{kind} {named}{what}: a placeholder, not what was sent]"


def sent_images(occurrences: Sequence[Occurrence], offloaded: int, carriers: Iterable[Carrier]) -> list[SentImage]:
    """What a request carries of its images.

    Args:
        offloaded: so many images in front that the log has no mark for are replaced by notes.
        carriers: that the evidence leaves.
    """
    usual = " or ".join(sorted({"note" if carrier == "text" else carrier for carrier in carriers}))
    counts: Counter[tuple[int, str | None, str | None, str | None, str]] = Counter()
    for item in occurrences:
        is_note = item.is_offloaded or offloaded > 0
        offloaded -= not item.is_offloaded and offloaded > 0
        known = item.reference
        named = (None, None, None) if known is None else (known.id, known.media_type, known.name)
        counts[item.seq, *named, "note" if is_note else usual] += 1
    return [SentImage(*key[:4], count, key[4]) for key, count in counts.items()]


def occurrences_of(messages: Iterable[tuple[int, dict[str, Json]]]) -> list[Occurrence]:
    """The images of messages, in order."""
    return [
        Occurrence(seq, parse_reference(block.get("attachment")), block.get("offloaded") is True)
        for seq, message in messages
        for block in blocks_of(message["content"], "image")
    ]


@dataclass(frozen=True, slots=True)
class OffloadLimits:
    """From when on the oldest images of a request are not sent. Source: spec images 6.1.

    Args:
        max_bytes: of all versions; None for no limit.
        byte_step, count_step: an excess is rounded up to whole steps.
        max_count: of images; None for no limit.
        is_base64: bytes are counted as base64 text.
    """

    max_bytes: int | None
    byte_step: int
    max_count: int | None
    count_step: int
    is_base64: bool = False

    def count(self, sizes: Sequence[int]) -> int:
        """How many of the oldest images are left out."""
        weights = [-(-size // 3) * 4 if self.is_base64 else size for size in sizes]
        excess = 0 if self.max_count is None else max(0, len(weights) - self.max_count)
        count_target = -(-excess // self.count_step) * self.count_step
        excess = 0 if self.max_bytes is None else max(0, sum(weights) - self.max_bytes)
        byte_target = -(-excess // self.byte_step) * self.byte_step
        removed = size = 0
        for weight in weights:
            is_met = size > byte_target or not byte_target or (self.byte_step == 1 and size >= byte_target)
            if removed >= count_target and is_met:
                break
            removed, size = removed + 1, size + weight
        return removed


SizeOf = Callable[[Reference], int]


def count_offloaded(references: Sequence[Reference], passes: Iterable[tuple[OffloadLimits, SizeOf]]) -> int:
    """How many of the oldest images are left out after all passes."""
    removed = 0
    for limits, size_of in passes:
        removed += limits.count([size_of(reference) for reference in references[removed:]])
    return removed
