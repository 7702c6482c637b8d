"""Parts: the named pieces that a request body consists of, named by the encoder that writes them.

Every byte of a body belongs to one part. A part prints one value (a setting, a tool, the system text, a message, an
extension field), preceded by the punctuation and the name that lead to it; a *mark* is punctuation alone: the bracket
that opens or closes a list, the last brace. A part that did not change is the same object in the next request of a
session, so two neighbours are compared by identity first (``body.unshared``). What was captured is read into the same
parts (``parse_parts``), so that a difference has one place and one name wherever it was found.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer

Kind = Literal["setting", "tool", "system", "message", "tail", "mark"]
Path: TypeAlias = tuple[str | int, ...]
Piece: TypeAlias = tuple[bytes, int | None]
"""Bytes with the log event whose content they print; None for fixed text and deployment values."""

MESSAGE_KEYS = ("messages", "input")
SYSTEM_KEYS = ("system", "instructions")
EXTENSION_KEYS = ("dsh_session_log", "dsh_plugin_packages")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One named piece of a body; equal only to itself.

    Args:
        data: its bytes in the body: ``lead`` bytes of punctuation and names, then the value's JSON text.
        kind: ``system`` is also the first message where it holds the system text; ``tail`` an extension field.
        name: of the member or tool; of a message its role or type.
        path: names and indices that lead to the value; of a mark those of its list.
        seqs: the log events it prints, one a piece.
        lead: bytes before the value; all of a mark.
        ends: where in ``data`` each piece ends; empty for one piece.
    """

    data: bytes
    kind: Kind
    name: str
    path: Path
    seqs: tuple[int | None, ...] = (None,)
    lead: int = 0
    ends: tuple[int, ...] = ()

    @property
    def value(self) -> bytes:
        """JSON text of the value; empty for a mark."""
        return self.data[self.lead :]

    @property
    def pointer(self) -> str:
        """JSON pointer of the value."""
        return join_pointer(self.path)

    def seq_at(self, at: int) -> int | None:
        """The event that byte ``at`` of ``data`` prints."""
        return self.seqs[min(bisect_right(self.ends, at), len(self.seqs) - 1)]

    def pieces(self) -> Iterator[Piece]:
        """The bytes by the events that they print, in order."""
        if len(self.seqs) == 1:
            yield self.data, self.seqs[0]
            return
        start = 0
        for end, seq in zip(self.ends, self.seqs, strict=True):
            yield self.data[start:end], seq
            start = end

    def is_like(self, other: Part) -> bool:
        """Whether another part says the same of the same events in the same place."""
        return (
            self.data == other.data
            and self.seqs == other.seqs
            and (self.path, self.kind, self.name, self.lead, self.ends)
            == (other.path, other.kind, other.name, other.lead, other.ends)
        )


END = Part(b"}", "mark", "", (), lead=1)


def open_list(name: str) -> Part:
    """The mark before the items of a member."""
    data = b"," + ecma.stringify(name) + b":["
    return Part(data, "mark", name, (name,), lead=len(data))


def close_list(name: str) -> Part:
    """The mark behind the items of a member."""
    return Part(b"]", "mark", name, (name,), lead=1)


def member(name: str, value: bytes, seq: int | None = None, kind: Kind = "setting", *, first: bool = False) -> Part:
    """A member of the body with its JSON text."""
    key = (b"{" if first else b",") + ecma.stringify(name) + b":"
    return Part(key + value, kind, name, (name,), (seq,), len(key))


def element(list_name: str, index: int, value: bytes, name: str, seq: int | None, kind: Kind = "message") -> Part:
    """An item of a list of the body."""
    data = b"," + value if index else value
    return Part(data, kind, name, (list_name, index), (seq,), 1 if index else 0)


def merged(kind: Kind, name: str, path: Path, lead: bytes, head: bytes, items: Iterable[Piece], end: bytes) -> Part:
    """A value whose list items come from several events: ``head``, the items, ``end``."""
    texts = [lead, head]
    at = len(lead) + len(head)
    ends: list[int] = []
    seqs: list[int | None] = []
    if kind == "tail":
        ends.append(at)
        seqs.append(None)
    for index, (data, seq) in enumerate(items):
        if index:
            texts.append(b",")
            at += 1
        texts.append(data)
        at += len(data)
        if seqs and seqs[-1] == seq:
            ends[-1] = at
        else:
            seqs.append(seq)
            ends.append(at)
    texts.append(end)
    if len(seqs) < 2:
        return Part(b"".join(texts), kind, name, path, tuple(seqs) or (None,), len(lead))
    ends[-1] += len(end)
    return Part(b"".join(texts), kind, name, path, tuple(seqs), len(lead), tuple(ends))


def merged_element(list_name: str, index: int, head: bytes, items: Iterable[Piece], end: bytes, name: str) -> Part:
    """A message of a list of the body whose items come from several events."""
    return merged("message", name, (list_name, index), b"," if index else b"", head, items, end)


class PartMemory:
    """Gives the part of the last request again where the new one is like it, place by place."""

    def __init__(self) -> None:
        self._last: dict[Path, Part] = {}

    def keep(self, part: Part) -> Part:
        """The part itself, or the one it repeats."""
        known = self._last.get(part.path)
        if known is not None and known.is_like(part):
            return known
        self._last[part.path] = part
        return part


def object_parts(value: dict[str, Json], seq: int | None) -> Iterator[Part]:
    """The parts of a body that is one logged value."""
    for index, (name, item) in enumerate(value.items()):
        yield member(name, ecma.stringify(item), seq, first=index == 0)
    yield END if value else Part(b"{}", "mark", "", (), lead=2)
