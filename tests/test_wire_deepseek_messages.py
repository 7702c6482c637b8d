"""Messages bodies: every rule with a hand-made session; incremental encoding equals encoding from scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json, SurfaceOp
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.wire.adapter import CannotEncodeError, UnloggedInputs
from dsh_audit.wire.deepseek_messages import MessagesEncoder
from tests.messages_session import ToySession, call, replay, text, tool, wire_tool


def _session(*, in_history: bool = True, version: int = 4, model: str = "m") -> ToySession:
    session = ToySession(version, model)
    session.system("be good")
    session.user("hi")
    session.header(tool("echo"))
    session.context(in_history=in_history)
    return session


def user(*texts: str) -> dict[str, Json]:
    return {"role": "user", "content": [text(value) for value in texts]}


def answer(*blocks: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def use(ident: str, arguments: Json) -> dict[str, Json]:
    return {"type": "tool_use", "id": ident, "name": "echo", "input": arguments}


def result(ident: str, *texts: str, **more: Json) -> dict[str, Json]:
    content = [text(value) for value in texts]
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **more}


def test_envelope_bytes() -> None:
    session = _session()
    session.header(tool("echo"), config={"temperature": 0.5, "stop": ["x"], "reasoningEffort": "low", "maxTokens": 7})
    encoded = session.encode()
    assert encoded.body is not None
    assert encoded.body.to_bytes() == (
        b'{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],'
        b'"max_tokens":7,"thinking":{"type":"enabled"},"output_config":{"effort":"low"},"system":"be good",'
        b'"temperature":0.5,"stop_sequences":["x"],"tools":[{"name":"echo","description":"tool echo",'
        b'"input_schema":{"type":"object"}}]}'
    )
    assert (encoded.claim, encoded.url_path) == ("bytes", "/v1/messages")


@pytest.mark.parametrize(
    ("config", "deployment", "thinking", "effort"),
    [
        ({"reasoningEffort": "off"}, {}, "disabled", None),
        ({"reasoningEffort": "max"}, {}, "enabled", {"effort": "max"}),
        ({}, {}, "enabled", {"effort": "high"}),
        ({}, {"default_effort": "low"}, "enabled", {"effort": "low"}),
        ({}, {"thinking": "disabled"}, "disabled", None),
        ({"reasoningEffort": "off"}, {"thinking": "disabled"}, "disabled", None),
    ],
)
def test_thinking(config: Json, deployment: Json, thinking: str, effort: Json) -> None:
    session = _session()
    session.header(tool("echo"), config=config)
    body = session.body(raw={"providers": {"p": deployment}})
    assert body["thinking"] == {"type": thinking}
    assert body.get("output_config") == effort


@pytest.mark.parametrize(
    ("config", "deployment"),
    [({"reasoningEffort": "high"}, {"thinking": "disabled"}), ({"reasoningEffort": "x"}, {})],
)
def test_refused_effort(config: Json, deployment: Json) -> None:
    session = _session()
    session.header(tool("echo"), config=config)
    with pytest.raises(CannotEncodeError, match="fails locally") as caught:
        session.encode(raw={"providers": {"p": deployment}})
    assert caught.value.claim == "none"


def test_max_tokens_default_is_recorded() -> None:
    session = _session()
    inputs = UnloggedInputs(Deployment())
    encoded = MessagesEncoder().encode(session.request(config={}), inputs)
    assert encoded.body is not None
    assert b'"max_tokens":256000' in encoded.body.to_bytes()
    assert Used("providers.p.models.m.max_tokens", 256000, "default") in inputs.used
    assert session.body(config={}, raw={"providers": {"p": {"max_tokens": 5}}})["max_tokens"] == 5


def _merge(session: ToySession) -> None:
    session.user("a", "", "b")
    session.user("")
    session.assistant("A", "")
    session.assistant("")
    session.assistant("B")


def _tools(session: ToySession) -> None:
    session.assistant(call("1", arguments='{"a":1e3}'), call("2"))
    session.result("2", "two", isError=False)
    session.result("1", isError=True)
    session.user("more")


def _results_first(session: ToySession) -> None:
    session.assistant(call("1"), call("2"))
    session.result("1", "one")
    session.user("wait")
    session.result("2", "two")


def _no_objects(session: ToySession) -> None:
    session.assistant(call("1", arguments="[1]"), call("2", arguments='{"a":'), call("3", arguments="null"))
    for ident in "123":
        session.result(ident)


def _other_blocks(session: ToySession) -> None:
    session.user({"type": "reasoning", "text": "r"}, call("9"), "x")
    session.user({"type": "reasoning", "text": "r"})
    session.assistant({"type": "reasoning", "text": ""}, "y")


def _surrogates(session: ToySession) -> None:
    session.user("\ud83d", "\ude00")


MESSAGES: list[tuple[Callable[[ToySession], None], list[Json]]] = [
    (_merge, [user("hi", "a", "b"), answer("A", "B")]),
    (
        _tools,
        [
            user("hi"),
            answer(use("1", {"a": 1000}), use("2", {})),
            {
                "role": "user",
                "content": [result("2", "two", is_error=False), result("1", is_error=True), text("more")],
            },
        ],
    ),
    (
        _results_first,
        [
            user("hi"),
            answer(use("1", {}), use("2", {})),
            {"role": "user", "content": [result("1", "one"), result("2", "two"), text("wait")]},
        ],
    ),
    (
        _no_objects,
        [
            user("hi"),
            answer(use("1", {}), use("2", {}), use("3", {})),
            {"role": "user", "content": [result("1"), result("2"), result("3")]},
        ],
    ),
    (_other_blocks, [user("hi", "x"), answer({"type": "thinking", "thinking": ""}, "y")]),
    (_surrogates, [user("hi", "\ud83d", "\ude00")]),
]


@pytest.mark.parametrize(("grow", "expected"), MESSAGES)
def test_messages(grow: Callable[[ToySession], None], expected: list[Json]) -> None:
    session = _session()
    grow(session)
    assert session.body()["messages"] == expected


def test_system_updates_come_after_the_input_that_follows_them() -> None:
    session = _session()
    session.assistant("A")
    session.system("be ", "better")
    session.user("next")
    session.system("be best")
    session.assistant("B")
    session.user("last")
    assert session.body()["messages"] == [
        user("hi"),
        answer("A"),
        user("next"),
        {"role": "system", "content": [text("be better")]},
        {"role": "system", "content": [text("be best")]},
        answer("B"),
        user("last"),
    ]
    assert session.body()["system"] == "be good"


def test_without_in_history_updates_the_last_system_text_wins() -> None:
    session = _session(in_history=False)
    session.system("later")
    assert session.body()["system"] == "later"
    assert session.body()["messages"] == [user("hi")]
    session.system("")
    assert "system" not in session.body()


def test_context_of_another_model_says_nothing() -> None:
    session = _session()
    session.context(in_history=True, model="other")
    session.system("later")
    assert session.body()["system"] == "later"
    raw = {"providers": {"p": {"models": {"m": {"system_prompt_update": "in-history"}}}}}
    assert session.body(raw=raw)["system"] == "be good"


def _unanswered(session: ToySession) -> None:
    session.assistant(call("1"))


def _answered_late(session: ToySession) -> None:
    session.assistant(call("1"))
    session.user("no result")
    session.assistant("A")
    session.result("1")


def _result_without_call(session: ToySession) -> None:
    session.result("1")


def _result_twice(session: ToySession) -> None:
    session.assistant(call("1"))
    session.result("1")
    session.result("1")


def _duplicate_id(session: ToySession) -> None:
    session.assistant(call("1"), call("1"))
    session.result("1")


def _duplicate_in_merged(session: ToySession) -> None:
    session.assistant(call("1"))
    session.assistant(call("1"))
    session.result("1")


def _empty_update(session: ToySession) -> None:
    session.system("")


def _update_after_answer(session: ToySession) -> None:
    session.assistant("A")
    session.system("new")


def _update_between_answers(session: ToySession) -> None:
    session.assistant("A")
    session.system("new")
    session.assistant("B")
    session.user("x")


def _unknown_block(session: ToySession) -> None:
    session.user({"type": "plugin:x"})


REFUSED = [
    _unanswered,
    _answered_late,
    _result_without_call,
    _result_twice,
    _duplicate_id,
    _duplicate_in_merged,
    _empty_update,
    _update_after_answer,
    _update_between_answers,
    _unknown_block,
]


@pytest.mark.parametrize("grow", REFUSED)
def test_fails_locally(grow: Callable[[ToySession], None]) -> None:
    session = _session()
    grow(session)
    with pytest.raises(CannotEncodeError, match="fails locally, nothing is sent") as caught:
        session.encode()
    assert caught.value.claim == "none"


def test_a_refused_call_may_become_possible_again() -> None:
    session, encoder = _session(), MessagesEncoder()
    session.assistant(call("1"))
    with pytest.raises(CannotEncodeError):
        session.encode(encoder)
    session.user("steer")
    session.result("1", "late")
    assert _bytes(session, encoder) == _bytes(session)


def test_duplicate_ids_fail_every_later_turn() -> None:
    session, encoder = _session(), MessagesEncoder()
    session.assistant(call("1"), call("1"))
    session.result("1")
    for number in range(3):
        session.user(str(number))
        with pytest.raises(CannotEncodeError, match="call id twice"):
            session.encode(encoder)
    session.user("summary", op=SurfaceOp("replace", 1, session.state.last_seq))
    assert session.body()["messages"] == [user("summary")]


THINKING = {"type": "reasoning", "text": "t"}
SIGNED = {"type": "reasoning", "signature": "sig"}


@pytest.mark.parametrize(
    ("state", "signature"),
    [
        (replay("m", SIGNED, {"type": "text"}), "sig"),
        (replay("m", {"type": "reasoning", "signature": ""}, {"type": "text"}), ""),
        (replay("m", {"type": "reasoning"}, {"type": "text"}), None),
        (replay("other", SIGNED, {"type": "text"}), None),
        (replay("m", SIGNED), None),
        (replay("m", {"type": "text"}, SIGNED), None),
        (replay("m", SIGNED, {"type": "text", "signature": "x"}), None),
        (replay("m", {"type": "reasoning", "signature": 1}, {"type": "text"}), None),
        (replay("m", SIGNED, None), None),  # type: ignore[arg-type]
        ({**replay("m", SIGNED, {"type": "text"}), "response": {"kind": "pi-ai", "version": 2}}, None),
        ({"response": {"kind": "deepseek-messages", "version": 2, "model": "m"}, "blocks": [SIGNED]}, None),
        ({"response": {"kind": "deepseek-messages", "version": True, "model": "m"}, "blocks": []}, None),
        ({"response": {"kind": "deepseek-messages", "version": 1, "model": "m"}, "blocks": 3}, None),
        ("junk", None),
        (None, None),
    ],
)
def test_signatures(state: Json, signature: str | None) -> None:
    session = _session()
    session.assistant(THINKING, "A", replay_state=state)
    session.user("next")
    expected = {"type": "thinking", "thinking": "t"}
    if signature is not None:
        expected["signature"] = signature
    assert session.body()["messages"][1]["content"][0] == expected


def test_signatures_are_not_sent_to_another_model() -> None:
    session, encoder = _session(), MessagesEncoder()
    session.assistant(THINKING, "A", replay_state=replay("m", SIGNED, {"type": "text"}))
    session.user("next")
    assert b'"signature":"sig"' in _bytes(session, encoder)
    session.model = "pro"
    session.header(tool("echo"))
    session.context(in_history=False)
    assert b'"thinking":"t"}' in _bytes(session, encoder)
    session.model = "m"
    session.header(tool("echo"))
    assert b'"signature":"sig"' in _bytes(session, encoder)


def test_title() -> None:
    session = _session()
    messages = [DerivedMessage(1, {"role": "user", "content": [text("hi")]})]
    body = session.body(
        purpose="session-title",
        messages=messages,
        system="title it",
        tools=None,
        config={"maxTokens": 64, "reasoningEffort": "off"},
    )
    assert body == {
        "model": "m",
        "stream": True,
        "messages": [user("hi")],
        "max_tokens": 64,
        "thinking": {"type": "disabled"},
        "system": "title it",
    }


def test_title_with_two_system_texts() -> None:
    session = _session()
    messages = [
        DerivedMessage(0, {"role": "system", "content": [text("head")]}),
        DerivedMessage(1, {"role": "user", "content": [text("hi")]}),
    ]
    body = session.body(purpose="session-title", messages=messages, system="title it", tools=None)
    assert body["system"] == "title it\n\nhead"


def _compaction(session: ToySession, encoder: MessagesEncoder | None = None, **more: Any) -> Any:
    messages = list(session.state.snapshot().messages())
    constants = {"compaction-instruction": "sum it up"}
    kinds = {"purpose": "compaction", "constant": "compaction-instruction", "constants": constants}
    return session.encode(encoder, messages=messages, **kinds, **more)


def test_compaction() -> None:
    session = _session()
    session.header(tool("echo"), config={"temperature": 1, "stop": [], "reasoningEffort": "low"})
    encoded = _compaction(session)
    assert encoded.body.to_bytes() == (
        b'{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"},'
        b'{"type":"text","text":"sum it up"}]}],"max_tokens":9,"thinking":{"type":"enabled"},'
        b'"output_config":{"effort":"high"},"system":"be good",'
        b'"tools":[{"name":"echo","description":"tool echo","input_schema":{"type":"object"}}]}'
    )
    assert encoded.http_headers[-1] == ("x-deepseek-harness-compact", "1")


def test_compaction_uses_the_effort_that_the_adapter_filled_in() -> None:
    session, encoder = ToySession(), MessagesEncoder()
    session.system("s")
    session.user("hi")
    session.header(config={"reasoningEffort": "max"}, header={"adapterDefaults": {"reasoningEffort": True}})
    session.context(in_history=False)
    session.encode(encoder)
    session.header(config={"reasoningEffort": "low"})
    assert b'"effort":"max"' in _compaction(session, encoder).body.to_bytes()


def test_a_title_without_effort_uses_the_one_that_the_adapter_filled_in() -> None:
    session, encoder = ToySession(), MessagesEncoder()
    session.header(config={"reasoningEffort": "off"}, header={"adapterDefaults": {"reasoningEffort": True}})
    message = DerivedMessage(3, {"role": "user", "content": [{"type": "text", "text": "hi"}]})
    title = session.encode(encoder, messages=[message], purpose="session-title", tools=None, config={"maxTokens": 9})
    assert title.body is not None
    assert b'"max_tokens":9,"thinking":{"type":"disabled"}' in title.body.to_bytes()


def test_compaction_needs_its_text() -> None:
    with pytest.raises(CannotEncodeError, match="--constant"):
        _session().encode(messages=[], purpose="compaction", constant="compaction-instruction")


def test_http_headers() -> None:
    session = _session()
    assert session.encode(raw={"harness": {"version": "0.2.0-rc.1", "user_id": "u-1"}}).http_headers == (
        ("user-agent", "deepseek-harness/0.2.0-rc.1 (+https://github.com/deepseek-ai/deepseek-harness)"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("x-api-key", None),
        ("anthropic-version", "2023-06-01"),
        ("x-deepseek-harness-user-id", "u-1"),
        ("x-deepseek-harness-session-id", "sess-1"),
    )


class TestRelease016:
    """0.1.6 writes format 3: tool results are blocks of user messages (spec 5.6)."""

    def session(self) -> ToySession:
        return _session(version=3)

    def result(self, ident: str, *texts: str, **more: Json) -> dict[str, Json]:
        content = [text(value) for value in texts]
        return {"type": "tool-result", "toolCallId": ident, "content": content, **more}

    def test_results(self) -> None:
        session = self.session()
        session.assistant(call("1"))
        session.message("tool/result", {"role": "user", "content": [self.result("1", "one", isError=True)]})
        session.user("x", "")
        assert session.body()["messages"][-1] == {
            "role": "user",
            "content": [result("1", "one", is_error=True), text("x")],
        }

    def test_empty_user_message_is_kept(self) -> None:
        session = self.session()
        session.assistant("A")
        session.user("")
        session.assistant("B")
        session.user("")
        assert session.body()["messages"] == [
            user("hi"),
            answer("A"),
            {"role": "user", "content": []},
            answer("B"),
            {"role": "user", "content": []},
        ]
        session.user("more")
        assert session.body()["messages"][-1] == user("more")

    def test_reasoning_in_user_content_fails(self) -> None:
        session = self.session()
        session.user({"type": "reasoning", "text": "r"})
        with pytest.raises(CannotEncodeError, match="fails locally"):
            session.encode()

    def test_no_tools_key_and_no_deferral(self) -> None:
        session = self.session()
        session.header()
        assert "tools" not in session.body()
        session.header(tool("echo", deferLoading=True))
        assert session.body()["tools"] == [wire_tool("echo")]


def _bytes(session: ToySession, encoder: MessagesEncoder | None = None) -> bytes:
    body = session.encode(encoder).body
    assert body is not None
    return body.to_bytes()


@st.composite
def _growth(draw: st.DrawFn) -> list[str]:
    steps = (
        "user",
        "empty",
        "answer",
        "calls",
        "late",
        "system",
        "replace",
        "model",
        "tools",
        "encode",
        "encode",
    )
    return draw(st.lists(st.sampled_from(steps), max_size=25))


def _grow(session: ToySession, step: str, number: int, names: list[str]) -> None:
    if step == "user":
        session.user(f"user {number}")
    elif step == "empty":
        session.user("")
    elif step == "answer":
        session.assistant(THINKING, f"a{number}", replay_state=replay(session.model, SIGNED, {"type": "text"}))
    elif step == "calls":
        session.assistant(call(f"c{number}"), call(f"d{number}"))
        session.result(f"d{number}", "x")
        session.result(f"c{number}")
    elif step == "late":
        session.assistant(call(f"c{number}"))
        session.user("in between")
        session.result(f"c{number}", "late")
    elif step == "system":
        session.system(f"system {number}")
    elif step == "replace":
        seqs = [node.seq for node in session.state.snapshot().surface][1:]
        session.user("summary", op=SurfaceOp("replace", seqs[0], seqs[len(seqs) // 2]))
        session.header(*map(tool, names), reason="series")
    elif step == "model":
        session.model = "m" if session.model == "pro" else "pro"
        session.header(*map(tool, names))
        session.context(in_history=session.model == "m")
    elif step == "tools":
        name = f"t{number % 3}"
        if name in names:
            names.remove(name)
            session.header(*map(tool, names))
            session.removed(name)
        else:
            names.append(name)
            session.added(session.header(*map(tool, names)), name)


@settings(max_examples=150, deadline=None)
@given(_growth(), st.sampled_from(("none", "addition-only", "in-history")))
def test_incremental_equals_from_scratch(steps: list[str], mode: str) -> None:
    session, encoder, names = _session(), MessagesEncoder(), ["echo"]
    raw = {"providers": {"p": {"tool_update": mode}}}
    bodies = []
    for number, step in enumerate(steps):
        if step != "encode":
            _grow(session, step, number, names)
            continue
        try:
            expected = session.encode(raw=raw).body
        except CannotEncodeError as error:
            with pytest.raises(CannotEncodeError) as caught:
                session.encode(encoder, raw=raw)
            assert caught.value.reason == error.reason
            continue
        actual = session.encode(encoder, raw=raw).body
        assert actual is not None and expected is not None
        bodies.append((actual, expected.to_bytes(), expected.sha256()))
    for body, data, digest in bodies:
        assert body.to_bytes() == data
        assert body.sha256() == digest


def test_a_growing_session_shares_its_messages() -> None:
    session, encoder = _session(), MessagesEncoder()
    runs = set()
    for number in range(20):
        session.assistant(call(f"c{number}"))
        session.result(f"c{number}", "x")
        body = session.encode(encoder).body
        assert body is not None
        runs.add(id(body.run))
        assert sum(part.kind == "message" for part in body.tail) == 1
    assert len(runs) == 1
