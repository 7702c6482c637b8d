from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_audit.capture.exchange import Fidelity
from dsh_audit.replay.body_diff import BodyDiff, Verdict, common_prefix, diff_body
from dsh_audit.text.pointer import path_at
from dsh_audit.text.to_json import to_json
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.parts import END, Part, element, member

MESSAGES = [
    {"role": "user", "content": "hello — wörld"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "arguments": '{"k":1e3}'}]},
]
HEAD = b'{"model":"toy-1","messages":['
TAIL = b'],"stream":true,"tools":[{"name":"a","parameters":{"b":1,"a":2}}]}'


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def body() -> Body:
    run = PartRun()
    for seq, message in enumerate(MESSAGES, 7):
        run.append(element("messages", len(run), dump(message), "user", seq))
    head, tail = Part(HEAD, "mark", "messages", ("messages",), lead=len(HEAD)), Part(TAIL[:-1], "setting", "", (), (3,))
    return Body((head,), run, len(run), (tail, END))


BASE = body().to_bytes()
PACKAGES = b'"dsh_plugin_packages":{"version":1,"packages":[{"name":"}]"}]}'
LOG = b'"dsh_session_log": {"events":[]} '


def extended(*members: bytes) -> bytes:
    return b",".join((BASE[:-1], *members)) + b"}"


def unlogged(diff: BodyDiff) -> list[tuple[str, int, int]]:
    return [(field.name, field.offset, field.size) for field in diff.unlogged]


def test_identical() -> None:
    assert diff_body(BASE, body()) == BodyDiff(Verdict.IDENTICAL)
    text = diff_body(BASE, body(), Fidelity.TEXT)
    assert (text.verdict, len(text.notes)) == (Verdict.IDENTICAL, 1)


@pytest.mark.parametrize("fidelity", [Fidelity.RAW, Fidelity.TEXT])
def test_identical_except_unlogged(fidelity: Fidelity) -> None:
    captured = extended(LOG, PACKAGES)
    diff = diff_body(captured, body(), fidelity)
    assert diff.verdict is Verdict.IDENTICAL_EXCEPT_UNLOGGED
    assert diff.first_difference is None
    assert unlogged(diff) == [
        ("dsh_session_log", len(BASE), len(LOG) - 1),
        ("dsh_plugin_packages", len(BASE) + len(LOG) + 1, len(PACKAGES)),
    ]
    for field in diff.unlogged:
        assert captured[field.offset :].startswith(f'"{field.name}":'.encode())


def test_a_field_that_was_rebuilt_is_compared() -> None:
    captured = extended(LOG, PACKAGES)
    replayed = body().extended([Part(b"," + LOG, "tail", "", ())])
    assert unlogged(diff_body(captured, replayed)) == [("dsh_plugin_packages", len(BASE) + len(LOG) + 1, len(PACKAGES))]
    assert diff_body(captured[:-1] + b"," + LOG + b"}", replayed).verdict is Verdict.SAME_JSON
    other = body().extended([member("dsh_session_log", b' {"events":[1]}', 9, "tail")])
    diff = diff_body(captured, other)
    assert diff.verdict is Verdict.DIFFERENT and diff.first_difference is not None
    assert (diff.first_difference.pointer, diff.first_difference.seq) == ("/dsh_session_log/events", 9)


def test_an_unlogged_field_before_one_that_was_rebuilt() -> None:
    replayed = body().extended([Part(b"," + PACKAGES, "tail", "", ())])
    log = b'"dsh_session_log":{"events":[]}'
    diff = diff_body(extended(log, PACKAGES), replayed)
    assert diff.verdict is Verdict.IDENTICAL_EXCEPT_UNLOGGED
    assert (unlogged(diff), diff.notes) == ([("dsh_session_log", len(BASE), len(log))], ())
    assert diff_body(extended(log, PACKAGES, log), replayed).verdict is Verdict.SAME_JSON
    early = extended(PACKAGES).replace(b'{"model"', b"{" + log + b',"model"', 1)
    assert diff_body(early, replayed).verdict is Verdict.SAME_JSON


