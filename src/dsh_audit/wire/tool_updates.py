"""Tool-update projection (format 4): what a route is told about tools that came and went in a session.

A log records every tool set; a route with a tool-update mode keeps its first declarations and is told of
later changes in developer messages, the others get the current tools only. Source: spec wire-deepseek 6;
dsh-session and dsh-llm 0.2.1-rc.2, tool history and its projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Literal

from dsh_audit.events import Event, Json
from dsh_audit.projection.prefix import Prefix
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

ToolMode = Literal["none", "addition-only", "in-history"]
TOOL_MODES: tuple[ToolMode, ...] = ("none", "addition-only", "in-history")

Tool = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Update:
    """One developer message of the current series.

    Args:
        seq: of the event.
        content: its blocks.
        additions: definitions of the tools it adds, in order.
    """

    seq: int
    content: tuple[Json, ...]
    additions: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class ToolProjection:
    """What a request says about its tools.

    Args:
        tools: definitions in order; None when the request has no tools member.
        blocks: seq of each developer message that is sent → its blocks that stay; all others are left out.
    """

    tools: tuple[Tool, ...] | None
    blocks: Mapping[int, tuple[Json, ...]]


@dataclass(frozen=True, slots=True)
class ToolHistory:
    """Baseline and updates of the declaration series in force."""

    baseline: tuple[Tool, ...]
    updates: tuple[Update, ...]


class ToolHistoryFold:
    """The running fold of a session's tool history; ``at`` extends it in O(new events).

    Attributes:
        has_updates: any developer message was seen, in whatever series.
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.has_updates = False
        self._taken: Prefix[Event] | None = None
        self._headers: dict[int, tuple[Tool, ...]] = {}
        self._declared: dict[str, bytes] = {}
        self._active: tuple[Tool, ...] = ()
        self._available: set[str] = set()
        self._baseline: tuple[Tool, ...] | None = None
        self._updates: list[Update] = []
        self._history = ToolHistory((), ())

    def at(self, history: Prefix[Event]) -> ToolHistory:
        """The history after a prefix: every ``request/header`` and ``developer/message`` event in order."""
        taken = self._taken
        if taken is not None and history.shares_list(taken) and len(history) == len(taken):
            return self._history
        if taken is None or not history.shares_list(taken) or len(history) < len(taken):
            self._reset()
            taken = None
        for index in range(len(taken) if taken is not None else 0, len(history)):
            self._apply(history[index])
        self._taken, self._history = history, self._snapshot()
        return self._history

    def _snapshot(self) -> ToolHistory:
        names = [tool["name"] for tool in self._active]
        if len(names) != len(self._available) or not self._available.issuperset(names):
            return ToolHistory(self._active, ())
        return ToolHistory(self._baseline or (), tuple(self._updates))

    def _apply(self, event: Event) -> None:
        if event.type == "request/header":
            self._apply_header(event)
        else:
            self._apply_update(event)

    def _apply_header(self, event: Event) -> None:
        tools = tuple(tools_of(event.data["header"]))
        printed = {tool["name"]: ecma.stringify(tool) for tool in tools}
        redeclared = any(self._declared.get(name, text) != text for name, text in printed.items())
        starts = event.data.get("reason") == "series" or event.data.get("startsSeries") is True
        if self._baseline is None or starts or redeclared:
            self._baseline, self._updates = tools, []
            self._declared = printed
            self._available = set(printed)
        self._active = self._headers[event.seq] = tools

    def _apply_update(self, event: Event) -> None:
        self.has_updates = True
        content = tuple(block for block in event.data["message"]["content"] if isinstance(block, dict))
        definitions = {tool["name"]: tool for tool in self._headers.get(event.data.get("headerSeq"), ())}
        additions = []
        for block in content:
            name = block.get("toolName")
            if block.get("type") == "tool-addition" and isinstance(name, str) and name in definitions:
                additions.append(definitions[name])
                self._declared[name] = ecma.stringify(definitions[name])
                self._available.add(name)
            elif block.get("type") == "tool-removal":
                self._available.discard(name)
        self._updates.append(Update(event.seq, content, tuple(additions)))


def tools_of(header: Mapping[str, Json]) -> Iterator[Tool]:
    """The tools of a request header that have a name."""
    for tool in header.get("tools") or ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            yield tool


def project_tools(
    mode: ToolMode, tools: list[Tool] | None, history: ToolHistory | None, present: Set[int]
) -> ToolProjection:
    """What a request in a mode says about its tools.

    Args:
        mode: the route's tool-update mode.
        tools: of the request header in force; None or empty when it has none.
        history: at the request; None for calls that have no tool history (titles).
        present: seqs of the developer messages among the request's messages.
    """
    current = tuple(tools) if tools else None
    if mode == "none":
        return ToolProjection(None if current is None else tuple(map(_undeferred, current)), {})
    if history is None:
        return ToolProjection(current, {})
    if any(update.seq not in present for update in history.updates):
        return ToolProjection(current, {})
    declarations = _declarations(mode, current or (), history)
    return ToolProjection(tuple(declarations.values()), _kept_blocks(mode, history, declarations))


def _undeferred(tool: Tool) -> Tool:
    return {key: value for key, value in tool.items() if key != "deferLoading"}


def _declarations(mode: ToolMode, active: tuple[Tool, ...], history: ToolHistory) -> dict[str, Tool]:
    declared = {tool["name"]: tool for tool in history.baseline}
    for update in history.updates:
        for tool in update.additions:
            declared.setdefault(tool["name"], {**tool, "deferLoading": True})
    if mode == "in-history":
        return declared
    names = {tool["name"] for tool in active}
    return {name: tool for name, tool in declared.items() if name in names}


def _kept_blocks(mode: ToolMode, history: ToolHistory, declarations: Mapping[str, Tool]) -> dict[int, tuple[Json, ...]]:
    offered = {tool["name"] for tool in history.baseline if not tool.get("deferLoading")}
    kept: dict[int, tuple[Json, ...]] = {}
    for update in history.updates:
        blocks = []
        for block in update.content:
            kind, name = block.get("type"), block.get("toolName")
            if kind == "tool-addition":
                if name not in declarations or name in offered:
                    continue
                offered.add(name)
            elif kind == "tool-removal":
                if mode != "in-history" or name not in offered:
                    continue
                offered.discard(name)
            blocks.append(block)
        if blocks:
            kept[update.seq] = tuple(blocks)
    return kept
