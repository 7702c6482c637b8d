"""Chat completions messages of a request that holds an image. Source: spec wire-deepseek 4.3, images 5.

Images of tool results wait for the end of the run of results: one user message carries them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.images import ImageWriter
from dsh_audit.wire.parts import Piece

_LEAD = "Attached image(s) from tool result:"
_SEE_ATTACHED = "(see attached image)"
_NO_OUTPUT = "(no output)"


class ChatImages:
    """Encodes the user and tool messages of one request, or of ever longer ones."""

    def __init__(self, writer: ImageWriter) -> None:
        self.writer = writer
        self._waiting: list[Piece] = []

    def waiting(self) -> list[Piece]:
        """The items of the message that still has to be sent for tool results; empty for none."""
        return [(_text_part(_LEAD), None), *self._waiting] if self._waiting else []

    def taken(self) -> list[Piece]:
        """The same, which then is sent."""
        items, self._waiting = self.waiting(), []
        return items

    def user_content(self, blocks: Sequence[Json]) -> bytes | None:
        """Content of a user message with images; None where it has none."""
        if not any(block["type"] == "image" for block in blocks):
            return None
        parts: list[bytes] = []
        for block in blocks:
            if block["type"] == "text" and block["text"]:
                parts.append(_text_part(block["text"]))
            elif block["type"] == "image":
                parts += self._image(block, is_first=not parts)
        return b"[" + b",".join(parts) + b"]"

    def result_text(self, content: Sequence[Json], seq: int | None) -> str:
        """Text of a tool result; its images wait."""
        before = len(self._waiting)
        texts = list(self._texts(content, seq))
        if self.writer.form.style == "bare" and len(self._waiting) > before and not any(texts):
            return _SEE_ATTACHED
        return ecma.join(texts) or _NO_OUTPUT

    def _texts(self, content: Sequence[Json], seq: int | None) -> Iterator[str]:
        is_first = True
        for block in content:
            if block["type"] == "tool-result":
                inner = list(self._texts(block["content"], seq))
                yield from inner
                is_first = is_first and not any(inner)
            elif block["type"] == "text":
                yield block["text"]
                is_first = is_first and not block["text"]
            elif block["type"] == "image":
                handle = self.writer.handle(block)
                if handle is not None:
                    yield handle if is_first else f"\n{handle}"
                    is_first = False
                self._waiting.append((self._part(block), seq))

    def _image(self, block: dict[str, Json], *, is_first: bool) -> Iterator[bytes]:
        handle = self.writer.handle(block)
        if handle is not None:
            yield _text_part(handle if is_first else f"\n{handle}")
        yield self._part(block)

    def _part(self, block: dict[str, Json]) -> bytes:
        if self.writer.form.carrier == "file":
            return b'{"type":"file","file_id":' + ecma.stringify(self.writer.file_id(block)) + b"}"
        media_type, data = self.writer.data(block)
        return b'{"type":"image_url","image_url":{"url":"data:' + media_type.encode() + b";base64," + data + b'"}}'


def _text_part(text: str) -> bytes:
    return b'{"type":"text","text":' + ecma.stringify(text) + b"}"
