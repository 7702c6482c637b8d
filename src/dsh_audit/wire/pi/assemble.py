"""A body from its members, with the log events that its messages and settings come from.

Source: ecmascript-json 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.parts import (
    END,
    SYSTEM_KEYS,
    Kind,
    Part,
    PartMemory,
    close_list,
    element,
    member,
    merged_element,
    open_list,
)


@dataclass(frozen=True, slots=True)
class WireItem:
    """One entry of the message list of a body.

    Args:
        value: the message as it is printed.
        seqs: the log event it comes from; one for each entry of its ``content`` list when there are several.
    """

    value: dict[str, Json]
    seqs: tuple[int | None, ...] = (None,)


@dataclass(frozen=True, slots=True)
class Seqs:
    """The log events behind the other members of a body; None where unknown."""

    system: int | None = None
    tools: int | None = None


NO_SEQS = Seqs()


def assemble(params: dict[str, Json], list_key: str, items: list[WireItem], seqs: Seqs) -> Body:
    """Print a body.

    Args:
        params: its members in wire order; the value of ``list_key`` is ignored.
    """
    return Body.of(_parts(params, list_key, items, seqs))


class RunCache:
    """Lets successive bodies of a session share the parts in front that did not change."""

    def __init__(self) -> None:
        self._run = PartRun()
        self._memory = PartMemory()

    def share(self, body: Body) -> Body:
        """The same body over a shared run: all but its last messages, which a longer history changes."""
        parts = body.tail
        start = next(at for at, part in enumerate(parts) if part.kind == "mark") + 1
        start += parts[start].kind == "system"
        count = sum(1 for part in parts[start:] if part.kind == "message") - 2
        count = max(count, 0)
        kept = self._run.slice(0, min(len(self._run), count))
        if len(self._run) > count or not all(map(Part.is_like, kept, parts[start:])):
            self._run = PartRun()
        for part in parts[start + len(self._run) : start + count]:
            self._run.append(part)
        head, tail = parts[:start], parts[start + count :]
        return Body(tuple(map(self._memory.keep, head)), self._run, count, tuple(map(self._memory.keep, tail)))


def _parts(params: dict[str, Json], list_key: str, items: list[WireItem], seqs: Seqs) -> Iterator[Part]:
    is_first = True
    for key, value in params.items():
        if key == list_key:
            yield open_list(key)
            for index, item in enumerate(items):
                yield item_part(key, index, item)
            yield close_list(key)
        elif key == "tools":
            yield open_list(key)
            for index, tool in enumerate(value):
                yield element(key, index, ecma.stringify(tool), tool_name(tool), seqs.tools, "tool")
            yield close_list(key)
        else:
            kind: Kind = "system" if key in SYSTEM_KEYS else "setting"
            seq = seqs.system if key == "system" else None
            yield member(key, ecma.stringify(value), seq, kind, first=is_first)
        is_first = False
    yield END


def tool_name(tool: dict[str, Json]) -> str:
    """The name in a definition of any protocol."""
    named = tool if "name" in tool else tool.get("function") or {}
    return str(named.get("name", tool.get("type", "")))


def item_part(list_key: str, index: int, item: WireItem) -> Part:
    """One entry of the message list; ``content`` is the last member where its entries come from several events."""
    role = str(item.value.get("role") or item.value.get("type", ""))
    if len(item.seqs) == 1:
        kind: Kind = "system" if index == 0 and role in ("system", "developer") else "message"
        return element(list_key, index, ecma.stringify(item.value), role, item.seqs[0], kind)
    head = ecma.stringify({**item.value, "content": []})[:-2]
    pieces = [(ecma.stringify(part), seq) for part, seq in zip(item.value["content"], item.seqs, strict=True)]
    return merged_element(list_key, index, head, pieces, b"]}", role)
