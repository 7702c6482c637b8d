"""Stream records of format 2 and later."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.formats import FormatError
from dsh_audit.formats.stream import expand_stream, pack_stream


def text(part: str, index: int = 0) -> dict[str, Any]:
    return {"type": "text-delta", "index": index, "text": part}


def call(part: str, **members: Any) -> dict[str, Any]:
    return {"type": "tool-call-delta", "index": 1, "id": "c", **members, "argumentsDelta": part}


END = {"type": "finish", "reason": {"kind": "stop"}}

STREAMS: list[tuple[list[tuple[int, Any]], list[Any]]] = [
    ([], []),
    ([(5, text("a"))], [{"type": "text-chunks", "time0": 5, "index": 0, "dt": [], "texts": ["a"]}]),
    (
        [(5, text("a")), (4, text("")), (9, END)],
        [
            {"type": "text-chunks", "time0": 5, "index": 0, "dt": [-1], "texts": ["a", ""]},
            {"type": "chunk", "time": 9, "chunk": END},
        ],
    ),
    (
        [(5, text("a")), (6, text("b", 1))],
        [
            {"type": "text-chunks", "time0": 5, "index": 0, "dt": [], "texts": ["a"]},
            {"type": "text-chunks", "time0": 6, "index": 1, "dt": [], "texts": ["b"]},
        ],
    ),
    (
        [(1, call("{", name="n")), (2, call("}")), (3, call(""))],
        [
            {"type": "tool-call-chunks", "time0": 1, "index": 1, "dt": [], "id": "c", "name": "n", "args": ["{"]},
            {"type": "tool-call-chunks", "time0": 2, "index": 1, "dt": [1], "id": "c", "args": ["}", ""]},
        ],
    ),
    (
        [(1, call("{", name="")), (2, call("}", name=""))],
        [
            {"type": "chunk", "time": 1, "chunk": call("{", name="")},
            {"type": "chunk", "time": 2, "chunk": call("}", name="")},
        ],
    ),
    (
        [(-(2**53) + 1, text("a")), (2**53 - 1, text("b"))],
        [
            {"type": "text-chunks", "time0": -(2**53) + 1, "index": 0, "dt": [], "texts": ["a"]},
            {"type": "text-chunks", "time0": 2**53 - 1, "index": 0, "dt": [], "texts": ["b"]},
        ],
    ),
]


@pytest.mark.parametrize(("chunks", "stream"), STREAMS)
def test_both_ways(chunks: list[tuple[int, Any]], stream: list[Any]) -> None:
    assert pack_stream(chunks) == stream
    assert list(expand_stream(stream)) == chunks


RUN = {"type": "text-chunks", "time0": 5, "index": 0, "dt": [], "texts": ["a"]}
CALL = {"type": "tool-call-chunks", "time0": 5, "index": 0, "dt": [], "id": "c", "args": ["a"]}


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [1],
        [{"type": "x"}],
        [{**RUN, "more": 1}],
        [{**RUN, "time0": 0.5}],
        [{**RUN, "index": -1}],
        [{**RUN, "dt": [1]}],
        [{**RUN, "texts": []}],
        [{**RUN, "texts": [1]}],
        [{**RUN, "texts": ["a", "b"], "dt": [2**53 - 1]}],
        [{**CALL, "id": ""}],
        [{**CALL, "name": ""}],
        [{"type": "chunk", "time": 1, "chunk": []}],
        [{"type": "chunk", "time": 1, "chunk": {"x": -0.0}}],
        [{"type": "chunk", "time": 1.5, "chunk": {}}],
        [{"type": "chunk", "time": 1}],
    ],
)
def test_malformed_streams(bad: Any) -> None:
    with pytest.raises(FormatError):
        list(expand_stream(bad))


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "x"},
        {"type": "text-delta", "index": -1, "text": "a"},
        {"type": "text-delta", "index": 0},
        {"type": "tool-call-delta", "index": 0, "id": 1, "argumentsDelta": ""},
        {"type": "tool-call-delta", "index": 0, "id": "c", "name": None, "argumentsDelta": ""},
        {"type": "usage", "usage": {"x": float("inf")}},
    ],
)
def test_chunks_that_cannot_be_packed(bad: Any) -> None:
    with pytest.raises(FormatError):
        pack_stream([(1, bad)])
