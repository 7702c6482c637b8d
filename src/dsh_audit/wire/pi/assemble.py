"""A body from its members, with the log events that its messages and settings come from.

Source: ecmascript-json 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body, Fragment, FragmentRun

_CHANGING = 4
"""Fragments with a source that may differ in the next body: last messages, tools behind them."""


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
    return Body.of(_fragments(params, list_key, items, seqs))


class RunCache:
    """Lets successive bodies of a session share the fragments in front that did not change."""

    def __init__(self) -> None:
        self._run = FragmentRun()

    def share(self, body: Body) -> Body:
        """The same body over a shared run: all but its last fragments, which a longer history changes."""
        fragments = body.tail
        stable = [index for index, fragment in enumerate(fragments) if fragment.seq is not None]
        count = stable[-_CHANGING] if len(stable) >= _CHANGING else 0
        kept = self._run.first(min(len(self._run), count))
        if len(self._run) > count or kept != list(fragments[: len(kept)]):
            self._run = FragmentRun()
        for fragment in fragments[len(self._run) : count]:
            self._run.append(fragment.data, fragment.seq)
        return Body((), self._run, count, fragments[count:])


def _fragments(params: dict[str, Json], list_key: str, items: list[WireItem], seqs: Seqs) -> Iterator[Fragment]:
    sources = {"system": seqs.system, "tools": seqs.tools}
    mark = b"{"
    for key, value in params.items():
        name = mark + ecma.stringify(key) + b":"
        mark = b","
        if key == list_key:
            yield Fragment(name + b"[")
            yield from _list_fragments(items)
            yield Fragment(b"]")
        else:
            yield Fragment(name)
            yield Fragment(ecma.stringify(value), sources.get(key))
    yield Fragment(b"}")


def _list_fragments(items: Iterable[WireItem]) -> Iterator[Fragment]:
    mark = b""
    for item in items:
        if len(item.seqs) == 1:
            yield Fragment(mark + ecma.stringify(item.value), item.seqs[0])
        else:
            yield from _merged_fragments(item, mark)
        mark = b","


def _merged_fragments(item: WireItem, mark: bytes) -> Iterator[Fragment]:
    """A message whose content entries come from several events; ``content`` is its last member."""
    head = ecma.stringify({**item.value, "content": []})
    mark += head[:-2]
    for part, seq in zip(item.value["content"], item.seqs, strict=True):
        yield Fragment(mark + ecma.stringify(part), seq)
        mark = b","
    yield Fragment(b"]}")
