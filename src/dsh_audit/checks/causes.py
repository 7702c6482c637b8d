"""Why a request did not go on where its predecessor ended: the first thing that differs, and its event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from dsh_audit.checks.drift_model import HeaderChange, Part
from dsh_audit.checks.shared_prefix import pieces_from
from dsh_audit.checks.telling_events import TellingEvents
from dsh_audit.difference.requests import diff_texts, part_item
from dsh_audit.finding import Rule
from dsh_audit.pricing import Usage
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.rules import cache as rules
from dsh_audit.wire.body import Body
from dsh_audit.wire.prompt import Prompt

Cause = Literal[
    "provider-switch",
    "model-switch",
    "protocol-switch",
    "header-change",
    "resume-drift",
    "compaction",
    "prune",
    "image-offload",
    "replacement",
    "rewrite",
    "retry",
    "idle-expiry",
    "too-soon",
    "look-back",
    "side-request",
    "provider-miss",
]
"""``rewrite``: nothing in the log explains the difference. From ``retry`` on the prompt was intact."""

CAUSES: Mapping[Cause, tuple[Rule, bool]] = {
    "provider-switch": (rules.SWITCHED, True),
    "model-switch": (rules.SWITCHED, True),
    "protocol-switch": (rules.SWITCHED, True),
    "header-change": (rules.TOOLS_CHANGED, False),
    "resume-drift": (rules.RESUME_DRIFT, True),
    "compaction": (rules.COMPACTION, True),
    "prune": (rules.PRUNED, True),
    "image-offload": (rules.OFFLOADED, True),
    "replacement": (rules.REPLACED, False),
    "rewrite": (rules.NOT_APPEND_ONLY, False),
    "retry": (rules.RETRY, True),
    "idle-expiry": (rules.IDLE, True),
    "too-soon": (rules.TOO_SOON, True),
    "look-back": (rules.LOOK_BACK, False),
    "side-request": (rules.SIDE_REQUEST, False),
    "provider-miss": (rules.PROVIDER_MISS, False),
}
"""The finding of each cause, and whether someone asked for it, the harness makes it by design, or time explains it.

For a header change both depend on its part and on the log.
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """What is kept of one request while later ones are compared with it.

    Args:
        body: the base body, without extension fields.
        whole: the body with them.
    """

    rebuilt: Rebuilt
    body: Body | None
    prompt: Prompt | None
    usage: Usage | None
    whole: Body | None = None

    def tokens_of(self, size_bytes: int) -> int | None:
        """Tokens in some bytes of the prompt, by the provider's own count; None when it tells none."""
        if self.prompt is None or self.usage is None or not self.usage.prompt or not self.prompt.size_bytes:
            return None
        return size_bytes * self.usage.prompt // self.prompt.size_bytes


@dataclass(frozen=True, slots=True)
class Why:
    """A cause with its place.

    Args:
        part: the part of the request that changed; ``messages`` for the history; None where nothing did.
        seq: the event that brought the difference, in the log of the request.
        pointer: JSON pointer of the first byte that differs in the rendered order, in the request's body.
        at: that byte's offset in the body; None where it cannot be placed.
        detail: one phrase.
        missed: tokens that the provider could have read from its cache and did not, where its figures tell.
        what: what was done to what there, in the words of every command.
    """

    cause: Cause
    part: Part | Literal["messages"] | None
    seq: int | None
    pointer: str | None = None
    at: int | None = None
    detail: str = ""
    missed: int = 0
    what: str = ""


def explain_break(before: Sent, after: Sent, shared: int, change: HeaderChange | None, evidence: TellingEvents) -> Why:
    """Why the prompt of ``after`` does not extend that of ``before``, and what was done there; both have prompts.

    Args:
        shared: bytes their prompts have in common.
        change: the header change between the two.
    """
    why = _explain(before, after, shared, change, evidence)
    words = change.words_of(why.part) if change is not None else ""
    if why.part == "messages":
        assert before.prompt is not None and after.prompt is not None
        one, two = (side.prompt.message_at(shared) for side in (before, after))  # type: ignore[union-attr]
        words = next((found.words for found in diff_texts([part_item(one)], [part_item(two)])), "")
    return replace(why, what=words)


