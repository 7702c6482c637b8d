"""Lineages: which earlier request a request can share a prefix with.

The step requests of a session are one lineage; each title, compaction and search is one of its own; a child session
is a log of its own. Inside a lineage only requests to the same provider and model can share a cache.

The best earlier request is exact and cheap: a prompt that goes on where an earlier one ended takes its place, so only
the ends of branches are kept, sorted; the longest common prefix of a new prompt is with one of its two neighbours.
"""

from __future__ import annotations

from dataclasses import field

from dsh_audit.checks.prompt import extends, is_prompt_before, shared_prefix
from dsh_audit.dispatch.model import Kind
from dsh_audit.record import dataclass
from dsh_audit.wire.prompt import Prompt

STEPS = "steps"
_MAX_OWN_BYTES = 64_000_000


def lineage_of(kind: Kind, opened_seq: int) -> str:
    """The lineage of a request: ``steps``, or its kind and the seq it opened at."""
    return STEPS if kind == "step" else f"{kind}:{opened_seq}"


@dataclass(frozen=True, slots=True)
class Match:
    """The earlier request that shares most.

    Args:
        index: of that request.
        shared_bytes: of the rendered prompt.
        tokens: in them, by what the provider counted for that request; None when it told nothing.
    """

    index: int
    shared_bytes: int
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Tip:
    index: int
    prompt: Prompt
    counted: int

    def match(self, prompt: Prompt) -> Match:
        shared, size = shared_prefix(self.prompt, prompt), self.prompt.size_bytes
        return Match(self.index, shared, shared * self.counted // size if self.counted and size else None)


@dataclass(slots=True)
class Branches:
    """The prompts that one cache may hold: ends of branches in byte order."""

    tips: list[_Tip] = field(default_factory=list)
    _own_bytes: int = 0

    def best(self, prompt: Prompt) -> Match | None:
        """The earlier request with the longest common prefix, the latest of several."""
        at = self._place(prompt)
        found: Match | None = None
        for tip in self.tips[max(0, at - 1) : at + 1]:
            match = tip.match(prompt)
            if found is None or (match.shared_bytes, match.index) > (found.shared_bytes, found.index):
                found = match
        return found

    def add(self, index: int, prompt: Prompt, match: Match | None, counted: int = 0) -> None:
        """Take a request, after ``best`` gave its match.

        Args:
            counted: tokens that the provider counted in the prompt, 0 when it told nothing.
        """
        for at, tip in enumerate(self.tips):
            if match is not None and tip.index == match.index:
                if extends(tip.prompt, prompt, match.shared_bytes):
                    self._remove(at)
                break
        self.tips.insert(self._place(prompt), _Tip(index, prompt, counted))
        self._own_bytes += _own_bytes(prompt)
        while self._own_bytes > _MAX_OWN_BYTES and len(self.tips) > 1:
            oldest = min(range(len(self.tips)), key=lambda at: self.tips[at].index)
            self._remove(oldest)

    def _remove(self, at: int) -> None:
        self._own_bytes -= _own_bytes(self.tips.pop(at).prompt)

    def _place(self, prompt: Prompt) -> int:
        low, high = 0, len(self.tips)
        while low < high:
            middle = (low + high) // 2
            if is_prompt_before(prompt, self.tips[middle].prompt):
                high = middle
            else:
                low = middle + 1
        return low


def _own_bytes(prompt: Prompt) -> int:
    """Bytes that a prompt does not share with others by construction."""
    messages = prompt.messages
    return sum(len(part.data) for part in (*messages.head, *messages.tail))
