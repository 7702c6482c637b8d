"""Formats 0 and 1: rows, packed rows, acceptance rules."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.events import APPEND, Event, SurfaceOp
from dsh_audit.formats import FORMATS, RowRejectedError, v0
from dsh_audit.text import ecma
from tests.format_rows import HEADERS, answer, chunk, header, read, result, row, step_of, user

TEXTS = {
    "type": "text-chunks",
    "seq0": 4,
    "time0": 100,
    "data": {"turn": 1, "step": 1, "index": 0, "dt": [5, -3], "texts": ["a", "", "b"]},
}
CALLS = {
    "type": "tool-call-chunks",
    "seq0": 0,
    "time0": 100,
    "data": {"turn": 1, "step": 2, "index": 1, "dt": [0, 0], "id": "c", "name": "n", "args": ["{", "", "}"]},
}


def texts(**data: Any) -> dict[str, Any]:
    return {**TEXTS, "data": {**TEXTS["data"], **data}}  # type: ignore[dict-item]


def calls(**data: Any) -> dict[str, Any]:
    return {**CALLS, "data": {**CALLS["data"], **data}}  # type: ignore[dict-item]


def test_text_row_expands_to_chunk_events() -> None:
    events = v0.decode_row_v0(TEXTS, line=7)
    assert [(e.type, e.seq, e.time, e.line) for e in events] == [
        ("assistant/chunk", 4, 100, 7),
        ("assistant/chunk", 5, 105, 7),
        ("assistant/chunk", 6, 102, 7),
    ]
    assert events[0].data == {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "a"}}


def test_tool_row_keeps_key_order_of_deltas() -> None:
    event = v0.decode_row_v0(CALLS)[0]
    assert list(event.data["chunk"]) == ["type", "index", "id", "name", "argumentsDelta"]


@pytest.mark.parametrize(
    "packed",
    [
        TEXTS,
        CALLS,
        {**TEXTS, "type": "reasoning-chunks"},
        {**CALLS, "data": {key: value for key, value in CALLS["data"].items() if key != "name"}},  # type: ignore[attr-defined]
        calls(name=""),
        calls(id=""),
        texts(turn=1.5),
    ],
)
def test_packed_rows_pack_again_to_the_same_text(packed: dict[str, Any]) -> None:
    again = list(v0.pack_chunk_runs_v0(v0.decode_row_v0(packed)))
    assert [ecma.stringify(each) for each in again] == [ecma.stringify(packed)]


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        ({**TEXTS, "extra": 1}, "exactly"),
        ({**TEXTS, "seq0": -1}, "seq0"),
        ({**TEXTS, "seq0": 1.5}, "seq0"),
        ({**TEXTS, "seq0": True}, "seq0"),
        ({**TEXTS, "seq0": 2**53 - 2}, "seqs must stay safe"),
        ({**TEXTS, "time0": 2**53}, "time0"),
        ({**TEXTS, "time0": 2**53 - 2}, "times must stay safe"),
        ({**TEXTS, "data": []}, "data must be an object"),
        (texts(extra=1), "members"),
        (texts(turn="1"), "numbers"),
        (texts(texts=[]), "non-empty"),
        (texts(texts=["a", 1, "b"]), "string array"),
        (texts(dt=[1]), "does not match"),
        (texts(dt=[1, 0.5]), "safe integers"),
        (calls(id=1), "strings"),
        (calls(name=None), "strings"),
    ],
)
def test_malformed_packed_rows_are_undecodable(bad: dict[str, Any], part: str) -> None:
    with pytest.raises(RowRejectedError, match=part) as caught:
        v0.decode_row_v0(bad)
    assert caught.value.kind == "undecodable"


def test_a_packed_row_may_have_one_member() -> None:
    assert len(v0.decode_row_v0(texts(dt=[], texts=["a"]))) == 1


def test_negative_zero_gap_is_a_gap() -> None:
    assert [e.time for e in v0.decode_row_v0(texts(dt=[-0.0, 1]))] == [100, 100, 101]


def test_runs_pack_from_three_members_and_end_at_other_events() -> None:
    deltas = [chunk(n, "text-delta", index=0, text="x") for n in range(7)]
    deltas[2] = chunk(2, "text-delta", index=1, text="x")
    events = [event for each in deltas for event in v0.decode_row_v0(each)]
    rows = list(v0.pack_chunk_runs_v0(events))
    assert [each["type"] for each in rows] == ["assistant/chunk"] * 3 + ["text-chunks"]
    assert rows[3]["data"]["dt"] == [1, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"ignorable": True},
        {"data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "x", "y": 1}}},
        {"data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": "0", "text": "x"}}},
        {"data": {"turn": 1, "step": 1, "chunk": {"type": "tool-call-delta", "index": 0, "id": "c", "name": 1}}},
        {"data": {"turn": 1, "step": 2, "chunk": {"type": "text-delta", "index": 0, "text": "x"}}},
        {"time": -(2**53 - 1)},
        {"data": {"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": {}}}},
    ],
)
def test_unusual_chunks_are_stored_verbatim(change: dict[str, Any]) -> None:
    rows = [chunk(n, "text-delta", index=0, text="x") for n in range(5)]
    rows[2] = {**rows[2], **change}
    events = [event for each in rows for event in v0.decode_row_v0(each)]
    assert [v0.encode_row_v0(event) for event in events] == list(v0.pack_chunk_runs_v0(events))


def test_a_surface_row_keeps_operation_and_sources() -> None:
    replaced = user(5, surfaceOp={"op": "replace", "start": 2, "end": 3}, sourceEventSeqs=[2, 3])
    event = v0.decode_row_v0(replaced, line=3)[0]
    assert (event.surface_op, event.source_event_seqs) == (SurfaceOp("replace", 2, 3), (2, 3))
    assert list(event.order or ()) == ["type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs"]
    assert ecma.stringify(v0.encode_row_v0(event)) == ecma.stringify(replaced)
    assert v0.decode_row_v0(user(1))[0].surface_op is APPEND


@pytest.mark.parametrize(
    ("stored", "seqs"),
    [
        ([], ()),
        ([1, 2], (1, 2)),
        ([3, 1], (3, 1)),
        ([[1, 4]], (1, 2, 3, 4)),
        ([0, [2, 4], 6], (0, 2, 3, 4, 6)),
        ([[3, 3]], (3,)),
    ],
)
def test_sources_expand_ranges(stored: list[Any], seqs: tuple[int, ...]) -> None:
    assert v0.decode_row_v0(answer(9, sourceEventSeqs=stored))[0].source_event_seqs == seqs


@pytest.mark.parametrize(
    ("seqs", "stored"),
    [
        ((1, 2), [1, 2]),
        ((1, 2, 3), [[1, 3]]),
        ((0, 2, 3, 5, 6, 7), [0, 2, 3, [5, 7]]),
        ((3, 2, 1), [3, 2, 1]),
        ((), []),
    ],
)
def test_later_releases_store_ranges(seqs: tuple[int, ...], stored: list[Any]) -> None:
    event = Event("assistant/message", 9, 0, {}, source_event_seqs=seqs, surface_op=APPEND)
    assert v0.encode_row_v0_late(event)["sourceEventSeqs"] == stored
    assert v0.encode_row_v0(event)["sourceEventSeqs"] == list(seqs)


@pytest.mark.parametrize(
    "stored",
    [1, [-1], [1.5], [[1]], [[1, 2, 3]], [[3, 1]], [[0, 9]], [[1, 2], 1], [True], [list(range(9)), 1], list(range(10))],
)
def test_malformed_sources_are_undecodable(stored: Any) -> None:
    with pytest.raises(RowRejectedError) as caught:
        v0.decode_row_v0(answer(9, sourceEventSeqs=stored))
    assert caught.value.kind == "undecodable"


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_rows_that_are_no_objects_are_undecodable(value: Any) -> None:
    with pytest.raises(RowRejectedError) as caught:
        v0.decode_row_v0(value)
    assert caught.value.kind == "undecodable"


REFUSED = {
    "unexpected member": row("plan/mode", 3, {}, extra=1),
    "needs a type": row("plan/mode", 3, {}, time=0.5),
    "time": {"type": "plan/mode", "seq": 3, "time": True, "data": {}},
    "data": {"type": "plan/mode", "seq": 3, "time": 1},
    "type": {"type": 5, "seq": 3, "time": 1, "data": {}},
    "ignorable must be true": row("plan/mode", 3, {}, ignorable=False),
    "requires surfaceOp": {key: value for key, value in user(3).items() if key != "surfaceOp"},
    "invalid surfaceOp": user(3, surfaceOp="prepend"),
    "invalid replace": user(3, surfaceOp={"op": "replace", "start": 1}),
    "invalid replace ": user(3, surfaceOp={"op": "replace", "startSeq": 1, "endSeq": 1}),
    "no surface event": row("plan/mode", 3, {}, surfaceOp="append"),
    "must not be empty": user(3, sourceEventSeqs=[]),
    "duplicates": user(3, sourceEventSeqs=[1, 1]),
    "earlier": user(3, sourceEventSeqs=[3]),
    "lacks provider": row("request/header", 3, {"header": {"config": {"model": "m"}}, "reason": "initial"}),
    "reasoningEffort": header(3, config={"provider": "p", "model": "m", "reasoningEffort": ""}),
    "adapterDefaults": header(3, adapterDefaults={"maxTokens": True}),
    "fallback": header(3, "fallback"),
    "request/header-delta": row("request/header-delta", 3, {}),
    "mode/set": row("mode/set", 3, {}),
    "identified message": row("user/message", 3, {"id": "", "role": "user"}, surfaceOp="append"),
    "role": row("user/message", 3, {**user(3)["data"], "role": "assistant"}, surfaceOp="append"),
    "source": row("user/message", 3, {**user(3)["data"], "source": {}}, surfaceOp="append"),
    "content": row("user/message", 3, {**user(3)["data"], "content": "x"}, surfaceOp="append"),
}


@pytest.mark.parametrize("part", REFUSED)
def test_rows_that_the_reader_refuses(part: str) -> None:
    with pytest.raises(RowRejectedError, match=part.strip()) as caught:
        read(0, REFUSED[part])
    assert (caught.value.kind, caught.value.seq) == ("refused", 3)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"source": {"kind": "user"}}, "tool source"),
        ({"source": {"kind": "tool", "callId": "d"}}, "mismatched"),
        ({"content": []}, "one tool-result block"),
        ({"content": [{"type": "text", "text": "x"}]}, "one tool-result block"),
    ],
)
def test_tool_results_are_checked(change: dict[str, Any], part: str) -> None:
    bad = result(3, "c")
    bad["data"]["message"].update(change)
    with pytest.raises(RowRejectedError, match=part):
        read(0, bad)


def test_an_answer_needs_a_model_source() -> None:
    bad = answer(3)
    bad["data"]["message"]["source"] = {"kind": "model", "provider": "p"}
    with pytest.raises(RowRejectedError, match="model source"):
        read(0, bad)


@pytest.mark.parametrize("seq", [-1, 1.5, "3", None, True, 2**53])
def test_a_seq_that_cannot_be_next_is_a_gap(seq: Any) -> None:
    with pytest.raises(RowRejectedError) as caught:
        v0.decode_row_v0({"type": "turn/end", "seq": seq, "time": 1, "data": {}})
    assert (caught.value.kind, caught.value.row_type) == ("undecodable", "turn/end")


def test_the_reader_of_0_1_1_takes_negative_zero_for_zero() -> None:
    event = v0.decode_row_v0({"type": "turn/start", "seq": -0.0, "time": -0.0, "data": {"turn": 1}})[0]
    assert ecma.stringify([event.seq, event.time]) == b"[0,0]"


@pytest.mark.parametrize("version", [0, 1])
def test_unknown_types_are_classified(version: int) -> None:
    unknown, ignorable, known = read(
        version, row("x/y", 0, {}), row("x/y", 1, None, ignorable=True), step_of("step/start", 2)
    )
    kinds = [FORMATS[version].classify(event) for event in (unknown, ignorable, known)]
    assert kinds == ["required-unknown", "ignorable", "known"]


def test_format_1_asks_more_of_packed_rows() -> None:
    for bad in (calls(id=""), texts(turn=1.5), texts(index=-1)):
        with pytest.raises(RowRejectedError):
            FORMATS[1].scan_row(bad)
    assert len(FORMATS[1].scan_row(TEXTS)) == 3


@pytest.mark.parametrize("version", [0, 1])
def test_session_header_members(version: int) -> None:
    more = {"parentSession": "p", "seedLength": 3, "origin": "subagent", "agentPreset": "a"}
    found = FORMATS[version].parse_session_header({**HEADERS[version], **more})
    assert (found.id, found.created_at, found.cwd, found.parent_session) == ("s1", 5, "/w", "p")
    assert (found.seed_length, found.is_seeded, found.origin, found.agent_preset) == (3, None, "subagent", "a")


BAD_HEADERS: list[dict[str, Any]] = [
    {"createdAt": -1},
    {"createdAt": -0.0},
    {"createdAt": True},
    {"id": 1},
    {"cwd": "w"},
    {"cwd": None},
    {"delegationDepth": None},
    {"origin": "user"},
    {"agentPreset": None},
    {"type": "sessions"},
    {"sandboxMode": "x"},
    {"approvalPolicy": "x"},
]


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("change", BAD_HEADERS)
def test_session_headers_that_are_refused(version: int, change: dict[str, Any]) -> None:
    with pytest.raises(RowRejectedError):
        FORMATS[version].parse_session_header({**HEADERS[version], **change})


@pytest.mark.parametrize("cwd", ["C:\\work", "c:/work", "\\\\host\\share", "/"])
def test_windows_paths_are_absolute(cwd: str) -> None:
    assert FORMATS[0].parse_session_header({**HEADERS[0], "cwd": cwd}).cwd == cwd


@pytest.mark.parametrize(("version", "accepts"), [(0, True), (1, False), (2, False), (3, False), (4, False)])
def test_unknown_header_members(version: int, accepts: bool) -> None:
    parse = FORMATS[version].parse_session_header
    if accepts:
        assert parse({**HEADERS[version], "later": 1}).raw["later"] == 1
    else:
        with pytest.raises(RowRejectedError, match="later"):
            parse({**HEADERS[version], "later": 1})


def test_seeding_members_belong_to_their_formats() -> None:
    with pytest.raises(RowRejectedError, match="isSeeded"):
        FORMATS[1].parse_session_header({**HEADERS[1], "isSeeded": False})
    for version in (2, 3, 4):
        with pytest.raises(RowRejectedError, match="seedLength"):
            FORMATS[version].parse_session_header({**HEADERS[version], "seedLength": 0})
        assert FORMATS[version].parse_session_header({**HEADERS[version], "isSeeded": True}).is_seeded is True
