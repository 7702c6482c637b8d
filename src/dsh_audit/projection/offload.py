"""Image offload marks: which images of which nodes are sent as a note only (formats 3 and 4).

A mark never changes the logged message; it is laid over the message when it is derived.
Source: dsh-compaction-image-offload 0.2.1-rc.2 (v4, flat); spec session-log 7 (v3: nested tool results
count too).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dsh_audit.events import Event, Json
from dsh_audit.formats.envelope import is_increasing
from dsh_audit.projection.rejection import Rejection
from dsh_audit.projection.surface_rules import message_of, refuse
from dsh_audit.record import dataclass

OFFLOAD_TYPE = "image/offload"
_INPUT_TYPES = ("user/message", "tool/result")
_MAX_SAFE = 2**53 - 1


@dataclass(frozen=True, slots=True, eq=False)
class OffloadMarks:
    """The marks in force at one prefix.

    Args:
        count: how many ``image/offload`` events the prefix holds.
        nested: whether images inside tool-result blocks count (v3).
    """

    _by_seq: dict[int, list[tuple[int, tuple[int, ...]]]]
    count: int
    nested: bool

    def image_indexes(self, seq: int) -> tuple[int, ...]:
        """Indexes of the marked images of one node, increasing; empty for most nodes."""
        if not self.count or seq not in self._by_seq:
            return ()
        return tuple(sorted(at for order, marks in self._by_seq[seq] if order < self.count for at in marks))

    def apply_to(self, seq: int, message: dict[str, Json]) -> dict[str, Json]:
        """The message of a node, its marked images with ``offloaded: true``; itself when it has no marks."""
        indexes = self.image_indexes(seq)
        return _mark(message, frozenset(indexes), self.nested) if indexes else message


NO_MARKS = OffloadMarks({}, 0, False)


class IncrementalMarks:
    """The running fold of ``image/offload`` events of one session."""

    def __init__(self, *, nested: bool) -> None:
        self._by_seq: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        self._count = 0
        self._nested = nested

    def snapshot(self) -> OffloadMarks:
        """The marks so far, in O(1)."""
        return OffloadMarks(self._by_seq, self._count, self._nested)

    def apply(self, event: Event, find: Callable[[int], Event | None]) -> None:
        """Validate and take one ``image/offload`` event; time follows the images of its targets.

        Args:
            find: the current surface node with a seq.

        Raises:
            ProjectionError: see Rejection ``offload-*``; nothing is taken then.
        """
        accepted: dict[int, tuple[int, ...]] = {}
        for target in _targets(event):
            seq, indexes = _seq_and_indexes(event, target)
            if seq in accepted:
                refuse(event, Rejection.OFFLOAD_DUPLICATE, f"target seq {seq} is named twice")
            self._check_target(event, find(seq), seq, indexes)
            accepted[seq] = tuple(indexes)
        for seq, taken in accepted.items():
            self._by_seq.setdefault(seq, []).append((self._count, taken))
        self._count += 1

    def _check_target(self, event: Event, node: Event | None, seq: int, indexes: list[Json]) -> None:
        if node is None:
            refuse(event, Rejection.OFFLOAD_NOT_CURRENT, f"target seq {seq} is not on the surface")
        if node.type not in _INPUT_TYPES:
            refuse(event, Rejection.OFFLOAD_NOT_INPUT, f"target seq {seq} is {node.type}")
        if not all(map(_is_index, indexes)) or not is_increasing(indexes):
            refuse(event, Rejection.OFFLOAD_INDEXES, f"image indexes of seq {seq} do not strictly increase")
        images = [block.get("offloaded") is True for block in _images(message_of(node), self._nested)]
        marked = set(self.snapshot().image_indexes(seq))
        for at in indexes:
            if at < len(images) and (images[at] or at in marked):
                refuse(event, Rejection.OFFLOAD_TWICE, f"image {at} of seq {seq} is offloaded already")
        if indexes[-1] >= len(images):
            reason = f"seq {seq} has {len(images)} images, no image {indexes[-1]}"
            refuse(event, Rejection.OFFLOAD_NO_IMAGE, reason)


def _targets(event: Event) -> list[Json]:
    data = event.data
    targets = data.get("targets") if isinstance(data, dict) and len(data) == 1 else None
    if not isinstance(targets, list) or not targets:
        refuse(event, Rejection.OFFLOAD_MALFORMED, "image/offload needs exactly a non-empty list of targets")
    return targets


def _seq_and_indexes(event: Event, target: Json) -> tuple[int, list[Json]]:
    seq = target.get("seq") if isinstance(target, dict) and len(target) == 2 else None
    indexes = target.get("imageIndexes") if isinstance(target, dict) else None
    if not isinstance(seq, int) or not _is_index(seq) or not isinstance(indexes, list) or not indexes:
        refuse(event, Rejection.OFFLOAD_MALFORMED, "a target needs exactly a seq and a list of image indexes")
    return seq, indexes


def _is_index(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_SAFE


def _is_nesting(block: Json) -> bool:
    if not isinstance(block, dict) or block.get("type") != "tool-result":
        return False
    return isinstance(block.get("content"), list)


def _is_image(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "image"


def _images(message: dict[str, Json], nested: bool) -> Iterator[dict[str, Json]]:
    """Image blocks in the order that gives them their indexes: depth first."""
    open_lists = [iter(message["content"])]
    while open_lists:
        for block in open_lists[-1]:
            if _is_image(block):
                yield block
            elif nested and _is_nesting(block):
                open_lists.append(iter(block["content"]))
                break
        else:
            open_lists.pop()


def _mark(message: dict[str, Json], indexes: frozenset[int], nested: bool) -> dict[str, Json]:
    content: list[Json] = []
    open_lists = [(message, iter(message["content"]), content)]
    image = 0
    while open_lists:
        owner, blocks, copied = open_lists[-1]
        for block in blocks:
            if nested and _is_nesting(block):
                open_lists.append((block, iter(block["content"]), []))
                break
            if _is_image(block):
                block = {**block, "offloaded": True} if image in indexes else block
                image += 1
            copied.append(block)
        else:
            open_lists.pop()
            if open_lists:
                open_lists[-1][2].append({**owner, "content": copied})
    return {**message, "content": content}
