"""Surface, messages and image marks of each format version, one table a rule.

The rows of formats 3 and 4 give the same answers in the folds of harness 0.1.5-rc.1 and 0.2.1-rc.2 [run];
format 0 is compared with released packages in tests/harness.
"""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.events import Event, SurfaceOp
from dsh_audit.projection.messages import derive_event_message, derive_messages
from dsh_audit.projection.state import SessionState
from dsh_audit.projection.surface import (
    IncrementalSurface,
    ProjectionError,
    Rejection,
    fold_surface,
    is_surface_event,
)
from tests.projection_events import Raw, surface_data, text, to_event

IMAGE = {"type": "image", "attachment": {"attachmentId": "a"}}


def _event(kind: str, seq: int, data: Raw, **more: Any) -> Raw:
    return {"type": kind, "seq": seq, "time": 0, "data": data, **more}


def _put(kind: str, seq: int, *, content: list[Any] | None = None, op: Any = "append", **more: Any) -> Raw:
    blocks = [text(f"text {seq}")] if content is None else content
    if kind in ("system/message", "developer/message"):
        role = kind.partition("/")[0]
        message = {"id": f"m{seq}", "role": role, "source": {"kind": "plugin"}, "content": blocks}
        data: Raw = {"turn": 1, "step": 1, "message": message}
    else:
        data = surface_data(kind, seq, blocks)
    if isinstance(op, tuple):
        more.setdefault("sourceEventSeqs", list(range(op[0], op[1] + 1)))
        op = {"op": "replace", "startSeq": op[0], "endSeq": op[1]}
    return _event(kind, seq, data, surfaceOp=op, **more)


def _tool(seq: int, *, op: Any = "append", **change: Any) -> Raw:
    """A format 4 tool result."""
    raw = _put("tool/result", seq, op=op)
    message = {"id": "r", "role": "tool", "toolCallId": "c", "source": {"kind": "tool"}}
    raw["data"]["message"] = {**message, "content": [text(str(seq))], **change}
    return raw


def _offload(seq: int, *targets: Any) -> Raw:
    entries = [{"seq": target[0], "imageIndexes": target[1]} for target in targets]
    return _event("image/offload", seq, {"targets": entries})


TOOL = {"name": "t", "description": "d", "parameters": {}}


def _header(seq: int, *tools: Raw) -> Raw:
    header = {"config": {"provider": "p", "model": "m"}, **({"tools": list(tools)} if tools else {})}
    return _event("request/header", seq, {"header": header, "reason": "change"})


def _change(seq: int, *blocks: Raw, **data: Any) -> Raw:
    raw = _put("developer/message", seq, content=list(blocks))
    raw["data"].update(data)
    return raw


ADD, REMOVE = {"type": "tool-addition", "toolName": "t"}, {"type": "tool-removal", "toolName": "t"}
HEAD, USER = _put("system/message", 0), _put("user/message", 1)
PICTURES = _put("user/message", 0, content=[IMAGE, text("x"), IMAGE, {**IMAGE, "offloaded": True}])

