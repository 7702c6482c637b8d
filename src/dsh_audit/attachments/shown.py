"""What captured bodies show of images: fixed texts, the home in handles, the ids of uploaded files.

Source: spec images 5, 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from dsh_audit.attachments.handles import Style, parse_handle
from dsh_audit.events import Json
from dsh_audit.record import dataclass

FileIds = tuple[tuple[str, str], ...]
"""(attachment id, file id), sorted: all that one upload period gave."""


@dataclass(frozen=True, slots=True)
class ShownImages:
    """What a set of captures shows.

    Args:
        styles: of the handles.
        homes: in the handles, in order; None for a handle without a path.
        periods: ids of uploaded files; an id that is replaced begins another period.
        has_inline: some body has image data in it.
    """

    styles: frozenset[Style] = frozenset()
    homes: tuple[str | None, ...] = ()
    periods: tuple[FileIds, ...] = ()
    has_inline: bool = False


@dataclass(slots=True)
class ShownFold:
    """Takes request bodies in order of receipt."""

    styles: set[Style] = field(default_factory=set)
    homes: dict[str | None, None] = field(default_factory=dict)
    periods: list[dict[str, str]] = field(default_factory=list)
    has_inline: bool = False

    def take(self, value: Json) -> None:
        """One body, parsed."""
        named: list[str] = []
        files: list[str] = []
        for kind, text in _walk(value):
            if kind == "file":
                files.append(text)
                continue
            for handle in parse_handle(text):
                self.styles.add(handle.style)
                if handle.style == "named":
                    self.homes.setdefault(handle.home)
                named.append(handle.attachment_id)
        if len(named) == len(files) and files:
            self._take_ids(dict(zip(named, files, strict=True)))

    def result(self) -> ShownImages:
        """What was shown."""
        periods = tuple(tuple(sorted(period.items())) for period in self.periods)
        return ShownImages(frozenset(self.styles), tuple(self.homes), periods, self.has_inline)

    def _take_ids(self, ids: dict[str, str]) -> None:
        for period in reversed(self.periods):
            if all(period.get(name, ident) == ident for name, ident in ids.items()):
                period.update(ids)
                return
        self.periods.append(ids)


def _walk(value: Json) -> Iterator[tuple[str, str]]:
    """Texts and file ids of the messages, in order."""
    messages = value.get("messages") if isinstance(value, dict) else None
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        yield from _parts(content) if isinstance(content, list) else _texts((content,))


def _texts(values: Iterable[Json]) -> Iterator[tuple[str, str]]:
    for text in values:
        if isinstance(text, str):
            yield "text", text


def _parts(parts: Sequence[Json]) -> Iterator[tuple[str, str]]:
    for part in parts:
        if not isinstance(part, dict):
            continue
        source = part.get("source") if part.get("type") == "image" else part
        if isinstance(source, dict) and source.get("type") == "file" and isinstance(source.get("file_id"), str):
            yield "file", source["file_id"]
        elif isinstance(part.get("content"), list):
            yield from _parts(part["content"])
        else:
            yield from _texts((part.get("text"), part.get("content")))
