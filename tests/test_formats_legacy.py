"""Old dialects of format 0, read as the vocabulary of 0.1.1."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.formats import FORMATS, RowRejectedError
from tests.format_rows import HEADERS, header, read, row, turn_end, user

SOURCE = {"kind": "user"}
TEXT = [{"type": "text", "text": "x"}]


def dialects(*rows: dict[str, Any]) -> tuple[str, ...]:
    reader = FORMATS[0].reader(FORMATS[0].parse_session_header(HEADERS[0]))
    for each in rows:
        reader.decode(each)
    return reader.dialects


@pytest.mark.parametrize(
    ("old", "kind", "data", "dialect"),
    [
        (
            row("turn/start", 4, {"turn": 1, "trigger": {"kind": "user"}}),
            "turn/start",
            {"turn": 1},
            "turn/start trigger",
        ),
        (
            turn_end(4, kind="aborted"),
            "turn/end",
            {"turn": 1, "reason": {"kind": "aborted", "reason": {"kind": "legacy"}}},
            "turn/end aborted",
        ),
        (
            turn_end(4, kind="disposed"),
            "turn/end",
            {"turn": 1, "reason": {"kind": "aborted", "reason": {"kind": "disposed"}}},
            "turn/end disposed",
        ),
        (
            turn_end(4, kind="error", step=2, failure={"message": "m", "code": "C", "status": 500}),
            "turn/end",
            {"turn": 1, "reason": {"kind": "error", "error": {"message": "m", "code": "C", "status": 500}}},
            "turn/end error",
        ),
        (
            turn_end(4, kind="error", step=2, message="m"),
            "turn/end",
            {"turn": 1, "reason": {"kind": "error", "error": {"message": "m", "code": "UNKNOWN"}}},
            "turn/end error",
        ),
        (
            row("steering/message", 4, {"turn": 1, "message": user(4)["data"]}, surfaceOp="append"),
            "user/message",
            user(4)["data"],
            "steering/message",
        ),
        (
            row("steering/message", 4, {"turn": 1, "content": TEXT, "source": SOURCE}, surfaceOp="append"),
            "user/message",
            {"content": TEXT, "source": SOURCE, "id": "legacy-message:s1:4", "role": "user"},
            "steering/message",
        ),
        (
            row("user/message", 4, {"content": TEXT, "source": SOURCE}, surfaceOp="append"),
            "user/message",
            {"content": TEXT, "source": SOURCE, "id": "legacy-message:s1:4", "role": "user"},
            "messages without identity",
        ),
        (
            row(
                "assistant/message",
                4,
                {"turn": 1, "step": 1, "content": TEXT, "provenance": {"provider": "p", "model": "m"}},
                surfaceOp="append",
            ),
            "assistant/message",
            {
                "turn": 1,
                "step": 1,
                "message": {
                    "id": "legacy-message:s1:4",
                    "role": "assistant",
                    "content": TEXT,
                    "source": {"provider": "p", "model": "m", "kind": "model"},
                },
            },
            "messages without identity",
        ),
        (
            row(
                "tool/result",
                4,
                {"turn": 1, "step": 1, "callId": "c", "content": TEXT, "isError": False},
                surfaceOp="append",
            ),
            "tool/result",
            {
                "turn": 1,
                "step": 1,
                "message": {
                    "id": "legacy-message:s1:4",
                    "role": "user",
                    "content": [{"type": "tool-result", "toolCallId": "c", "content": TEXT, "isError": False}],
                    "source": {"kind": "tool", "callId": "c"},
                },
            },
            "messages without identity",
        ),
        (
            row("llm/retry", 4, {"turn": 1, "step": 1, "provider": "p", "policyKey": "k"}),
            "llm/retry",
            {"turn": 1, "step": 1, "provider": "p", "policyKey": "k", "retryId": "legacy-retry:s1:4"},
            "llm/retry without retryId",
        ),
    ],
)
def test_one_event(old: dict[str, Any], kind: str, data: Any, dialect: str) -> None:
    event = read(0, old)[0]
    assert (event.type, event.data, event.seq) == (kind, data, 4)
    assert dialects(old) == (dialect,)


def test_message_prefix_is_dropped() -> None:
    event = read(0, header(0, messagePrefix=[]))[0]
    assert list(event.data["header"]) == ["config"]
    with pytest.raises(RowRejectedError, match="messagePrefix"):
        read(0, header(0, messagePrefix={}))


def test_compaction_names_and_ids() -> None:
    checkpoint = user(3, surfaceOp={"op": "replace", "start": 1, "end": 1}, sourceEventSeqs=[1])
    checkpoint["data"]["source"] = {"kind": "plugin", "plugin": "compact"}
    rows = [
        row("compact/start", 1, {"turn": None}),
        row("compact/summary", 2, {"summary": []}),
        checkpoint,
        row("compact/end", 4, {"turn": None}),
        row("compact/prune", 5, {}),
        {**checkpoint, "seq": 6},
    ]
    events = read(0, *rows)
    assert [event.type.split("/")[1] for event in events] == ["start", "summary", "message", "end", "prune", "message"]
    ids = [event.data.get("compactionId") for event in events]
    assert ids == ["legacy-compaction:s1:1", "legacy-compaction:s1:1", None, "legacy-compaction:s1:1", None, None]
    sources = [events[at].data["source"].get("compactionId") for at in (2, 5)]
    assert sources == ["legacy-compaction:s1:1", None]
    assert dialects(*rows) == ("compact/*", "compaction without id")


def test_a_seed_end_forgets_the_open_compaction() -> None:
    rows = [
        row("compaction/start", 1, {"turn": None, "compactionId": "k"}),
        row("session/end-seed", 2, {}),
        row("compaction/end", 3, {"turn": None}),
    ]
    assert read(0, *rows)[2].data == {"turn": None}


def test_retries_of_one_chain_share_an_id() -> None:
    chain = {"turn": 1, "step": 1, "provider": "p", "policyKey": "k"}
    other = {**chain, "step": 2}
    rows = [row("llm/retry", seq, data) for seq, data in enumerate([chain, other, chain])]
    rows.append(row("llm/retry", 3, {**chain, "retryId": "named"}))
    rows.append(row("llm/retry", 4, chain))
    assert [event.data["retryId"] for event in read(0, *rows)] == [
        "legacy-retry:s1:0",
        "legacy-retry:s1:1",
        "legacy-retry:s1:0",
        "named",
        "named",
    ]


def test_a_replaced_result_keeps_the_id_of_its_node() -> None:
    old = {"turn": 1, "step": 1, "callId": "c", "content": TEXT, "isError": True}
    rows = [
        row("tool/result", 0, old, surfaceOp="append"),
        row("tool/result", 1, old, surfaceOp={"op": "replace", "start": 0, "end": 0}, sourceEventSeqs=[0]),
    ]
    assert [event.data["message"]["id"] for event in read(0, *rows)] == ["legacy-message:s1:0"] * 2
    orphan = row("tool/result", 1, old, surfaceOp={"op": "replace", "start": 0, "end": 0}, sourceEventSeqs=[0])
    with pytest.raises(RowRejectedError, match="without identity"):
        read(0, orphan)


@pytest.mark.parametrize(
    "bad",
    [
        turn_end(4, 0),
        turn_end(4, kind="completed", extra=1),
        turn_end(4, kind="aborted", extra=1),
        turn_end(4, kind="disposed", extra=1),
        turn_end(4, kind="error", step=1),
        turn_end(4, kind="error", message="m"),
        turn_end(4, kind="error", step=1, message=1),
        turn_end(4, kind="error", step=1, failure={"message": "m"}),
        turn_end(4, kind="error", step=1, failure={"message": "m", "code": 1}),
        row("turn/end", 4, {"turn": 1}),
        row("turn/end", 4, []),
        row("turn/end", 4, {"turn": 1, "reason": {}}),
        row("turn/start", 4, {"turn": 0, "trigger": {"kind": "x"}}),
        row("turn/start", 4, {"turn": 1, "trigger": {"kind": ""}}),
        row("turn/start", 4, {"turn": 1, "trigger": {"kind": "x"}, "more": 1}),
        row("steering/message", 4, {"turn": 1, "content": TEXT}, surfaceOp="append"),
        row("steering/message", 4, {"message": user(4)["data"]}, surfaceOp="append"),
    ],
)
def test_malformed_old_events_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(RowRejectedError) as caught:
        read(0, bad)
    assert caught.value.kind == "refused"


def test_current_events_pass_unchanged() -> None:
    rows = [user(0), turn_end(1, kind="aborted", reason={"kind": "user"}), turn_end(2, kind="error", error={})]
    assert dialects(*rows) == ()
    assert [event.data for event in read(0, *rows)] == [each["data"] for each in rows]