def _explain(before: Sent, after: Sent, shared: int, change: HeaderChange | None, evidence: TellingEvents) -> Why:
    one, two = before.rebuilt.request, after.rebuilt.request
    switched = _switch(before, after, change)
    if switched is not None:
        return switched
    assert before.prompt is not None and after.prompt is not None and after.body is not None
    prompt = after.prompt
    at, pointer = prompt.place(shared)
    if shared < len(prompt.tools) or (shared < len(before.prompt.tools)):
        return _header_break("tools", change, two.tools_seq, pointer, at)
    if shared < prompt.head_bytes or shared < before.prompt.head_bytes:
        return _header_break("system", change, None, pointer, at)
    if "system" in (before.prompt.message_at(shared).kind, prompt.message_at(shared).kind):
        return _header_break("system", change, _seq_at(prompt.messages, 0), pointer, at)
    border = evidence.border(after.rebuilt.log, two.dispatch.prefix_seq, before.rebuilt.log, one.dispatch.prefix_seq)
    found = _history_break(before, after, shared, border, evidence)
    if found is not None:
        cause, source, part = found
        if part == "system":
            return _header_break("system", change, source, pointer, at)
        return Why(cause, part, source, pointer, at)
    if change is not None and "tools" in change.parts:
        return _header_break("tools", change, change.seqs.get("tools"), pointer, at)
    seq = _seq_at(prompt.messages, shared - prompt.head_bytes)
    return Why("rewrite", "messages", seq, pointer, at, "nothing in the log asked for it")


def _switch(before: Sent, after: Sent, change: HeaderChange | None) -> Why | None:
    one, two = before.rebuilt.request, after.rebuilt.request
    seq = change.seqs.get("config") if change is not None else two.tools_seq
    if one.provider != two.provider:
        return Why("provider-switch", "config", seq, "/model", None, f"{one.provider} → {two.provider}")
    if one.model != two.model:
        return Why("model-switch", "config", seq, "/model", None, f"{one.model} → {two.model}")
    protocols = before.rebuilt.encoded.protocol, after.rebuilt.encoded.protocol
    if protocols[0] != protocols[1]:
        return Why("protocol-switch", "config", two.tools_seq, None, None, " → ".join(protocols))
    return None


def _header_break(part: Part, change: HeaderChange | None, seq: int | None, pointer: str, at: int | None) -> Why:
    if change is not None and part in change.parts:
        cause: Cause = "resume-drift" if change.reason == "resume" else "header-change"
        return Why(cause, part, change.seqs.get(part), pointer, at)
    return Why("header-change", part, seq, pointer, at, "" if seq is not None else "not in the log")


_Found = tuple[Cause, int, Part | Literal["messages"]]


def _history_break(before: Sent, after: Sent, shared: int, border: int, evidence: TellingEvents) -> _Found | None:
    """The replacement or offload that the first differing piece comes from."""
    assert before.prompt is not None and after.prompt is not None
    prefix_seq = after.rebuilt.request.dispatch.prefix_seq
    events = evidence.between(border, prefix_seq)
    surface = after.rebuilt.request.snapshot.surface
    replacing = {seq for seq, _, detail in events if detail == "replace"}
    fresh = [item for item in reversed(surface.replacements) if item.seq in replacing]
    old = _seq_at(before.prompt.messages, shared - before.prompt.head_bytes)
    new = _seq_at(after.prompt.messages, shared - after.prompt.head_bytes)
    at_break = [item.seq for item in reversed(fresh) if item.seq == new or old in item.shadowed_seqs]
    offloads = [seq for seq, kind, _ in events if kind == "image/offload"]
    if offloads and not at_break:
        return "image-offload", offloads[0], "messages"
    for seq in (*at_break, *(item.seq for item in fresh[-1:])):
        cause = evidence.cause_of(seq)
        if cause is not None:
            return cause, seq, "system" if cause == "header-change" else "messages"
    return None


def _seq_at(messages: Body, at: int) -> int | None:
    """The event of the first piece with one, from byte ``at`` on."""
    return next((seq for _, seq in pieces_from(messages, max(at, 0)) if seq is not None), None)
