from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.dispatch.model import Dispatch
from dsh_audit.dispatch.scan import scan_dispatches
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Replay
from tests.logs import SessionV0, two_turns


def scan(session: SessionV0, own_from: int = 0) -> list[Dispatch]:
    log = session.log()
    return [prepared.dispatch for prepared in scan_dispatches(log.events(), 0, own_from)]


def shape(dispatch: Dispatch) -> tuple[Any, ...]:
    wire = dispatch.wire
    return dispatch.kind, dispatch.turn, dispatch.step, dispatch.attempt, wire.minimum, wire.maximum, dispatch.outcome


def begin(session: SessionV0 | None = None) -> SessionV0:
    session = session or SessionV0()
    session.start_turn()
    session.start_step()
    session.user("Hello")
    session.header()
    return session


def test_each_answered_step_is_one_request_over_the_events_before_its_first_chunk() -> None:
    session = two_turns()
    found = scan(session)
    assert [shape(d)[:4] for d in found] == [("step", 1, 1, 1), ("step", 1, 2, 1), ("step", 2, 1, 1)]
    first_chunks = [row["seq"] for row in session.rows[1:] if row["type"] == "assistant/chunk"]
    assert found[0].prefix_seq == first_chunks[0] - 1
    assert all(d.wire.minimum == d.wire.maximum == 1 for d in found)
    assert all(d.outcome == "completed" for d in found)


FAILURES = [
    ("SERVER", {"status": 500}, 1, 1),
    ("INVALID_REQUEST", {"status": 400}, 1, 1),
    ("INVALID_REQUEST", {}, 0, 0),
    ("IMAGE_OFFLOAD_REQUIRED", {}, 0, 0),
    ("UNSUPPORTED_CONTENT", {}, 0, 0),
    ("MISSING_CREDENTIAL", {}, 0, 0),
    ("TRANSPORT", {}, 0, 1),
    ("TIMEOUT", {}, 0, 1),
    ("AUTH", {}, 0, 1),
    ("EMPTY_RESPONSE", {}, 1, 1),
    ("STREAM_CLOSED", {}, 1, 1),
]


@pytest.mark.parametrize(("code", "failure", "minimum", "maximum"), FAILURES)
def test_a_lone_failure_counts_by_its_code(code: str, failure: dict[str, Any], minimum: int, maximum: int) -> None:
    session = begin()
    session.fail(code, **failure)
    session.end_step()
    session.end_turn("error", error={"message": "x", "code": code})
    (found,) = scan(session)
    assert shape(found) == ("step", 1, 1, 1, minimum, maximum, "failed")


def test_a_failure_after_output_proves_a_request() -> None:
    session = begin()
    session.chunk(type="text-delta", index=0, text="par")
    session.fail("TRANSPORT")
    session.end_step()
    session.end_turn("error", error={"message": "x", "code": "TRANSPORT"})
    assert shape(scan(session)[0])[4:] == (1, 1, "failed")


def test_retries_are_attempts_of_one_step() -> None:
    session = begin()
    session.fail("SERVER", status=500)
    session.add("llm/retry", RETRY)
    session.add("llm/retry-started", RETRY_STARTED)
    session.answer("ok")
    session.end_step()
    session.end_turn()
    first, second = scan(session)
    assert (first.attempt, second.attempt, second.retry_of) == (1, 2, "retry")
    assert second.prefix_seq > first.prefix_seq


RETRY = {
    "retryId": "r1", "turn": 1, "step": 1, "provider": "deepseek-official", "model": "toy-1", "policyKey": "p",
    "code": "SERVER", "attempt": 1, "maxRetries": 2, "delayMs": 5, "mode": "normal",
}  # fmt: skip
RETRY_STARTED = {"retryId": "r1", "turn": 1, "step": 1}


def test_a_cancelled_wait_sends_nothing_and_a_started_retry_may_have() -> None:
    for started, expected in ((False, 1), (True, 2)):
        session = begin()
        session.fail("SERVER", status=500)
        session.add("llm/retry", RETRY)
        if started:
            session.add("llm/retry-started", RETRY_STARTED)
        session.end_step()
        session.end_turn("aborted", reason={"kind": "user"})
        found = scan(session)
        assert len(found) == expected
        if started:
            assert shape(found[1]) == ("step", 1, 1, 2, 0, 1, "none")


