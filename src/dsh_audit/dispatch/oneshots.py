"""One-shot calls: session title, compaction, DeepSeek web search. Source: spec dispatch 5.

They race the step request: a title is opened before a step and may be accepted, answered or given up at any time until
two turns later, so it stays open and holds back what came after it. A delivery marker names no call. It is the
one-shot's when its ``throughSeq`` reaches the opening event and no step waits for a marker; when one waits, the marker
is shared until another marker or an answer tells whose it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from dsh_audit.dispatch.compaction_range import Retention, find_ranges
from dsh_audit.dispatch.model import Dispatch, Outcome, Prepared, WireCount
from dsh_audit.dispatch.steps import StepTracker
from dsh_audit.dispatch.wire_count import MARKED
from dsh_audit.events import Event, Json, as_object
from dsh_audit.projection.state import SessionState, Snapshot
from dsh_audit.record import dataclass

_TITLE_SENT = WireCount(1, 1, "the title provider answered")
_LOGGED_FIRST = WireCount(0, 1, "logged before the call, which may have been aborted")
_SUMMARY_SENT = WireCount(1, 1, "the summary came from a model call")
_SUMMARY_OTHER = WireCount(0, 1, "another summariser made the summary; its call is not logged")
_REMOTE_FAILURE = WireCount(1, 1, "the compaction error comes after the provider's answer")
_COMPACTION_OPEN = WireCount(0, 1, "the compaction was cancelled or never finished")


@dataclass(slots=True)
class _OpenTitle:
    """A title call without an answer.

    Args:
        markers: delivery markers that are its own; several where it cannot be told which.
        shared: a marker that is its own or that of the step request under way then.
    """

    prepared: Prepared
    turns_left: int = 2
    markers: tuple[int, ...] = ()
    shared: int | None = None

    def claim(self, seq: int, steps: StepTracker) -> bool:
        """Take a marker that may be the title's; returns whether it cannot be the step's."""
        if steps.awaits_marker:
            self.shared = seq
            return False
        is_either = self.shared in steps.pending_markers
        self.markers = (self.shared, seq) if is_either and self.shared is not None else (seq,)
        return not is_either

    def settle_shared(self, steps: StepTracker) -> bool:
        """Take the shared marker from a step that is still under way; returns whether there is one."""
        return self.shared is not None and self._take(self.shared, steps)

    def settle_answered(self, steps: StepTracker) -> None:
        """An answered title was accepted before: without a marker of its own, the step's pending one is its."""
        opened = self.prepared.dispatch.opened_seq
        late = next((seq for seq in steps.pending_markers if seq > opened), None)
        if late is not None and not self.markers:
            self._take(late, steps)

    def _take(self, seq: int, steps: StepTracker) -> bool:
        if seq not in steps.pending_markers:
            return False
        steps.drop_marker(seq)
        self.markers = (seq,)
        return True


@dataclass(slots=True)
class _OpenCompaction:
    event: Event
    snapshot: Snapshot
    overflow: bool
    markers: list[int] = field(default_factory=list)
    summary: Event | None = None


