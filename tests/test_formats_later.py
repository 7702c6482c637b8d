"""Formats 2, 3 and 4: rows, acceptance rules, what is fatal even in a dropped suffix."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.events import SurfaceOp
from dsh_audit.formats import (
    FORMATS,
    FormatError,
    RowRejectedError,
    UnsupportedVersionError,
    classify,
    format_of,
    parse_session_header,
)
from dsh_audit.text import ecma
from tests.format_rows import HEADERS, Row, answer, header, read, result, row, user

LATER = (2, 3, 4)
KEYS = {2: ("start", "end"), 3: ("startSeq", "endSeq"), 4: ("startSeq", "endSeq")}


def settled(seq: int, kind: str = "assistant/message", **more: Any) -> Row:
    data = {**answer(seq)["data"], "stream": []}
    if kind == "assistant/attempt":
        return row(kind, seq, {key: value for key, value in data.items() if key != "message"})
    return row(kind, seq, data, **{"surfaceOp": "append", **more})


def tool_result(seq: int, **members: Any) -> Row:
    message = {
        "role": "tool",
        "source": {"kind": "tool", "callId": "c"},
        "toolCallId": "c",
        "content": [],
        "id": f"r{seq}",
        **members,
    }
    return row("tool/result", seq, {"turn": 1, "step": 1, "message": message}, surfaceOp="append")


def system(seq: int, version: int, **members: Any) -> Row:
    source = {"kind": "plugin", "plugin": "x"} if version == 3 else {"kind": "system-prompt"}
    message = {"id": "s", "role": "system", "source": source, "content": [], **members}
    return row("system/message", seq, {"turn": 1, "step": 1, "message": message}, surfaceOp="append")


def developer(seq: int, *blocks: Row, **members: Any) -> Row:
    message = {
        "id": "d",
        "role": "developer",
        "source": {"kind": "tool-registry"},
        "content": list(blocks),
    }
    return row("developer/message", seq, {"turn": 1, "step": 1, "message": message, **members}, surfaceOp="append")


ADDED = {"type": "tool-addition", "toolName": "t"}
REMOVED = {"type": "tool-removal", "toolName": "t"}


def reject(version: int, *rows: Any) -> RowRejectedError:
    with pytest.raises(RowRejectedError) as caught:
        read(version, *rows)
    return caught.value


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    "bad",
    [
        5,
        None,
        {},
        {"type": "x", "seq": 0, "time": 0},
        row("plan/mode", 0, {}, extra=1),
        row("plan/mode", 0, {}, time=1.5),
        row("plan/mode", 0, {}, time=-0.0),
        row("plan/mode", 0, {}, ignorable=False),
        row("plan/mode", -1, {}),
        {**row("plan/mode", 0, {}), "seq": -0.0},
        {**row("plan/mode", 0, {}), "type": 1},
        user(3, sourceEventSeqs=[[0, 3]]),
        user(3, sourceEventSeqs=[1, 1]),
        user(3, sourceEventSeqs=[3]),
        user(3, sourceEventSeqs=None),
    ],
)
def test_undecodable_rows(version: int, bad: Any) -> None:
    assert reject(version, bad).kind == "undecodable"


@pytest.mark.parametrize("version", LATER)
def test_packed_rows_are_gone(version: int) -> None:
    packed = {"type": "text-chunks", "seq0": 0, "time0": 0, "data": {}}
    assert reject(version, packed).kind == "undecodable"


@pytest.mark.parametrize("version", LATER)
def test_replacements_use_the_names_of_their_format(version: int) -> None:
    start, end = KEYS[version]
    good = user(5, surfaceOp={"op": "replace", start: 2, end: 4}, sourceEventSeqs=[[2, 4]])
    event = read(version, good)[0]
    assert (event.surface_op, event.source_event_seqs) == (SurfaceOp("replace", 2, 4), (2, 3, 4))
    assert ecma.stringify(FORMATS[version].encode_row(event)) == ecma.stringify(good)
    other = KEYS[3 if version == 2 else 2]
    reject(version, user(5, surfaceOp={"op": "replace", other[0]: 2, other[1]: 4}))
    reject(version, user(5, surfaceOp={"op": "replace", start: 2, end: 5}))


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    "bad",
    [
        {key: value for key, value in user(3).items() if key != "surfaceOp"},
        row("plan/mode", 3, {}, surfaceOp="append"),
        row("plan/mode", 3, {}, sourceEventSeqs=[1]),
        user(3, sourceEventSeqs=[]),
        settled(3, sourceEventSeqs=[1]),
    ],
)
def test_surface_rules(version: int, bad: Row) -> None:
    error = reject(version, bad)
    assert (error.kind, error.seq) == ("undecodable" if version == 3 else "refused", 3)


@pytest.mark.parametrize("version", LATER)
def test_unknown_ignorable_rows_keep_whatever_they_carry(version: int) -> None:
    opaque = row("x/y", 3, None, ignorable=True, sourceEventSeqs=[1], surfaceOp={"any": [1]})
    event = read(version, opaque)[0]
    assert (event.surface_op, event.opaque_op) == (None, {"any": [1]})
    assert classify(event, version) == "ignorable"
    assert ecma.stringify(FORMATS[version].encode_row(event)) == ecma.stringify(opaque)


@pytest.mark.parametrize("version", LATER)
@pytest.mark.parametrize(
    "bad",
    [
        row("assistant/attempt", 3, {"turn": 1, "step": 1}),
        row("assistant/attempt", 3, {"turn": 1, "step": -1, "stream": []}),
        row("assistant/attempt", 3, []),
        row("request/header", 3, {"header": {"config": {}}, "reason": "initial"}),
        row("user/message", 3, {**user(3)["data"], "id": ""}, surfaceOp="append"),
    ],
)
def test_restore_rules(version: int, bad: Row) -> None:
    assert reject(version, bad).kind == "refused"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (2, "assistant/attempt"),
        (2, "feedback/message-put"),
        (3, "image/offload"),
        (3, "workspace/changes"),
        (3, "tool/ptc-dispatch"),
        (4, "developer/message"),
        (4, "working-directory/change"),
        (4, "job/settled"),
    ],
)
def test_known_types(version: int, name: str) -> None:
    assert name in FORMATS[version].known_types
    assert name not in FORMATS[version - 1].known_types


@pytest.mark.parametrize(("version", "count"), [(0, 51), (1, 51), (2, 53), (3, 58), (4, 62)])
def test_number_of_known_types(version: int, count: int) -> None:
    assert len(FORMATS[version].known_types) == count
    assert FORMATS[version].surface_types <= FORMATS[version].known_types


V3_FATAL = [
    row("request/header", 3, {"header": {"config": {}, "system": "x"}}),
    row("request/header", 3, {}),
    row("tool/code-dispatch", 3, {}),
    row("system/message", 3, {}, surfaceOp="append"),
    system(3, 3, role="user"),
    system(3, 3, id=""),
    system(3, 3, source={"kind": "user"}),
    system(3, 3, content=[{"type": "text"}]),
    {**system(3, 3), "data": {**system(3, 3)["data"], "turn": 0}},
]


@pytest.mark.parametrize("bad", V3_FATAL)
def test_format_3_refuses_at_once(bad: Row) -> None:
    assert reject(3, bad).kind == "inadmissible"


@pytest.mark.parametrize(
    "bad",
    [
        header(3, tools=[]),
        header(3, adapterDefaults={}),
        {**result(3, "c"), "data": {**result(3, "c")["data"], "error": {"name": "n", "code": "c"}}},
    ],
)
def test_format_3_canonical_payloads(bad: Row) -> None:
    error = reject(3, bad)
    assert (error.kind, error.row_type) == ("undecodable", bad["type"])


def test_format_3_system_message() -> None:
    event = read(3, system(3, 3, content=[{"type": "text", "text": "x"}]))[0]
    assert event.type in FORMATS[3].surface_types


def test_retired_dispatches_may_be_ignorable() -> None:
    for version in (3, 4):
        event = read(version, row("tool/code-dispatch", 3, {}, ignorable=True))[0]
        assert classify(event, version) == "ignorable"


V4_FATAL = {
    "header.system": row("request/header", 3, {"header": {"config": {}, "system": "x"}}),
    "retired event type": row("tool/code-dispatch", 3, {}),
    "deferLoading": header(3, tools=[{"name": "t", "deferLoading": False}]),
    "plugin is retired": row("user/message", 3, {"source": {"kind": "plugin"}}, surfaceOp="append"),
    "plugin is retired ": row("agent/inbox/spliced", 3, {"inserted": [{"source": {"kind": "plugin"}}]}),
    "tool-result wrapper": row("user/message", 3, {"content": [{"type": "tool-result"}]}),
    "tool-result wrapper ": row("compaction/summary", 3, {"rawOutput": [{"type": "tool-result"}]}),
    "tool-result wrapper  ": row(
        "assistant/attempt",
        3,
        {"stream": [{"type": "chunk", "chunk": {"type": "block-start", "blockType": "tool-result"}}]},
    ),
    "tool-addition requires developer": row("user/message", 3, {"content": [ADDED]}),
    "developer role outside": row("user/message", 3, {"role": "developer"}),
    "tool-role": tool_result(3, role="user"),
    "toolCallId must match": tool_result(3, toolCallId="d"),
    "toolCallId": tool_result(3, toolCallId=""),
    "must match its tool source": tool_result(3, source={"kind": "user", "callId": "c"}),
    "array content": tool_result(3, content="x"),
    "wrapper": tool_result(3, content=[{"type": "tool-result"}]),
    "isError": tool_result(3, isError=None),
    "result that is none": {**tool_result(3), "data": {**tool_result(3)["data"], "error": {}}},
    "headerSeq": developer(3, ADDED),
    "omit headerSeq": developer(3, REMOVED, headerSeq=1),
    "toolName": developer(3, {"type": "tool-removal"}),
    "inline": developer(3, {**ADDED, "tool": {}}, headerSeq=1),
    "system content": system(3, 4, content=[{"type": "text"}]),
    "mediaType": system(3, 4, content=[{"type": "image", "attachment": {"attachmentId": "a"}}]),
    "turn": {**system(3, 4), "data": {**system(3, 4)["data"], "turn": 0}},
    "role": system(3, 4, role="user"),
}


@pytest.mark.parametrize("part", V4_FATAL)
def test_format_4_refuses_at_once(part: str) -> None:
    error = reject(4, V4_FATAL[part])
    assert error.kind == "inadmissible"
    assert part.strip() in error.reason


def fork(seq: int, message_id: str, **more: Any) -> Row:
    content = [{"type": "text", "text": "x"}]
    made = tool_result(seq, id=message_id, isError=True, content=content)
    made["data"]["error"] = {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    return {**made, **more}


def test_results_of_forks() -> None:
    assert read(4, fork(3, "forked-tool-result-c-3"))[0].seq == 3
    again = {"surfaceOp": {"op": "replace", "startSeq": 3, "endSeq": 3}, "sourceEventSeqs": [3]}
    assert read(4, fork(9, "forked-tool-result-c-3", **again))[0].seq == 9
    for bad in (
        fork(3, "forked-tool-result-c-4"),
        fork(3, "forked-tool-result-c-03"),
        fork(3, "forked-tool-result-d-3"),
        fork(9, "forked-tool-result-c-3", **{**again, "sourceEventSeqs": [2, 3]}),
    ):
        assert reject(4, bad).kind == "inadmissible"


@pytest.mark.parametrize(
    "bad",
    [
        header(3, tools=[]),
        header(3, "fallback"),
        row("request/header", 3, {**header(3)["data"], "startsSeries": False}),
        system(3, 4, source={"kind": "runtime-context"}),
        row("agent/inbox/spliced", 3, {"inserted": [{"source": {}}]}),
        row("agent/inbox/spliced", 3, {}),
    ],
)
def test_format_4_restore_rules(bad: Row) -> None:
    assert reject(4, bad).kind == "refused"


def test_format_4_accepts() -> None:
    rows = [
        system(0, 4),
        header(1, tools=[{"name": "t", "deferLoading": True}]),
        developer(2, ADDED, headerSeq=1),
        developer(3, REMOVED),
        settled(4),
        tool_result(5, isError=False),
        row("turn/end", 6, {"turn": 1, "reason": {"kind": "forked"}}),
    ]
    assert [event.seq for event in read(4, *rows)] == list(range(7))


def test_deep_content_is_refused_not_fatal() -> None:
    block: Row = {"type": "text", "text": "x"}
    for _ in range(100_000):
        block = {"type": "tool-result", "toolCallId": "c", "content": [block]}
    with pytest.raises(FormatError):
        read(3, system(3, 3, content=[block]))


def test_version_dispatch() -> None:
    assert parse_session_header(HEADERS[3]).version == 3
    with pytest.raises(UnsupportedVersionError, match="format 5"):
        format_of({"version": 5})
    for bad in (None, {}, {"version": -1}, {"version": 1.5}, {"version": True}, {"version": "0"}):
        with pytest.raises(RowRejectedError):
            format_of(bad)
