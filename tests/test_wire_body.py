from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_audit.text.pointer import pointer_at
from dsh_audit.wire.body import Body, PartRun, unshared
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.parts import END, Part, close_list, element, member, merged, open_list

PIECES = st.lists(st.binary(max_size=12), max_size=8)


def text_part(data: bytes, seq: int | None = None) -> Part:
    return Part(data, "setting", "", (), (seq,))


@given(PIECES, PIECES, PIECES, st.data())
def test_size_digest_and_places_agree_with_the_bytes(
    head: list[bytes], middle: list[bytes], tail: list[bytes], data: st.DataObject
) -> None:
    run = PartRun()
    bodies = []
    for number, piece in enumerate(middle):
        run.append(text_part(piece, number))
        before, after = (tuple(text_part(part) for part in parts) for parts in (head, tail))
        expected = b"".join([*head, *middle[: number + 1], *tail])
        bodies.append((Body(before, run, len(run), after), expected))
    for body, expected in data.draw(st.permutations(bodies)):
        assert body.to_bytes() == expected
        assert body.size_bytes == len(expected)
        assert body.sha256() == hashlib.sha256(expected).hexdigest()
        for at in range(len(expected)):
            part, start = body.find(at)
            assert start <= at < start + len(part.data)
            assert expected[start : start + len(part.data)] == part.data


def small_body() -> Body:
    run = PartRun()
    for index in range(3):
        run.append(element("messages", index, b'{"role":"user","content":"hi"}', "user", 10 + index))
    turn = merged(
        "message", "user", ("messages", 3), b",", b'{"role":"user","content":[', [(b'{"a":1}', 20), (b'"b"', 21)], b"]}"
    )
    head = (member("model", b'"m"', 2, first=True), open_list("messages"))
    return Body(head, run, 3, (turn, close_list("messages"), member("stop", b"[1,2]", 4), END))


def test_parts_know_their_pointer_and_events() -> None:
    body = small_body()
    data = body.to_bytes()
    for at in range(len(data) + 2):
        assert body.pointer_at(at) == pointer_at(data, at), data[at:]
    for needle, seq in ((b'"m"', 2), (b'"hi"', 10), (b'{"a"', 20), (b'"b"', 21), (b"1,2", 4)):
        assert body.seq_at(data.index(needle)) == seq
    assert [part.pointer for part in body.parts() if part.kind != "mark"] == [
        "/model",
        *(f"/messages/{index}" for index in range(4)),
        "/stop",
    ]
    assert b"".join(piece for piece, _ in body.pieces()) == data


def test_neighbours_differ_in_what_is_new_only() -> None:
    one = small_body()
    one.run.append(element("messages", 3, b'"next"', "user", 30))
    two = Body(one.head, one.run, 4, one.tail[1:])
    assert unshared(one, two) == ([one.tail[0]], [one.run.slice(3, 4)[0]])
    assert unshared(one, one) == ([], [])


def test_extended_replaces_the_closing_brace() -> None:
    body = Body.of([member("a", b"1", 3, first=True), END])
    extended = body.extended([member("x", b"2", 7, "tail")])
    assert extended.to_bytes() == b'{"a":1,"x":2}'
    assert extended.seq_at(8) == 7
    assert body.to_bytes() == b'{"a":1}'


CAPTURED: tuple[dict[str, Any], ...] = (
    ({"model": "m", "messages": [{"role": "system", "content": "s"}, {"content": []}], "tools": [{"name": "t"}]}),
    ({"input": [{"type": "function_call"}], "instructions": "i", "dsh_session_log": {"events": []}}),
    ({"messages": [], "tools": [], "system": [{"type": "text"}]}),
    ({"messages": "odd", "tools": {"a": 1}}),
    ({}),
)
KINDS = (
    ["setting m", "mark", "system system", "message", "mark", "mark", "tool t", "mark", "mark"],
    ["mark", "message function_call", "mark", "system instructions", "tail dsh_session_log", "mark"],
    ["mark", "mark", "mark", "mark", "system system", "mark"],
    ["message messages", "tool tools", "mark"],
    ["mark"],
)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("value", "kinds"), list(zip(CAPTURED, KINDS, strict=True)))
def test_a_captured_body_is_cut_into_the_same_parts(
    value: dict[str, Any], kinds: list[str], indent: int | None
) -> None:
    data = json.dumps(value, indent=indent).encode()
    body = parse_parts(data)
    assert body.to_bytes() == data
    found = [p.kind if p.kind == "mark" or not p.name else f"{p.kind} {p.name}" for p in body.parts()]
    assert [name.replace("setting model", "setting m") for name in found] == kinds
    for part in body.parts():
        if part.kind != "mark":
            found_value: Any = value
            for token in part.path:
                found_value = found_value[token]
            assert json.loads(part.value) == found_value
    for at in range(len(data)):
        assert body.pointer_at(at) == pointer_at(data, at), data[at:]


@given(st.sampled_from(CAPTURED), st.integers(0, 200), st.binary(max_size=4))
def test_cut_and_foreign_bodies_keep_their_bytes(value: dict[str, Any], cut: int, noise: bytes) -> None:
    data = json.dumps(value).encode()[:cut] + noise
    assert parse_parts(data).to_bytes() == data