CASES: dict[str, tuple[int, list[Raw], Rejection | list[int]]] = {
    "v3 system message joins": (3, [HEAD, USER], [0, 1]),
    "v3 head replaced by a system message": (3, [HEAD, USER, _put("system/message", 2, op=(0, 0))], [2, 1]),
    "v3 head replaced with more": (
        3,
        [HEAD, USER, _put("system/message", 2, op=(0, 1))],
        Rejection.SYSTEM_HEAD,
    ),
    "v3 head replaced by a user message": (
        3,
        [HEAD, USER, _put("user/message", 2, op=(0, 0))],
        Rejection.SYSTEM_HEAD,
    ),
    "v3 later system message may be shadowed": (
        3,
        [HEAD, USER, _put("system/message", 2), _put("user/message", 3, op=(1, 2))],
        [0, 3],
    ),
    "v3 node 0 that is no system message": (
        3,
        [_put("user/message", 0), _put("system/message", 1, op=(0, 0))],
        [1],
    ),
    "v3 assistant message with sources": (
        3,
        [_put("user/message", 0), _put("assistant/message", 1, sourceEventSeqs=[])],
        Rejection.SOURCES_ON_ASSISTANT,
    ),
    "v3 replacement by an assistant message": (
        3,
        [_put("user/message", 0), _put("assistant/message", 1, op=(0, 0))],
        Rejection.SOURCES_ON_ASSISTANT,
    ),
    "v3 empty sources": (3, [_put("user/message", 0, sourceEventSeqs=[])], Rejection.SOURCES_EMPTY),
    "v3 later endpoint": (
        3,
        [_put("user/message", 0), _put("user/message", 1, op=(0, 1), sourceEventSeqs=[0])],
        Rejection.ENDPOINT_NOT_EARLIER,
    ),
    "v3 sources before range": (
        3,
        [_put("user/message", 0), _event("x", 1, {}), _put("user/message", 2, op=(1, 1), sourceEventSeqs=[])],
        Rejection.SOURCES_EMPTY,
    ),
    "v3 unknown ignorable event keeps what it likes": (
        3,
        [_event("plugin/x", 0, {}, ignorable=True, surfaceOp="append", sourceEventSeqs=[])],
        [],
    ),
    "v3 required log-only event with surfaceOp": (
        3,
        [_event("turn/start", 0, {}, surfaceOp="append")],
        Rejection.OP_ON_LOG_ONLY,
    ),
    "v3 developer message is log-only": (3, [_event("developer/message", 0, {})], []),
    "v4 rewrite of content": (4, [_tool(0), _tool(1, op=(0, 0))], [1]),
    "v4 rewrite of isError": (
        4,
        [_tool(0), _tool(1, op=(0, 0), isError=True)],
        Rejection.REWRITE_CHANGES_MORE,
    ),
    "v4 addition": (4, [_header(0), _header(1, TOOL), _change(2, ADD, headerSeq=1)], [2]),
    "v4 addition without headerSeq": (4, [_header(0, TOOL), _change(1, ADD)], Rejection.DEVELOPER_MALFORMED),
    "v4 headerSeq without addition": (
        4,
        [_header(0, TOOL), _change(1, REMOVE, headerSeq=0)],
        Rejection.DEVELOPER_MALFORMED,
    ),
    "v4 removal": (4, [_header(0, TOOL), _header(1), _change(2, REMOVE)], [2]),
    "v4 headerSeq of another event": (
        4,
        [_event("x", 0, {}), _change(1, ADD, headerSeq=0)],
        Rejection.DEVELOPER_HEADER,
    ),
    "v4 headerSeq of a later event": (
        4,
        [_header(0, TOOL), _change(1, ADD, headerSeq=2), _header(2, TOOL)],
        Rejection.DEVELOPER_HEADER,
    ),
    "v4 added tool not in the header": (
        4,
        [_header(0), _change(1, ADD, headerSeq=0)],
        Rejection.DEVELOPER_TOOL,
    ),
    "v4 added tool twice in the header": (
        4,
        [_header(0, TOOL, TOOL), _change(1, ADD, headerSeq=0)],
        Rejection.DEVELOPER_TOOL,
    ),
    "v4 added tool half defined": (
        4,
        [_header(0, {"name": "t", "description": "d"}), _change(1, ADD, headerSeq=0)],
        Rejection.DEVELOPER_TOOL,
    ),
    "v4 deferLoading false": (
        4,
        [_header(0, {**TOOL, "deferLoading": False}), _change(1, ADD, headerSeq=0)],
        Rejection.DEVELOPER_TOOL,
    ),
    "v4 addition with a definition": (
        4,
        [_header(0, TOOL), _change(1, {**ADD, "tool": TOOL}, headerSeq=0)],
        Rejection.DEVELOPER_MALFORMED,
    ),
    "v4 change without a name": (
        4,
        [_change(0, {"type": "tool-removal", "toolName": ""})],
        Rejection.DEVELOPER_MALFORMED,
    ),
    "v4 marks": (4, [PICTURES, _offload(1, (0, [0])), _offload(2, (0, [1]))], [0]),
    "v4 mark of what is no image": (4, [PICTURES, _offload(1, (0, [1, 3]))], Rejection.OFFLOAD_NO_IMAGE),
    "v4 mark of a marked block": (4, [PICTURES, _offload(1, (0, [2]))], Rejection.OFFLOAD_TWICE),
    "v4 mark twice": (4, [PICTURES, _offload(1, (0, [0])), _offload(2, (0, [0]))], Rejection.OFFLOAD_TWICE),
    "v4 marks in another order": (4, [PICTURES, _offload(1, (0, [1, 0]))], Rejection.OFFLOAD_INDEXES),
    "v4 negative mark": (4, [PICTURES, _offload(1, (0, [-1]))], Rejection.OFFLOAD_INDEXES),
    "v4 no indexes": (4, [PICTURES, _offload(1, (0, []))], Rejection.OFFLOAD_MALFORMED),
    "v4 no targets": (4, [PICTURES, _offload(1)], Rejection.OFFLOAD_MALFORMED),
    "v4 target twice": (4, [PICTURES, _offload(1, (0, [0]), (0, [1]))], Rejection.OFFLOAD_DUPLICATE),
    "v4 target off the surface": (4, [PICTURES, _offload(1, (1, [0]))], Rejection.OFFLOAD_NOT_CURRENT),
    "v4 target replaced": (
        4,
        [PICTURES, _put("user/message", 1, op=(0, 0)), _offload(2, (0, [0]))],
        Rejection.OFFLOAD_NOT_CURRENT,
    ),
    "v4 target of an assistant message": (
        4,
        [_put("assistant/message", 0, content=[IMAGE]), _offload(1, (0, [0]))],
        Rejection.OFFLOAD_NOT_INPUT,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_by_version(name: str) -> None:
    version, raws, expected = CASES[name]
    try:
        actual: Any = list(fold_surface(map(to_event, raws), version=version).seqs)
    except ProjectionError as error:
        actual = error.rejection
        assert error.seq == next(raw["seq"] for raw in raws[::-1] if raw["seq"] <= error.seq)
    assert actual == expected


def test_op_that_no_decoder_makes() -> None:
    for op in (SurfaceOp("replace"), SurfaceOp("replace", 0, -1), SurfaceOp("replace", 0, 2**53)):
        event = Event("user/message", 0, 0, surface_data("user/message", 0), surface_op=op)
        with pytest.raises(ProjectionError) as caught:
            fold_surface([event], version=0)
        assert caught.value.rejection is Rejection.OP_INVALID


@pytest.mark.parametrize("data", [None, [], {}, {"message": None}, {"message": {"content": "x"}}])
@pytest.mark.parametrize("kind", ["user/message", "assistant/message", "tool/result"])
def test_messages_of_another_shape_are_refused(kind: str, data: Any) -> None:
    with pytest.raises(ProjectionError) as caught:
        derive_event_message(Event(kind, 7, 0, data))
    assert (caught.value.rejection, caught.value.seq) == (Rejection.MALFORMED, 7)


@pytest.mark.parametrize(
    ("kind", "yields"),
    [
        ("user/message", True),
        ("tool/result", True),
        ("assistant/message", False),
        ("system/message", False),
        ("developer/message", False),
    ],
)
def test_empty_content_lists(kind: str, yields: bool) -> None:
    assert (derive_event_message(to_event(_put(kind, 0, content=[]))) is not None) is yields
    assert derive_event_message(to_event(_put(kind, 0, content=[text("")]))) is not None


def test_surface_types_by_version() -> None:
    kinds = ("user/message", "system/message", "developer/message", "turn/start")
    flags = {
        version: [is_surface_event(to_event(_put(kind, 0)), version=version) for kind in kinds[:3]]
        for version in range(5)
    }
    assert flags == {**flags, 0: [True, False, False], 3: [True, True, False], 4: [True] * 3}
    assert flags[0] == flags[1] == flags[2]
    assert not is_surface_event(Event("user/message", 0, 0, {}), version=0)
    assert not is_surface_event(to_event(_event("turn/start", 0, {}, surfaceOp="append")), version=0)


def _offloaded(blocks: list[Any]) -> list[Any]:
    return [
        _offloaded(block["content"]) if "content" in block else block.get("offloaded", False)
        for block in blocks
        if block["type"] != "text"
    ]


def test_marks_lie_over_the_message_of_their_prefix() -> None:
    events = [to_event(raw) for raw in (PICTURES, _offload(1, (0, [0])), _offload(2, (0, [1])))]
    state = SessionState(4)
    snapshots = []
    for event in events:
        state.apply(event)
        snapshots.append(state.snapshot())
    seen = [_offloaded(snapshot.messages()[0].message["content"]) for snapshot in snapshots]
    assert seen == [[False, False, True], [True, False, True], [True, True, True]]
    assert "offloaded" not in events[0].data["content"][0], "the log itself changed"
    assert snapshots[0].messages()[0].message is events[0].data
    assert list(derive_messages(events, 1, version=4)[0].message["content"][0]) == [*IMAGE, "offloaded"]


def test_marks_count_nested_images_depth_first_in_v3() -> None:
    inner = {"type": "tool-result", "content": [IMAGE, text("x"), IMAGE]}
    raw = _put("user/message", 0, content=[IMAGE, inner, IMAGE])
    events = [to_event(raw), to_event(_offload(1, (0, [1, 3])))]
    (message,) = derive_messages(events, version=3)
    assert _offloaded(message.message["content"]) == [False, [True, False], True]
    with pytest.raises(ProjectionError):
        derive_messages(events, version=4)
    assert derive_messages(events, version=0)[0].message is events[0].data


def test_depth_is_no_limit() -> None:
    block: Raw = IMAGE
    other: Raw = {"type": "text"}
    for _ in range(20_000):
        block = {"type": "tool-result", "content": [block]}
        other = {"type": "tool-result", "content": [other]}
    events = [to_event(_put("user/message", 0, content=[block])), to_event(_offload(1, (0, [0])))]
    assert fold_surface(events, version=3).marks.image_indexes(0) == (0,)
    assert len(derive_messages(events, version=3)) == 1
    deep = [to_event(_put("tool/result", 0)), to_event(_put("tool/result", 1, op=(0, 0)))]
    for event, error in zip(deep, (block, other), strict=True):
        event.data["error"] = error
    with pytest.raises(ProjectionError) as caught:
        fold_surface(deep, version=3)
    assert caught.value.rejection is Rejection.REWRITE_CHANGES_MORE


def test_a_surface_is_a_sequence() -> None:
    surface = fold_surface((to_event(_put("user/message", seq)) for seq in range(4)), version=0)
    assert (len(surface), surface[0].seq, surface[-1].seq) == (4, 0, 3)
    assert [node.seq for node in surface[1:3]] == [1, 2] and surface[3] in surface
    with pytest.raises(IndexError):
        surface[4]
    assert repr(surface.nodes) == "Prefix(4 of 4 items)"


def test_through_reads_no_further_than_needed() -> None:
    source = (to_event(_put("user/message", seq)) for seq in range(4))
    assert fold_surface(source, through=1, version=0).seqs == (0, 1)
    assert next(source).seq == 2
    assert fold_surface([], through=5, version=0).seqs == ()
    assert fold_surface([to_event(HEAD)], through=-1, version=0).seqs == ()


def test_find() -> None:
    fold = IncrementalSurface(version=3)
    replacing = _put("user/message", 3, op=(1, 2))
    for raw in (HEAD, USER, _put("user/message", 2), replacing, _put("user/message", 4)):
        fold.apply(to_event(raw))
    found = {seq: fold.find(seq) for seq in range(6)}
    assert {seq: node.seq for seq, node in found.items() if node} == {0: 0, 3: 3, 4: 4}
    assert fold.next_seq == 5
