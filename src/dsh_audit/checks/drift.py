"""Request-header drift: what changed between consecutive step requests, why, and whether someone asked for it.

A change is *declared* when the log shows a cause for each part that changed: a selection or mode switch, a
restart, a compaction that starts a series, or (for the settings alone) a new provider, model or effort. All
other changes are *unexplained*. Source: spec session-log 3.4, 7, 8; wire-deepseek 5.2, 6; caching 4e.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from dsh_audit.checks.drift_model import ConfigChange, HeaderChange, Part, Placement
from dsh_audit.checks.header_state import HeaderState, HeaderStates
from dsh_audit.checks.prompt_diff import TextChange, diff_text
from dsh_audit.checks.telling_events import RESTART, SWITCHES, TellingEvents
from dsh_audit.checks.tool_diff import ToolsChange, tools_change
from dsh_audit.difference.requests import Change, Item, Kind, diff_requests, tool_name, value_item
from dsh_audit.events import Json
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.rules import drift as rules
from dsh_audit.text import ecma

MAX_TOLD = 6
_TOLD: tuple[Kind, ...] = ("setting", "system", "tool")
_ROUTE_KEYS = ("provider", "model", "reasoningEffort")


def compare_states(before: HeaderState, after: HeaderState, *, is_sent_alike: bool = False) -> HeaderChange | None:
    """What differs between two header states; None when nothing does. Request, reason and causes are left open.

    Args:
        is_sent_alike: the tools at the head are the same bytes on the wire, so that spelling makes no difference.
    """
    changes = diff_requests(_items(before), _items(after))
    if is_sent_alike:
        changes = [change for change in changes if change.kind != "respelled"]
    config = tuple(_config_change(change) for change in changes if change.part == "setting")
    tools = tools_change(changes)
    system, in_history = _system_change(before, after)
    seqs: dict[Part, int | None] = {}
    placements: dict[Part, Placement] = {}
    if config:
        seqs["config"], placements["config"] = after.seq, "head"
    if system is not None:
        seqs["system"] = after.prompt_seq
        placements["system"] = "in-history" if in_history else "head"
    if tools:
        seqs["tools"] = after.seq
        placements["tools"] = "in-history" if _is_addition(before, after, tools) else "head"
    if not seqs:
        return None
    parts: tuple[Part, ...] = tuple(seqs)
    seq = seqs["system"] if parts == ("system",) else after.seq
    ordered = sorted(changes, key=lambda change: _TOLD.index(change.part))
    what = tuple(change.words for change in ordered)
    if system is not None and not any(change.part == "system" for change in changes):
        what = (*what[: len(config)], "system prompt moved", *what[len(config) :])
    return HeaderChange(0, 0, None, None, seq, seqs, "change", parts, what, config, system, tools, placements)


def _items(state: HeaderState) -> Iterator[Item]:
    """What a state says, in the order in which changes are told."""
    for prefix, settings in (("", state.config), ("adapterDefaults.", state.adapter_defaults)):
        for name, value in settings.items():
            yield value_item("setting", prefix + name, value)
    if state.prompt:
        yield value_item("system", "system", state.prompt)
    for index, tool in enumerate(state.tools):
        yield value_item("tool", tool_name(tool), tool, ("tools", index))


def _config_change(change: Change) -> ConfigChange:
    before, after = (None if side is None else side.value for side in (change.before, change.after))
    return ConfigChange(change.names[0], before, after)


def _system_change(before: HeaderState, after: HeaderState) -> tuple[TextChange | None, bool]:
    """The change of the prompt, and whether it reached the model in the history only."""
    old, new = before.head.text if before.head else "", after.head.text if after.head else ""
    if old != new:
        return diff_text(old, new), False
    if before.prompt == after.prompt:
        return None, False
    known = {update.seq for update in before.updates}
    grown = len(after.updates) >= len(before.updates) and all(
        one.seq == two.seq for one, two in zip(before.updates, after.updates, strict=False)
    )
    return diff_text(before.prompt, after.prompt), grown and after.updates[-1].seq not in known


def _is_addition(before: HeaderState, after: HeaderState, tools: ToolsChange) -> bool:
    """Whether a route that takes tool updates in the history was only told of new tools (addition-only)."""
    is_same_route = before.in_history and after.in_history
    return is_same_route and not (tools.removed or tools.reordered or tools.changed)


class DriftScanner:
    """Compares each step request of a session with the one before it.

    Args:
        evidence: fed with every event up to the request's prefix before ``see`` is called.

    Attributes:
        digests: of each part of the header, where one of them changed; ``step_request`` counts from 0.
    """

    def __init__(self, evidence: TellingEvents) -> None:
        self._evidence = evidence
        self._states = HeaderStates()
        self._previous: tuple[Rebuilt, HeaderState] | None = None
        self._steps = 0
        self.digests: list[dict[str, Any]] = []

    def see(self, rebuilt: Rebuilt, head_changed: tuple[bool, bool] | None = None) -> HeaderChange | None:
        """The change that a step request brought.

        Args:
            rebuilt: the request.
            head_changed: whether the tools and the system text at the head of the rendered prompt changed on the
                wire; None when no bodies are known.
        """
        state = self._states.of(rebuilt.request)
        last, self._previous = self._previous, (rebuilt, state)
        self._steps += 1
        if last is None:
            self._note_digest(state)
            return None
        earlier, before = last
        same_events = rebuilt.log is earlier.log and (state.seq, state.context_seq) == (before.seq, before.context_seq)
        if same_events and _same_prompt(before, state):
            return None
        change = compare_states(before, state, is_sent_alike=head_changed is not None and not head_changed[0])
        if change is None:
            return None
        self._note_digest(state)
        dispatch = rebuilt.request.dispatch
        change = replace(
            change,
            request=rebuilt.index,
            previous=earlier.index,
            turn=dispatch.turn,
            step=dispatch.step,
            log=rebuilt.log,
        )
        after = self._evidence.border(
            rebuilt.log, dispatch.prefix_seq, earlier.log, earlier.request.dispatch.prefix_seq
        )
        return self._explained(_placed(change, head_changed), after, dispatch.prefix_seq)

    def _note_digest(self, state: HeaderState) -> None:
        parts = {"config": state.config, "system": state.prompt, "tools": list(state.tools)}
        digests = {part: hashlib.sha256(ecma.stringify(value)).hexdigest()[:16] for part, value in parts.items()}
        self.digests.append({"step_request": self._steps - 1, **digests})

    def _explained(self, change: HeaderChange, after_seq: int, prefix_seq: int) -> HeaderChange:
        events = self._evidence.between(after_seq, prefix_seq)
        reasons = [reason for _, kind, reason in events if kind == "request/header"]
        reason = "resume" if "resume" in reasons else reasons[-1] if reasons else "change"
        causes: list[str] = []
        parts: set[Part] = set()
        for _, kind, _ in events:
            if kind in SWITCHES:
                causes.append(kind)
                parts |= set(change.parts)
            elif kind == RESTART:
                causes.append("resume")
                parts |= set(change.parts)
        if reason == "resume" and "resume" not in causes:
            causes.append("resume")
            parts |= set(change.parts)
        if any(kind == "compaction/summary" for _, kind, _ in events) and _is_fold(change):
            causes.append("compaction")
            parts.add("system")
        if _is_chosen(change.config):
            causes.append("settings")
            parts.add("config")
        unexplained = tuple(part for part in change.parts if part not in parts)
        return replace(change, reason=reason, declared_by=tuple(dict.fromkeys(causes)), unexplained=unexplained)


def _is_chosen(config: tuple[ConfigChange, ...]) -> bool:
    """A new provider, model or effort, or the same values filled in by another hand."""
    filled_in = bool(config) and all(item.name.startswith("adapterDefaults.") for item in config)
    return filled_in or any(item.name in _ROUTE_KEYS for item in config)


def _is_fold(change: HeaderChange) -> bool:
    """A prompt that moved to the head, as a compaction does with updates in its range."""
    return change.system is not None and change.placements.get("system") == "head"


def _placed(change: HeaderChange, head_changed: tuple[bool, bool] | None) -> HeaderChange:
    """Placements as the wire bodies show them, where they are known."""
    if head_changed is None:
        return change
    tools_changed, system_changed = head_changed
    placements = dict(change.placements)
    if "tools" in placements:
        placements["tools"] = "head" if tools_changed else "in-history"
    if "system" in placements:
        placements["system"] = "head" if system_changed else "in-history"
    return replace(change, placements=placements)


def _same_prompt(before: HeaderState, after: HeaderState) -> bool:
    return before.head == after.head and before.updates == after.updates


def settle_growth(changes: Iterable[HeaderChange]) -> tuple[HeaderChange, ...]:
    """Text that was added once is an edit; only a prompt that keeps growing is called ``growth``."""
    listed = list(changes)
    prompts = [change for change in listed if change.system]
    growing = [change for change in prompts if change.system and change.system.volatile == ("growth",)]
    if len(growing) > 1 and 2 * len(growing) > len(prompts):
        return tuple(listed)
    return tuple(_edited(change) if change in growing else change for change in listed)


def _edited(change: HeaderChange) -> HeaderChange:
    assert change.system is not None
    return replace(change, system=replace(change.system, volatile=()))


def check_drift(log: SessionLog, changes: Iterable[HeaderChange]) -> list[Finding]:
    """One finding per change: unexplained ones are warnings, declared ones and in-history updates notes.

    Findings: drift/unexplained, drift/volatile, drift/declared, drift/in-history.
    """
    findings = []
    for change in changes:
        if change.volatile and not change.declared:
            rule = rules.VOLATILE
        elif change.placement == "in-history":
            rule = rules.IN_HISTORY
        else:
            rule = rules.DECLARED if change.declared else rules.UNEXPLAINED
        where = (change.log or log).where(seq=change.seq, request=change.request)
        findings.append(Finding(rule, describe(change), where))
    return findings


def describe(change: HeaderChange) -> str:
    """A change in one line: settings with both values, then prompt and tools in the words of every command."""
    texts = []
    for item in change.config:
        before, after = (_short(value) for value in (item.before, item.after))
        texts.append(f"{item.name} {before} → {after}")
    for words in change.what[len(change.config) :]:
        if change.system and words.startswith("system prompt"):
            words += f" ({change.system.after_chars - change.system.before_chars:+d} characters)"
        texts.append(words)
    if len(texts) > MAX_TOLD:
        texts = [*texts[:MAX_TOLD], f"{len(texts) - MAX_TOLD} more"]
    volatile = f"; {', '.join(change.volatile)} in it" if change.volatile else ""
    return "; ".join(texts) + volatile


def _short(value: Json) -> str:
    text = "absent" if value is None else ecma.stringify_text(value)
    return text if len(text) <= 60 else text[:60] + "…"
