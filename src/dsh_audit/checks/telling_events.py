"""Events between two requests that say why the second differs: selections, mode switches, restarts, compactions.

Source: spec session-log 3.4, 7; wire-deepseek 8; dispatch 7.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Literal

from dsh_audit.events import Event
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.session_replay import Rebuilt

SWITCHES = frozenset(
    {
        "model/selection",
        "agent-preset/selected",
        "subagent/model-selection-policy",
        "plan/mode",
        "permission/preset",
        "approval/policy",
        "sandbox/mode",
    }
)
"""Someone chose other settings: each may change config, prompt and tools of the next request."""

Replacing = Literal["header-change", "compaction", "prune", "replacement"]
RESTART = "session/end-seed"
COMPACTIONS = frozenset({"compaction/start", "compaction/summary", "compaction/end", "compaction/prune"})
_KEPT = SWITCHES | COMPACTIONS | {RESTART, "request/header", "image/offload"}


class TellingEvents:
    """The telling events of the generation in force, by seq; a fold that is fed every event in order."""

    def __init__(self) -> None:
        self._log: SessionLog | None = None
        self._seqs: list[int] = []
        self._events: list[tuple[str, str]] = []

    def event(self, log: SessionLog, event: Event) -> None:
        """Take one event; only its type and, for request headers, its reason are kept."""
        if log is not self._log:
            self._log, self._seqs, self._events = log, [], []
        if event.surface_op is not None:
            if event.surface_op.op == "replace":
                self._keep(event.seq, event.type, "replace")
        elif event.type in _KEPT:
            reason = event.data.get("reason", "") if event.type == "request/header" else ""
            self._keep(event.seq, event.type, reason if isinstance(reason, str) else "")

    def request(self, rebuilt: Rebuilt) -> None:
        """Requests tell nothing of their own."""

    def _keep(self, seq: int, kind: str, detail: str) -> None:
        self._seqs.append(seq)
        self._events.append((kind, detail))

    def between(self, after: int, through: int) -> list[tuple[int, str, str]]:
        """(seq, type, reason; ``replace`` for a replacement) of the events with ``after`` < seq ≤ ``through``."""
        first, last = bisect_right(self._seqs, after), bisect_right(self._seqs, through)
        return [(self._seqs[at], *self._events[at]) for at in range(first, last)]

    def border(self, log: SessionLog, prefix_seq: int, before: SessionLog, before_seq: int) -> int:
        """Last seq, in the numbering of ``log``, that an earlier request had seen already.

        In a newer generation that is the seq before the last restart.
        """
        if log is before:
            return before_seq
        restart = self.last_before(prefix_seq + 1, (RESTART,))
        return restart[0] - 1 if restart else -1

    def cause_of(self, seq: int) -> Replacing | None:
        """Why an event stands in the place of others; None for one that replaces nothing."""
        at = bisect_left(self._seqs, seq)
        if at == len(self._seqs) or self._seqs[at] != seq or self._events[at][1] != "replace":
            return None
        kind = self._events[at][0]
        if kind == "system/message":
            return "header-change"
        wanted = {"user/message": "compaction/summary", "tool/result": "compaction/prune"}.get(kind)
        last = self.last_before(seq, ("compaction/summary", "compaction/prune", "compaction/end"))
        if last is None or last[1] != wanted:
            return "replacement"
        return "compaction" if kind == "user/message" else "prune"

    def last_before(self, seq: int, types: Iterable[str]) -> tuple[int, str] | None:
        """The last event of some types with a smaller seq."""
        wanted = frozenset(types)
        for at in range(bisect_left(self._seqs, seq) - 1, -1, -1):
            if self._events[at][0] in wanted:
                return self._seqs[at], self._events[at][0]
        return None
