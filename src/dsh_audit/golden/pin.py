"""Rebuilt requests → what a golden case keeps of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import Any

from dsh_audit.events import Json
from dsh_audit.golden.case import PinnedRequest, PinnedValue
from dsh_audit.golden.normalise import Normalising
from dsh_audit.projection.messages import DerivedMessage, derive_event_message
from dsh_audit.projection.surface import Surface
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.request.neutral import Request
from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer
from dsh_audit.wire.body import Body
from dsh_audit.wire.parts import MESSAGE_KEYS, SYSTEM_KEYS

MAX_PARTS = 200
"""Leaves of one value that are pinned on their own; the rest is in the digest of the whole."""

_MAX_INLINE = 80
_MAX_THREADS_TRIED = 4
_NOT_OPTIONS = frozenset((*MESSAGE_KEYS, *SYSTEM_KEYS, "tools"))
_NOT_PINNED = ("id", "source")

_Typed = tuple[str, DerivedMessage]
"""A message with the type of its event."""


@dataclass(slots=True)
class _Thread:
    """An append-only list of pinned messages, and the surface or messages it was made from."""

    pinned: list[PinnedValue] = field(default_factory=list)
    messages: list[DerivedMessage] = field(default_factory=list)
    surface: Surface | None = None
    nodes: int = 0


@dataclass(slots=True)
class Pinner:
    """Takes the requests of one session in order.

    Args:
        normalising: for this session.
        keep_values: keep values beside their digests.

    Attributes:
        requests, systems, tools, threads: as in :class:`~dsh_audit.golden.case.GoldenCase`.
    """

    normalising: Normalising
    keep_values: bool = False
    requests: list[PinnedRequest] = field(default_factory=list)
    systems: list[PinnedValue] = field(default_factory=list)
    tools: list[tuple[PinnedValue, ...]] = field(default_factory=list)
    _threads: list[_Thread] = field(default_factory=list)
    _tool_indexes: dict[tuple[str, ...], int] = field(default_factory=dict)
    _last_tools: tuple[Any, int] | None = None
    _step_thread: int | None = None
    _system_indexes: dict[str, int] = field(default_factory=dict)

    @property
    def threads(self) -> tuple[tuple[PinnedValue, ...], ...]:
        """The message lists."""
        return tuple(tuple(thread.pinned) for thread in self._threads)

    def see(self, rebuilt: Rebuilt, verified: str | None = None) -> None:
        """Pin one request.

        Args:
            verified: verdict of the capture that shows it.
        """
        request, dispatch = rebuilt.request, rebuilt.request.dispatch
        thread, count = self._messages(request)
        body = rebuilt.encoded.body
        normalised = None if body is None else self.normalising.body(body)
        self.requests.append(
            PinnedRequest(
                index=rebuilt.index,
                kind=dispatch.kind,
                turn=dispatch.turn,
                step=dispatch.step,
                attempt=dispatch.attempt,
                provider=request.provider,
                model=request.model,
                protocol=rebuilt.encoded.protocol,
                claim=rebuilt.encoded.claim,
                settings={name: self._inline(value) for name, value in request.config.items()},
                system=self._system(request),
                tools=self._tools(request),
                thread=thread,
                count=count,
                constant=request.constant,
                options={} if body is None else self._options(body),
                body_size=None if normalised is None else normalised.size_bytes,
                body_sha256=None if normalised is None else normalised.sha256(),
                verified=verified,
            )
        )

    def _system(self, request: Request) -> int | None:
        text = request.system
        if text is None:
            return None
        if text not in self._system_indexes:
            self._system_indexes[text] = len(self.systems)
            self.systems.append(self._value("system", text, type="request/header", seq=request.system_seq))
        return self._system_indexes[text]

    def _tools(self, request: Request) -> int | None:
        if request.tools is None:
            return None
        if self._last_tools is not None and self._last_tools[0] is request.tools:
            return self._last_tools[1]
        pinned = tuple(self._value(_name(tool), tool, seq=request.tools_seq) for tool in request.tools)
        key = tuple(tool.sha256 for tool in pinned)
        if key not in self._tool_indexes:
            self._tool_indexes[key] = len(self.tools)
            self.tools.append(pinned)
        self._last_tools = (request.tools, self._tool_indexes[key])
        return self._tool_indexes[key]

    def _messages(self, request: Request) -> tuple[int, int]:
        """Thread and count of the messages of a request."""
        surface = request.snapshot.surface
        if request.messages is not None:
            types = {node.seq: node.type for node in surface}
            return self._join([(types.get(item.seq, request.dispatch.kind), item) for item in request.messages])
        if self._step_thread is not None:
            thread = self._threads[self._step_thread]
            if thread.surface is not None and surface.extends(thread.surface):
                self._extend(thread, _derive(surface, thread.nodes))
                thread.surface, thread.nodes = surface, len(surface)
                return self._step_thread, len(thread.pinned)
        index, count = self._join(_derive(surface, 0), whole=True)
        self._step_thread = index
        self._threads[index].surface, self._threads[index].nodes = surface, len(surface)
        return index, count

    def _join(self, messages: list[_Typed], *, whole: bool = False) -> tuple[int, int]:
        """The thread that starts with (or, where it is to be extended, is) these messages, or a new one."""
        count = len(messages)
        for index in reversed(range(max(0, len(self._threads) - _MAX_THREADS_TRIED), len(self._threads))):
            known = self._threads[index].messages
            fits = count == len(known) if whole else count <= len(known)
            if fits and all(one.message is two.message for (_, one), two in zip(messages, known, strict=False)):
                return index, count
        fresh = _Thread()
        self._extend(fresh, messages)
        self._threads.append(fresh)
        return len(self._threads) - 1, count

    def _extend(self, thread: _Thread, messages: list[_Typed]) -> None:
        thread.messages += [derived for _, derived in messages]
        thread.pinned += [self._message(kind, derived) for kind, derived in messages]

    def _message(self, event_type: str, derived: DerivedMessage) -> PinnedValue:
        message = derived.message
        seen = {name: value for name, value in message.items() if name not in _NOT_PINNED}
        source = message.get("source")
        kind = source.get("kind") if isinstance(source, Mapping) else None
        if isinstance(source, Mapping) and source.get("replayState") is not None:
            seen["replayState"] = source["replayState"]
        return self._value(
            str(message.get("role", "")),
            seen,
            type=event_type,
            seq=derived.seq,
            kinds=tuple(_kinds(message.get("content"))),
            source=kind if isinstance(kind, str) else None,
        )

    def _value(self, name: str, value: Json, **place: Any) -> PinnedValue:
        value = self.normalising.value(value)
        data = ecma.stringify(value)
        return PinnedValue(
            name=name,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            parts=outline(value),
            value=value if self.keep_values else None,
            **place,
        )

    def _options(self, body: Body) -> dict[str, Json]:
        """Members of a body that are neither prompt nor tools."""
        settings = (
            part for part in (*body.head, *body.tail) if part.kind == "setting" and part.name not in _NOT_OPTIONS
        )
        return {part.name: self._inline(ecma.parse(part.value)) for part in settings}

    def _inline(self, value: Json) -> Json:
        """A short setting as it is, a long one as a digest."""
        value = self.normalising.value(value)
        if isinstance(value, bool | int | float) or value is None:
            return value
        data = ecma.stringify(value)
        if self.keep_values or len(data) <= _MAX_INLINE:
            return value
        return f"sha256:{hashlib.sha256(data).hexdigest()}"


def outline(value: Json) -> dict[str, str]:
    """JSON pointer of each leaf → start of the SHA-256 of its JSON text; the first ``MAX_PARTS``."""
    return {join_pointer(path): _short_digest(leaf) for path, leaf in islice(_leaves(value), MAX_PARTS)}


def _leaves(value: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    todo: list[tuple[tuple[str | int, ...], Json]] = [((), value)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, dict) and item:
            todo.extend(((*path, name), child) for name, child in reversed(item.items()))
        elif isinstance(item, list) and item:
            todo.extend(((*path, index), child) for index, child in reversed(list(enumerate(item))))
        else:
            yield path, item


def _short_digest(value: Json) -> str:
    return hashlib.sha256(ecma.stringify(value)).hexdigest()[:12]


def _kinds(content: Json) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping):
            kind, name = str(block.get("type", "?")), block.get("name")
            yield f"{kind}:{name}" if kind == "tool-call" and isinstance(name, str) else kind


def _name(tool: Json) -> str:
    return str(tool.get("name", "")) if isinstance(tool, Mapping) else ""


def _derive(surface: Surface, start: int) -> list[_Typed]:
    """The messages of the nodes from a position on, each with the type of its event."""
    derived = ((node, derive_event_message(node, surface.marks)) for node in surface[start:])
    return [(node.type, DerivedMessage(node.seq, message)) for node, message in derived if message is not None]
