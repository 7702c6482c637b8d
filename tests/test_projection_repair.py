"""Closers of interrupted and forked logs in formats the harness tests do not reach, and texts by digest."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from dsh_audit.events import Event
from dsh_audit.projection.messages import derive_messages
from dsh_audit.projection.repair import (
    REPAIR_TEXTS,
    RepairText,
    forked_turn_closers,
    interrupted_turn_closers,
)
from dsh_audit.projection.surface import ProjectionError
from tests.projection_events import Raw, surface_data, to_event


def _events(*rows: tuple[str, Raw]) -> list[Event]:
    events = []
    for seq, (kind, data) in enumerate(rows):
        raw: Raw = {"type": kind, "seq": seq, "time": 10 * seq, "data": data}
        if kind.endswith(("/message", "/result")):
            raw["surfaceOp"] = "append"
        events.append(to_event(raw))
    return events


def _ask(*ids: str) -> tuple[str, Raw]:
    blocks = [{"type": "tool-call", "id": one, "name": "t", "arguments": "{}"} for one in ids]
    return ("assistant/message", surface_data("assistant/message", 0, blocks))


def _result(call_id: str, step: int = 1) -> tuple[str, Raw]:
    data = surface_data("tool/result", 0)
    message = {**data["message"], "source": {"kind": "tool", "callId": call_id}}
    return ("tool/result", {**data, "step": step, "message": message})


TURN, STEP = ("turn/start", {"turn": 1}), ("step/start", {"turn": 1, "step": 1})
START_A = ("tool/call", {"turn": 1, "step": 1, "callId": "a"})


@pytest.mark.parametrize("version", range(5))
def test_closers_by_version(version: int) -> None:
    events = _events(TURN, STEP, _ask("a", "b"), START_A)
    closers = interrupted_turn_closers(events, version=version, texts={"interrupted-started": "S"})
    assert [closer.type for closer in closers] == ["tool/result", "tool/result", "step/end", "turn/end"]
    assert [closer.seq for closer in closers] == [4, 5, 6, 7]
    assert {closer.time for closer in closers} == {30}
    first, second = (closer.data for closer in closers[:2])
    assert (closers[0].source_event_seqs, closers[1].source_event_seqs) == ((3,), None)
    assert (first["error"]["code"], second["error"]["code"]) == ("TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED")
    message = first["message"]
    assert (message["id"], message["role"]) == (
        "interrupted-tool-result-a-4",
        "tool" if version == 4 else "user",
    )
    holder = message if version == 4 else message["content"][0]
    assert (holder["toolCallId"], holder["isError"], holder["content"][0]["text"]) == ("a", True, "S")
    assert closers[-1].data == {"turn": 1, "reason": {"kind": "interrupted"}}
    assert len(derive_messages([*events, *closers], version=version)) == 3


TAILS: dict[str, tuple[list[Event], list[str]]] = {
    "empty": ([], []),
    "balanced": (_events(TURN, ("turn/end", {"turn": 1})), []),
    "between steps": (_events(TURN, STEP, _ask("a"), ("step/end", {})), ["turn/end"]),
    "answered": (_events(TURN, STEP, _ask("a"), _result("a")), ["step/end", "turn/end"]),
    "answered in another step": (
        _events(TURN, STEP, _ask("a"), _result("a", step=2)),
        ["tool/result", "step/end", "turn/end"],
    ),
    "result without a call": (_events(TURN, _result("a")), ["turn/end"]),
}


@pytest.mark.parametrize("name", TAILS)
def test_tails_of_format_4(name: str) -> None:
    events, expected = TAILS[name]
    assert [closer.type for closer in interrupted_turn_closers(events, version=4)] == expected


def test_another_step_answers_before_format_4() -> None:
    events, _ = TAILS["answered in another step"]
    assert [closer.type for closer in interrupted_turn_closers(events, version=0)] == ["step/end", "turn/end"]


def test_forked_closers_say_so() -> None:
    result, _, end = forked_turn_closers(_events(TURN, STEP, _ask("a")), version=4)
    message = result.data["message"]
    assert message["id"] == "forked-tool-result-a-3"
    assert message["content"][0]["text"] == "[forked-not-started]"
    assert end.data["reason"] == {"kind": "forked"}


@pytest.mark.parametrize("data", [None, [], {}, {"turn": 1}, "x"])
@pytest.mark.parametrize("kind", ["turn/start", "turn/end", "step/start", "step/end", "tool/call", "x"])
def test_payloads_of_another_shape_do_no_harm(kind: str, data: Any) -> None:
    closers = interrupted_turn_closers([*_events(TURN, STEP, _ask("a")), Event(kind, 3, 0, data)], version=0)
    assert all(closer.seq >= 4 for closer in closers)


def test_a_message_of_another_shape_is_refused() -> None:
    with pytest.raises(ProjectionError):
        interrupted_turn_closers([Event("assistant/message", 0, 0, {})], version=0)


def test_repair_text_matches_by_digest() -> None:
    known = RepairText(hashlib.sha256("é".encode()).hexdigest(), 2)
    assert known.matches("é") and not known.matches("e") and not known.matches("\ud800")
    assert {name: text.size_bytes for name, text in REPAIR_TEXTS.items()} == {
        "interrupted-started": 313,
        "interrupted-not-started": 104,
        "forked-started": 365,
        "forked-not-started": 341,
    }