class OneShots:
    """Follows the one-shot calls of a log.

    Args:
        retention: how much a pressure compaction keeps, for ranges that are not logged.
        summaries: gives every ``compaction/summary`` of the log, later ones too; asked for failed compactions only.
    """

    def __init__(self, retention: Retention, summaries: Callable[[], Sequence[Event]]) -> None:
        self._retention = retention
        self._summaries = summaries
        self._title: _OpenTitle | None = None
        self._compaction: _OpenCompaction | None = None

    @property
    def low_water(self) -> int | None:
        """Smallest ``opened_seq`` still to come from here, None when nothing is open."""
        title = self._title.prepared.dispatch.opened_seq if self._title else None
        compaction = self._compaction.event.seq if self._compaction else None
        return min((seq for seq in (title, compaction) if seq is not None), default=None)

    def claims_marker(self, event: Event, steps: StepTracker) -> bool:
        """Whether a delivery marker belongs to an open one-shot call and not to a step request under way.

        Its ``throughSeq`` is not before the opening event, unless a size cap cut the field.
        """
        through = as_object(event.data).get("throughSeq")
        if not isinstance(through, int):
            return False
        compaction = self._compaction
        if compaction is not None and through >= compaction.event.seq:
            compaction.markers.append(event.seq)
            return True
        title = self._title
        if title is not None and not title.markers:
            if through >= title.prepared.dispatch.opened_seq:
                return title.claim(event.seq, steps)
            if title.settle_shared(steps):
                return False
            if compaction is None and not steps.awaits_marker:
                title.markers = (event.seq,)
                return True
        if compaction is not None and not compaction.markers:
            compaction.markers.append(event.seq)
            return True
        return False

    def see(self, event: Event, state: SessionState, steps: StepTracker) -> list[Prepared]:
        """Take note of an event before it is applied to ``state``; returns the calls that are decided by it."""
        kind = event.type
        if kind == "session/title-llm-request":
            done = self._close_title()
            self._title = _OpenTitle(_one_shot("title", event, state, _LOGGED_FIRST))
            return done
        if kind == "session/title":
            return self._title_answer(event, steps)
        if kind == "web/deepseek-search-llm-request":
            return [_one_shot("web-search", event, state, _LOGGED_FIRST)]
        if kind == "compaction/start":
            done = self._close_compaction(None)
            overflow = steps.last_failure_code == "CONTEXT_WINDOW_EXCEEDED"
            self._compaction = _OpenCompaction(event, state.snapshot(), overflow)
            return done
        if kind == "compaction/summary" and self._compaction is not None:
            self._compaction.summary = event
            return []
        if kind == "compaction/end":
            return self._close_compaction(event)
        if kind == "session/end-seed":
            return self.finish()
        if kind == "turn/start" and self._title is not None:
            self._title.turns_left -= 1
            return self._close_title() if self._title.turns_left == 0 else []
        return []

    def finish(self) -> list[Prepared]:
        """The calls that were open when the log or the process ended."""
        return [*self._close_title(), *self._close_compaction(None)]

    def _title_answer(self, event: Event, steps: StepTracker) -> list[Prepared]:
        source = event.data.get("source") if isinstance(event.data, dict) else None
        title = self._title
        if title is None or not isinstance(source, dict) or source.get("kind") == "fallback":
            return []
        title.settle_answered(steps)
        dispatch = replace(
            title.prepared.dispatch,
            wire=_TITLE_SENT,
            outcome="completed",
            settled_seq=event.seq,
            settled_time_ms=event.time,
        )
        title.prepared = replace(title.prepared, dispatch=dispatch)
        return self._close_title()

    def _close_title(self) -> list[Prepared]:
        title, self._title = self._title, None
        if title is None:
            return []
        if not title.markers:
            return [title.prepared]
        dispatch = replace(title.prepared.dispatch, marker_seqs=title.markers, wire=MARKED)
        return [replace(title.prepared, dispatch=dispatch)]

    def _close_compaction(self, end: Event | None) -> list[Prepared]:
        opened, self._compaction = self._compaction, None
        if opened is None:
            return []
        if opened.summary is not None:
            return [_compaction(opened, end)]
        error = end.data.get("error") if end is not None and isinstance(end.data, dict) else None
        at, given = opened.event.seq, self._retention.output_limit
        summaries = sorted(self._summaries(), key=lambda summary: abs(summary.seq - at))
        logged = (as_object(summary.data).get("maxTokens") for summary in summaries)
        limit = given or next((one for one in logged if isinstance(one, int)), self._retention.default_limit)
        ranges = find_ranges(opened.snapshot, opened.event, error, self._retention, limit, overflow=opened.overflow)
        prepared = _compaction(opened, end)
        return [replace(prepared, candidates=ranges, summaries=tuple(summaries), output_limit=given)]


def _one_shot(kind: str, event: Event, state: SessionState, wire: WireCount) -> Prepared:
    dispatch = Dispatch(
        kind="title" if kind == "title" else "web-search",
        turn=None,
        step=None,
        attempt=None,
        prefix_seq=event.seq,
        opened_seq=event.seq,
        settled_seq=None,
        wire=wire,
        outcome="open",
        time_ms=event.time,
    )
    return Prepared(dispatch, replace(state.snapshot(), prefix_seq=event.seq), event)


def _compaction(opened: _OpenCompaction, end: Event | None) -> Prepared:
    start, summary = opened.event, opened.summary
    data = as_object(summary.data) if summary is not None else {}
    error = end.data.get("error") if end is not None and isinstance(end.data, dict) else None
    settled = summary or end
    dispatch = Dispatch(
        kind="compaction",
        turn=start.data.get("turn") if isinstance(start.data, dict) else None,
        step=None,
        attempt=None,
        prefix_seq=start.seq,
        opened_seq=start.seq,
        settled_seq=settled.seq if settled is not None else None,
        wire=_compaction_wire(opened, error),
        outcome=_compaction_outcome(summary, end),
        failure=error,
        usage=data.get("usage"),
        time_ms=start.time,
        settled_time_ms=settled.time if settled is not None else None,
        recomputed=summary is None,
        marker_seqs=tuple(opened.markers),
    )
    return Prepared(dispatch, replace(opened.snapshot, prefix_seq=start.seq), summary, start)


def _compaction_outcome(summary: Event | None, end: Event | None) -> Outcome:
    if summary is not None:
        return "completed"
    return "open" if end is None else "failed"


def _compaction_wire(opened: _OpenCompaction, error: Json) -> WireCount:
    if opened.markers:
        return MARKED
    if opened.summary is not None:
        called = as_object(opened.summary.data).get("llmStreamCall") is True
        return _SUMMARY_SENT if called else _SUMMARY_OTHER
    if isinstance(error, str) and "not smaller" in error:
        return _REMOTE_FAILURE
    return _COMPACTION_OPEN