SILENT = [("error", 0, 0), ("aborted", 0, 1), (None, 0, 1)]


@pytest.mark.parametrize(("end", "minimum", "maximum"), SILENT)
def test_a_step_without_output_is_counted_by_the_end_of_its_turn(end: str | None, minimum: int, maximum: int) -> None:
    session = begin()
    last = session.seq - 1
    if end is not None:
        session.end_step()
        extra = {"error": {"message": "no", "code": "X"}} if end == "error" else {"reason": {"kind": "user"}}
        session.end_turn(end, **extra)
    (found,) = scan(session)
    assert shape(found)[4:] == (minimum, maximum, "none")
    assert found.prefix_seq == last


def test_a_crash_with_closers_keeps_the_prefix_before_them() -> None:
    session = begin()
    last = session.seq - 1
    session.end_step()
    session.end_turn("interrupted")
    session.add("session/end-seed", {})
    session.simple_turn("again", "ok")
    first, second = scan(session)
    assert (first.prefix_seq, shape(first)[4:]) == (last, (0, 1, "none"))
    assert second.turn == 2


def test_inherited_dispatches_are_not_own() -> None:
    session = two_turns()
    whole = scan(session)
    cut = whole[2].prefix_seq - 3
    assert [d.turn for d in scan(session, own_from=cut)] == [2]


def test_a_title_ends_its_prefix_with_its_own_event() -> None:
    session = begin()
    title = session.add(
        "session/title-llm-request",
        {
            "titleProvider": "toy", "messageSeqs": [2], "route": {"provider": "deepseek-official", "model": "toy-1"},
            "system": "Name it.", "messages": [], "maxTokens": 20,
        },
    )  # fmt: skip
    session.answer("ok")
    session.end_step()
    session.end_turn()
    first, second = sorted(scan(session), key=lambda d: d.kind, reverse=True)
    assert (first.kind, first.prefix_seq, first.wire.minimum, first.wire.maximum) == ("title", title, 0, 1)
    assert second.kind == "step"


def test_dispatches_come_in_the_order_of_the_log() -> None:
    session = two_turns()
    opened = [d.opened_seq for d in scan(session)]
    assert opened == sorted(opened)


MALFORMED = [
    ("assistant/chunk", None),
    ("assistant/chunk", {}),
    ("assistant/chunk", {"turn": 1, "step": 1, "chunk": "text"}),
    ("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": "finish"}}),
    ("assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": "usage"}}),
    ("request/context", [1]),
    ("session/title-llm-request", {"route": 3}),
    ("session/title-llm-request", None),
    ("compaction/start", "now"),
    ("llm/retry-started", None),
    ("turn/end", {"reason": "done"}),
]


@pytest.mark.parametrize(("kind", "data"), MALFORMED)
def test_a_payload_of_another_shape_harms_no_other_request(kind: str, data: Any) -> None:
    session = two_turns()
    session.start_turn()
    session.start_step()
    session.user("And now?")
    session.add(kind, data)
    session.answer("Now.")
    session.end_step()
    session.end_turn()
    replay = Replay(build_history(session.log()), Deployment({}))
    rebuilt = list(replay)
    assert [one.encoded.claim for one in rebuilt[:3]] == ["bytes"] * 3
    assert [one.request.dispatch.kind for one in rebuilt].count("step") >= 4


@pytest.mark.parametrize("block", [3, {"type": "text"}, {"type": "text", "text": 3}, {"type": "tool-call"}, []])
def test_a_message_block_of_another_shape_is_no_claim(block: Any) -> None:
    session = two_turns()
    session.start_turn()
    session.start_step()
    session.add("user/message", session.message("user", [block], {"kind": "user"}), surfaceOp="append")
    session.answer("Hm.")
    session.end_step()
    session.end_turn()
    claims = [one.encoded.claim for one in Replay(build_history(session.log()), Deployment({}))]
    assert claims[:3] == ["bytes"] * 3
    assert claims[3] in ("none", "bytes")
