"""Chat completions, one table: (message or settings, wire bytes)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Rebuilt, Replay
from dsh_audit.wire.adapter import CannotEncodeError
from dsh_audit.wire.deepseek_chat import encode_message
from tests.logs import SessionV0, text_block, two_turns


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content), "source": {"kind": "model"}, "id": "x"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content), "source": {"kind": "user"}, "id": "x"}


def result(*content: Any, **extra: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": "c1", "content": list(content), **extra}


CALL = {"type": "tool-call", "id": "c1", "name": "add", "arguments": '{"b": 1.0,"2":1e3}'}
REASON = {"type": "reasoning", "text": "hm"}

MESSAGES: list[tuple[str, dict[str, Any], list[bytes]]] = [
    ("texts are joined", user(text_block("a"), text_block("b")), [b'{"role":"user","content":"ab"}']),
    ("an empty user text is sent", user(text_block("")), [b'{"role":"user","content":""}']),
    ("halves heal", user(text_block("\ud83d"), text_block("\ude00")), ['{"role":"user","content":"😀"}'.encode()]),
    ("a lone half is escaped", user(text_block("\ud83d")), [rb'{"role":"user","content":"\ud83d"}']),
    (
        "text stands before the results of its message",
        user(result(text_block("3")), text_block("see")),
        [b'{"role":"user","content":"see"}', b'{"role":"tool","tool_call_id":"c1","content":"3"}'],
    ),
    ("no text, only results", user(result(text_block("3"))), [b'{"role":"tool","tool_call_id":"c1","content":"3"}']),
    ("an empty result", user(result()), [b'{"role":"tool","tool_call_id":"c1","content":"(no output)"}']),
    (
        "a result of empty text, its error flag is lost",
        user(result(text_block(""), isError=True)),
        [b'{"role":"tool","tool_call_id":"c1","content":"(no output)"}'],
    ),
    (
        "nested results are flattened",
        user(result(text_block("a"), result(text_block("b")))),
        [b'{"role":"tool","tool_call_id":"c1","content":"ab"}'],
    ),
    ("an answer", assistant(text_block("hi")), [b'{"role":"assistant","content":"hi"}']),
    ("content is never null", assistant(REASON), [b'{"role":"assistant","content":"","reasoning_content":"hm"}']),
    ("an empty answer text", assistant(text_block("")), [b'{"role":"assistant","content":""}']),
    (
        "reasoning before calls, arguments verbatim",
        assistant(REASON, text_block("t"), CALL),
        [
            b'{"role":"assistant","content":"t","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function",'
            b'"function":{"name":"add","arguments":"{\\"b\\": 1.0,\\"2\\":1e3}"}}]}'
        ],
    ),
    (
        "the tool role of a newer log",
        {"role": "tool", "toolCallId": "c1", "content": [text_block("3")], "source": {}, "id": "x"},
        [b'{"role":"tool","tool_call_id":"c1","content":"3"}'],
    ),
    (
        "a system message at its place",
        {"role": "system", "content": [text_block("a"), text_block("b")], "source": {}, "id": "x"},
        [b'{"role":"system","content":"ab"}'],
    ),
]


@pytest.mark.parametrize(("what", "message", "wire"), MESSAGES, ids=[case[0] for case in MESSAGES])
def test_messages(what: str, message: dict[str, Any], wire: list[bytes]) -> None:
    assert [encoded for _, encoded in encode_message(message)] == wire


@pytest.mark.parametrize("kind", ["image", "file"])
def test_what_the_adapter_takes_nowhere_is_no_request(kind: str) -> None:
    with pytest.raises(CannotEncodeError) as caught:
        list(encode_message(assistant({"type": kind, "attachment": {}})))
    assert caught.value.claim == "none"


def first(session: SessionV0, deployment: Deployment | None = None) -> Rebuilt:
    return next(iter(Replay(build_history(session.log()), deployment or Deployment())))


def tail_of(deployment: Deployment | None = None, **header: Any) -> bytes:
    session = SessionV0()
    session.start_turn()
    session.start_step()
    session.user("u")
    session.header(**header)
    session.answer("ok")
    session.end_step()
    session.end_turn()
    body = first(session, deployment).encoded.body
    assert body is not None
    return body.to_bytes().partition(b'"include_usage":true}')[2]


THINKING_OFF = Deployment({"providers": {"deepseek-official": {"thinking": "disabled"}}})
TAILS: list[tuple[str, dict[str, Any], Deployment | None, bytes]] = [
    ("effort off", {"config": {"reasoningEffort": "off"}}, None, b',"thinking":{"type":"disabled"},"max_tokens":100}'),
    (
        "effort low",
        {"config": {"reasoningEffort": "low"}},
        None,
        b',"thinking":{"type":"enabled"},"reasoning_effort":"low","max_tokens":100}',
    ),
    ("no effort", {"config": {"reasoningEffort": None}}, None, b',"max_tokens":100}'),
    ("no effort, deployment", {"config": {"reasoningEffort": None}}, THINKING_OFF, b',"thinking":{"type":"disabled"},'),
    (
        "all settings",
        {"config": {"reasoningEffort": "off", "temperature": 0.5, "stop": []}},
        None,
        b',"thinking":{"type":"disabled"},"temperature":0.5,"max_tokens":100,"stop":[]}',
    ),
]


@pytest.mark.parametrize(("what", "header", "deployment", "tail"), TAILS, ids=[case[0] for case in TAILS])
def test_settings(what: str, header: dict[str, Any], deployment: Deployment | None, tail: bytes) -> None:
    config = {key: value for key, value in header["config"].items() if value is not None}
    removed = {key for key, value in header["config"].items() if value is None}
    session_tail = tail_of(deployment, config=config, tools=[]) if not removed else _without(removed, deployment)
    assert session_tail.startswith(tail)


def _without(removed: set[str], deployment: Deployment | None) -> bytes:
    session = SessionV0()
    session.start_turn()
    session.start_step()
    session.user("u")
    session.header(tools=[])
    config = session.rows[-1]["data"]["header"]["config"]
    for key in removed:
        del config[key]
    session.answer("ok")
    session.end_step()
    session.end_turn()
    body = first(session, deployment).encoded.body
    assert body is not None
    return body.to_bytes().partition(b'"include_usage":true}')[2]


def test_tools_keep_three_members_and_javascript_key_order() -> None:
    tool = {"parameters": {"b": 1, "2": 1, "1": 2}, "name": "t", "description": "d", "deferLoading": True}
    function = b'{"name":"t","description":"d","parameters":{"1":2,"2":1,"b":1}}'
    expected = b'"tools":[{"type":"function","function":' + function + b"}]"
    assert expected in tail_of(tools=[tool])


def test_no_system_prompt_no_system_message() -> None:
    session = SessionV0()
    session.start_turn()
    session.start_step()
    session.user("u")
    session.header(system=None)
    session.answer("ok")
    body = first(session).encoded.body
    assert body is not None
    assert json.loads(body.to_bytes())["messages"] == [{"role": "user", "content": "u"}]


def test_bodies_are_extended_not_written_again() -> None:
    bodies = [rebuilt.encoded.body for rebuilt in Replay(build_history(two_turns().log()), Deployment())]
    assert all(body is not None for body in bodies)
    runs = {id(body.run) for body in bodies if body is not None}
    assert len(runs) == 1


def test_each_part_names_the_event_it_prints() -> None:
    session = two_turns()
    *_, last = Replay(build_history(session.log()), Deployment())
    body = last.encoded.body
    assert body is not None
    data = body.to_bytes()
    for text, kind in ((b"Thanks", "user/message"), (b"Three.", "assistant/message"), (b"Be terse", "request/header")):
        seq = body.seq_at(data.index(text))
        assert next(row["type"] for row in session.rows[1:] if row["seq"] == seq) == kind