@pytest.mark.parametrize(
    ("tail", "verdict"),
    [
        (b',"max_tokens":5}', Verdict.DIFFERENT),
        (b',"model":"x"}', Verdict.DIFFERENT),
        (b',"x":1,"x":1}', Verdict.DIFFERENT),
        (b',"x":1,}', Verdict.DIFFERENT),
        (b',"x":1', Verdict.DIFFERENT),
        (b',"x":1}}', Verdict.DIFFERENT),
        (b',"x":1} x', Verdict.DIFFERENT),
        (b',"x":[1}}', Verdict.DIFFERENT),
        (b',"x":nul}', Verdict.DIFFERENT),
        (b',"x":}', Verdict.DIFFERENT),
        (b",x:1}", Verdict.DIFFERENT),
        (b",}", Verdict.DIFFERENT),
        (b"", Verdict.DIFFERENT),
        (b"} ", Verdict.SAME_JSON),
        (b"}}", Verdict.DIFFERENT),
        (b',"plugin_field":{"a":[{}]}}', Verdict.IDENTICAL_EXCEPT_UNLOGGED),
        (b',"x":"\\"},{"}', Verdict.IDENTICAL_EXCEPT_UNLOGGED),
    ],
)
def test_tails(tail: bytes, verdict: Verdict) -> None:
    diff = diff_body(BASE[:-1] + tail, body())
    assert diff.verdict is verdict
    if verdict is Verdict.DIFFERENT:
        assert diff.first_difference is not None
        assert diff.first_difference.offset == len(BASE) - (not tail.startswith(b"}"))


@pytest.mark.parametrize(
    ("captured", "note"),
    [
        (json.dumps(json.loads(BASE), ensure_ascii=False).encode(), "white space"),
        (BASE.replace("ö".encode(), b"\\u00f6"), "white space"),
        (BASE.replace(b'{"b":1,"a":2}', b'{"a":2,"b":1}'), "object at /tools/0/parameters"),
        (b" " + BASE, "white space"),
    ],
)
def test_same_json(captured: bytes, note: str) -> None:
    diff = diff_body(captured, body())
    assert diff.verdict is Verdict.SAME_JSON
    assert diff.first_difference is not None
    assert diff.changes == ()
    assert note in diff.notes[0]


def test_same_json_with_fields_set_aside() -> None:
    captured = json.dumps(json.loads(extended(PACKAGES)) | {}).encode()
    diff = diff_body(captured, body())
    assert diff.verdict is Verdict.SAME_JSON
    (field,) = diff.unlogged
    assert json.loads(b"{" + captured[field.offset : field.offset + field.size] + b"}").keys() == {field.name}


@pytest.mark.parametrize("order", [False, True])
def test_parsed_captures_are_compared_by_value(order: bool) -> None:
    value = json.loads(extended(PACKAGES))
    captured = json.dumps(value, ensure_ascii=False, sort_keys=order, separators=(",", ":")).encode()
    diff = diff_body(captured, body(), Fidelity.JSON)
    assert diff.verdict is Verdict.SAME_JSON and diff.first_difference is None
    assert [field.name for field in diff.unlogged] == ["dsh_plugin_packages"]
    value["messages"][1]["tool_calls"][0]["arguments"] = "{}"
    captured = json.dumps(value, ensure_ascii=False, sort_keys=order, separators=(",", ":")).encode()
    diff = diff_body(captured, body(), Fidelity.JSON)
    first = diff.first_difference
    assert diff.verdict is Verdict.DIFFERENT and first is not None
    assert (first.pointer, first.seq) == ("/messages/1/tool_calls/0/arguments", 8)
    assert captured[first.offset :].startswith(b'"{}"')
    del value["stream"]
    assert diff_body(dump(value), body(), Fidelity.JSON).verdict is Verdict.DIFFERENT


