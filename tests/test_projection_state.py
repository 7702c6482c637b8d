"""Incremental folds equal whole folds at every prefix, snapshots stay valid, and the work stays linear."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from dsh_audit.events import Event
from dsh_audit.projection.messages import derive_messages
from dsh_audit.projection.request_header import fold_request_context, fold_request_header, header_of
from dsh_audit.projection.state import SessionState, Snapshot
from dsh_audit.projection.surface import ProjectionError, fold_surface
from tests.projection_events import Raw, broken_events, header_data, surface_data, to_event, valid_events


def _view(snapshot: Snapshot) -> tuple[Any, ...]:
    return (
        snapshot.prefix_seq,
        snapshot.surface.seqs,
        tuple(snapshot.surface.replacements),
        snapshot.messages(),
        snapshot.request_header and header_of(snapshot.request_header),
        snapshot.request_context and snapshot.request_context.data,
        [event.seq for event in snapshot.tool_history],
    )


@given(valid_events())
@settings(max_examples=150, deadline=None)
def test_incremental_equals_whole_at_every_prefix(raws: list[Raw]) -> None:
    events = [to_event(raw) for raw in raws]
    state = SessionState(0)
    kept = []
    for event in events:
        state.apply(event)
        snapshot = state.snapshot()
        kept.append((snapshot, _view(snapshot)))
    for seq, (snapshot, view) in enumerate(kept):
        assert _view(snapshot) == view, "a snapshot changed when the fold went on"
        surface = fold_surface(events, through=seq, version=0)
        assert (seq, surface.seqs, tuple(surface.replacements)) == view[:3]
        assert view[3] == derive_messages(events, through=seq, version=0) == derive_messages(surface)
        assert view[4] == fold_request_header(events, through=seq)
        assert view[5] == fold_request_context(events, through=seq)


@given(broken_events())
@settings(max_examples=150, deadline=None)
def test_a_refused_event_leaves_the_state_as_it_was(raws: list[Raw]) -> None:
    state = SessionState(0)
    for raw in raws:
        before = _view(state.snapshot())
        try:
            state.apply(to_event(raw))
        except ProjectionError as error:
            assert error.seq == raw["seq"]
            assert _view(state.snapshot()) == before
            break


def _appends(count: int, kind: str = "user/message") -> list[Event]:
    return [
        to_event({"type": kind, "seq": at, "time": 0, "data": surface_data(kind, at), "surfaceOp": "append"})
        for at in range(count)
    ]


def _calls(work: Callable[[], None]) -> int:
    """How many function calls, built-in ones included, a piece of work makes."""
    count = 0

    def see(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _fold_with_snapshots(events: list[Event]) -> Callable[[], None]:
    def work() -> None:
        state = SessionState(0)
        for event in events:
            state.apply(event)
            state.snapshot()

    return work


def test_work_is_linear_in_appends() -> None:
    short, long = _calls(_fold_with_snapshots(_appends(200))), _calls(_fold_with_snapshots(_appends(2000)))
    assert long <= short * 10.5


def test_snapshots_share_one_list_until_a_replacement() -> None:
    events = _appends(4)
    state = SessionState(0)
    for event in events[:3]:
        state.apply(event)
    early = state.snapshot().surface
    state.apply(events[3])
    late = state.snapshot().surface
    assert late.extends(early) and not early.extends(late) and late.nodes.shares_list(early.nodes)
    raw = {"type": "user/message", "seq": 4, "time": 0, "data": surface_data("user/message", 4)}
    op = {"op": "replace", "start": 1, "end": 2}
    state.apply(to_event({**raw, "surfaceOp": op, "sourceEventSeqs": [1, 2]}))
    replaced = state.snapshot().surface
    assert replaced.seqs == (0, 4, 3) and not replaced.extends(late) and replaced.generation == 1
    assert (early.seqs, late.seqs) == ((0, 1, 2), (0, 1, 2, 3))


def test_log_only_events_are_not_kept() -> None:
    state = SessionState(0)
    chunk = Event("assistant/chunk", 0, 0, {"turn": 1})
    references = sys.getrefcount(chunk)
    state.apply(chunk)
    assert sys.getrefcount(chunk) == references
    assert (state.count, state.last_seq) == (1, 0)


def test_tool_history_is_kept_in_v4_only() -> None:
    raw = {"type": "request/header", "seq": 0, "time": 0, "data": header_data("x", [])}
    lengths = {}
    for version in (0, 3, 4):
        state = SessionState(version)
        state.apply(to_event(raw))
        lengths[version] = len(state.snapshot().tool_history)
    assert lengths == {0: 0, 3: 0, 4: 1}


def test_through_goes_with_events_only() -> None:
    with pytest.raises(TypeError):
        derive_messages(fold_surface([], version=0), through=0)
