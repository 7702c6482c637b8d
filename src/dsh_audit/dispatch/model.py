"""What a log says about one model request.

A *dispatch* is one position of a log where a request was, or may have been, sent. Source: spec dispatch.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from dsh_audit.events import Event, Json
from dsh_audit.projection.state import Snapshot
from dsh_audit.record import dataclass

Kind = Literal["step", "title", "compaction", "web-search"]
Outcome = Literal["completed", "interrupted", "failed", "cancelled", "open", "none"]


@dataclass(frozen=True, slots=True)
class WireCount:
    """How many HTTP requests a dispatch sent: never a fact, always a range with its reason.

    Args:
        minimum: requests that the log proves.
        maximum: requests that the log allows, hidden second posts for stale file ids aside.
        reason: the evidence, one phrase.
    """

    minimum: int
    maximum: int
    reason: str

    JSON: ClassVar = "min=minimum max=maximum reason"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch, in the numbering of its own log.

    Args:
        kind: what the call was for.
        turn: None for calls outside a turn.
        step: None for one-shot calls.
        attempt: from 1 inside its step; None for one-shot calls.
        prefix_seq: last seq that the request can have seen; -1 for an empty prefix.
        opened_seq: seq that orders the dispatch: prefix_seq + 1 for steps, the opening event for one-shots.
        settled_seq: the event that ended it (finish chunk, settlement, summary or end); None when nothing did.
        wire: how many requests it sent.
        outcome: ``none`` when the step shows no output at all.
        failure: the failure object of the finish, or the error of the turn end, as logged.
        usage: token usage the provider reported, as logged.
        time_ms: time of the first event after the prefix that belongs to the call.
        settled_time_ms: time of ``settled_seq``.
        retry_of: what made this attempt necessary: ``retry``, ``overflow``, ``image-offload``, ``plugin``.
        recomputed: the messages are not logged but computed again from a rule (failed compaction).
        marker_seqs: delivery markers that may belong to it, in log order.
        replay: ``response`` of the replay state that came with the answer: which adapter and protocol gave it;
            empty when the stream finished without one, None without a finished answer.
    """

    kind: Kind
    turn: int | None
    step: int | None
    attempt: int | None
    prefix_seq: int
    opened_seq: int
    settled_seq: int | None
    wire: WireCount
    outcome: Outcome
    failure: Json = None
    usage: Json = None
    time_ms: int | float | None = None
    settled_time_ms: int | float | None = None
    retry_of: str | None = None
    recomputed: bool = False
    marker_seqs: tuple[int, ...] = ()
    replay: Json = None

    @property
    def status(self) -> int | None:
        """The HTTP status of the answer, where the log tells it."""
        if self.outcome in ("completed", "interrupted"):
            return 200
        status = self.failure.get("status") if isinstance(self.failure, dict) else None
        return status if isinstance(status, int) else None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A dispatch with what is needed to rebuild its request.

    Args:
        dispatch: the facts.
        snapshot: the folds over exactly the prefix.
        event: the event that carries the call's own parameters (title, search, summary); None for steps.
        start: the ``compaction/start`` event of a compaction.
        candidates: a failed compaction's possible shadowed ranges, best first, each a tuple of seqs.
        summaries: every ``compaction/summary`` of the log, nearest to a failed compaction first; they show route and
            output limit.
        output_limit: of a failed compaction, as the deployment gives it.
        why_not: why nothing can be claimed about the request; None when something can.
    """

    dispatch: Dispatch
    snapshot: Snapshot
    event: Event | None = None
    start: Event | None = None
    candidates: tuple[tuple[int, ...], ...] = ()
    summaries: tuple[Event, ...] = ()
    output_limit: int | None = None
    why_not: str | None = None