def test_parsed_capture_is_never_identical() -> None:
    assert diff_body(BASE, body(), Fidelity.JSON).verdict is Verdict.SAME_JSON


def test_partial() -> None:
    cut = diff_body(BASE[:40], body(), Fidelity.PARTIAL)
    assert (cut.verdict, cut.is_prefix, cut.changes) == (Verdict.DIFFERENT, True, ())
    assert cut.first_difference is not None and cut.first_difference.offset == 40
    wrong = diff_body(BASE[:30] + b"X" + BASE[31:40], body(), Fidelity.PARTIAL)
    assert (wrong.verdict, wrong.is_prefix) == (Verdict.DIFFERENT, False)
    whole = diff_body(BASE, body(), Fidelity.PARTIAL)
    assert (whole.verdict, whole.first_difference) == (Verdict.SAME_JSON, None)


def test_first_difference() -> None:
    captured = BASE.replace("wörld".encode(), "wärld".encode())
    diff = diff_body(captured, body())
    first = diff.first_difference
    assert first is not None
    assert captured[first.offset - 1 : first.offset + 1] == "ä".encode()
    assert (first.pointer, first.seq) == ("/messages/0/content", 7)
    assert "wärld" in first.captured and "wörld" in first.replayed
    assert list(to_json(first)) == ["offset", "pointer", "seq", "captured", "replayed"]
    assert [(change.pointer, change.captured) for change in diff.changes] == [
        ("/messages/0/content", '"hello — wärld"')
    ]


@pytest.mark.parametrize("captured", [b"", b"\xff\xfe", b"[" * 100_000, BASE + b"\x00", b'{"a":' * 50_000])
def test_hostile(captured: bytes) -> None:
    diff = diff_body(captured, body())
    assert diff.verdict is Verdict.DIFFERENT and diff.first_difference is not None
    diff.first_difference.captured.encode()


def resolve(value: Any, path: list[str | int]) -> Any:
    for token in path:
        value = value[token]
    return value


@settings(deadline=None, max_examples=400)
@given(st.integers(0, len(BASE) - 1), st.integers(1, 255))
def test_one_changed_byte_is_found(at: int, flip: int) -> None:
    captured = BASE[:at] + bytes([BASE[at] ^ flip]) + BASE[at + 1 :]
    diff = diff_body(captured, body())
    first = diff.first_difference
    assert first is not None and first.offset == at == common_prefix(captured, body())
    assert first.seq == body().seq_at(at)
    try:
        value = json.loads(captured)
    except ValueError:
        assert diff.verdict is Verdict.DIFFERENT
        return
    if b'{"a":1,"a":2}' in captured:
        return  # the member of this name that counts is another one
    original, path = json.loads(BASE), path_at(captured, at)
    if diff.verdict is Verdict.DIFFERENT:
        # A changed name leads to the member that carries it, which the replay does not have.
        assert path[:-1] == [] or resolve(original, path[:-1]) is not None
        try:
            assert resolve(value, path) != resolve(original, path)
        except KeyError:
            assert path[-1] not in resolve(original, path[:-1])


def test_large_bodies_are_compared_in_blocks() -> None:
    big = b'{"a":"' + b"x" * 30_000_000 + b'"}'
    other = big[:20_000_000] + b"y" + big[20_000_001:]
    assert common_prefix(other, Body.of([Part(big, "setting", "", ())])) == 20_000_000


def test_a_field_too_large_to_be_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsh_audit.replay.body_diff.MAX_PARSED_BYTES", 20)
    diff = diff_body(extended(PACKAGES), body())
    assert diff.verdict is Verdict.IDENTICAL_EXCEPT_UNLOGGED
    assert diff.notes == ("dsh_plugin_packages is too large to be parsed",)
    diff = diff_body(BASE.replace(b"toy-1", b"toy-2"), body())
    assert (diff.verdict, diff.changes) == (Verdict.DIFFERENT, ())
