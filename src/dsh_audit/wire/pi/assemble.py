"""A body from its members, with the log events that its messages and settings come from.

Source: ecmascript-json 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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

    value: Json
    seqs: tuple[int | None, ...] = (None,)


@dataclass(frozen=True, slots=True)
class Seqs:
    """The log events behind the other members of a body; None where unknown."""

    system: int | None = None
    tools: int | None = None


NO_SEQS = Seqs()


class BodyPrinter:
    """Prints the bodies of one protocol and session; parts that repeat are the same objects.

    Args:
        list_key: the member that holds the messages.
    """

    def __init__(self, list_key: str) -> None:
        self.list_key = list_key
        self._memory = PartMemory()
        self._open, self._close = open_list(list_key), close_list(list_key)
        self._tools: tuple[tuple[object, ...], tuple[Part, ...]] = ((), ())

    def print_tools(self, key: tuple[object, ...], define: Callable[[], list[Json]], seq: int | None) -> None:
        """Make the tools of the next body: those of the last one while nothing that they depend on changes."""
        if self._tools[0] != (seq, *key):
            parts = (
                element("tools", index, ecma.stringify(tool), tool_name(tool), seq, "tool")
                for index, tool in enumerate(define())
            )
            self._tools = ((seq, *key), (open_list("tools"), *parts, close_list("tools")))

    def body(
        self, params: dict[str, Json], prompt: WireItem | None, run: PartRun, open_parts: Iterable[Part], seqs: Seqs
    ) -> Body:
        """A body.

        Args:
            params: its members in wire order; the values of the message list and of the tools are ignored.
            prompt: the item that stands before the run.
            open_parts: the items behind it.
        """
        keep = self._memory.keep
        head: list[Part] = []
        tail: list[Part] = []
        for key, value in params.items():
            if key == self.list_key:
                head.append(self._open)
                if prompt is not None:
                    head.append(keep(item_part(key, 0, prompt)))
                tail = [*open_parts, self._close]
            elif key == "tools":
                tail += self._tools[1]
            else:
                kind: Kind = "system" if key in SYSTEM_KEYS else "setting"
                seq = seqs.system if key == "system" else None
                part = keep(member(key, ecma.stringify(value), seq, kind, first=not head))
                (tail or head).append(part)
        return Body(tuple(head), run, len(run), (*tail, END))


def tool_name(tool: dict[str, Json]) -> str:
    """The name in a definition of any protocol."""
    named = tool if "name" in tool else tool.get("function") or {}
    return str(named.get("name", tool.get("type", "")))


def item_part(list_key: str, index: int, item: WireItem) -> Part:
    """One entry of the message list; ``content`` is the last member where its entries come from several events."""
    value = item.value if isinstance(item.value, dict) else {}
    role = str(value.get("role") or value.get("type", ""))
    if len(item.seqs) == 1:
        kind: Kind = "system" if index == 0 and role in ("system", "developer") else "message"
        return element(list_key, index, ecma.stringify(item.value), role, item.seqs[0], kind)
    head = ecma.stringify({**item.value, "content": []})[:-2]
    pieces = [(ecma.stringify(part), seq) for part, seq in zip(item.value["content"], item.seqs, strict=True)]
    return merged_element(list_key, index, head, pieces, b"]}", role)
