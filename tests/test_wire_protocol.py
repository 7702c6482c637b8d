"""The choice of a protocol: release, answer, deployment, capture; never a silent guess."""

from __future__ import annotations

import pytest

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json
from dsh_audit.wire.adapter import UnloggedInputs
from dsh_audit.wire.protocol import CHAT, MESSAGES, ProtocolChooser
from dsh_audit.wire.session import SessionEncoder
from tests.messages_session import ToySession, tool

NAME = "providers.p.protocol"
BY_MESSAGES = {"kind": "deepseek-messages", "version": 1, "model": "m"}


def _session(version: int) -> ToySession:
    session = ToySession(version)
    session.user("hi")
    session.header(tool("a"))
    session.context(in_history=False)
    return session


@pytest.mark.parametrize(("version", "protocol"), [(0, CHAT), (2, CHAT), (4, MESSAGES)])
def test_the_format_decides(version: int, protocol: str) -> None:
    inputs = UnloggedInputs(Deployment({"harness": {"version": "0.1.6"}}))
    choice = ProtocolChooser().choose(_session(version).request(), inputs)
    assert (choice.protocol, choice.why) == (protocol, None)
    assert inputs.used == []


@pytest.mark.parametrize(
    ("replay", "raw", "protocol", "used", "is_guess"),
    [
        (BY_MESSAGES, {}, MESSAGES, [], False),
        ({}, {}, CHAT, [], False),
        ({}, {"harness": {"version": "0.1.6-alpha.1"}}, CHAT, [], False),
        (None, {}, CHAT, [Used(NAME, "chat-completions", "default")], True),
        (None, {"harness": {"version": "0.1.6"}}, MESSAGES, [Used(NAME, "messages", "default")], True),
        (
            None,
            {"harness": {"version": "0.1.5"}},
            CHAT,
            [Used("harness.version", "0.1.5", "deployment")],
            False,
        ),
        (
            None,
            {"providers": {"p": {"protocol": "messages"}}},
            MESSAGES,
            [Used(NAME, "messages", "deployment")],
            False,
        ),
        (
            {},
            {"providers": {"p": {"protocol": "messages"}}},
            MESSAGES,
            [Used(NAME, "messages", "deployment")],
            False,
        ),
    ],
)
def test_format_3(replay: Json, raw: Json, protocol: str, used: list[Used], is_guess: bool) -> None:
    inputs = UnloggedInputs(Deployment(raw))
    choice = ProtocolChooser().choose(_session(3).request(replay=replay), inputs)
    assert choice.protocol == protocol
    assert inputs.used == used
    assert (choice.why is not None) is is_guess


def test_an_unanswered_call_follows_the_last_answer_of_its_route() -> None:
    session, chooser = _session(3), ProtocolChooser()
    chooser.choose(session.request(replay=BY_MESSAGES), UnloggedInputs(Deployment()))
    inputs = UnloggedInputs(Deployment())
    assert chooser.choose(session.request(), inputs).protocol == MESSAGES
    assert inputs.used == []


def test_a_guess_claims_no_bytes_until_a_capture_decides() -> None:
    session, encoder = _session(3), SessionEncoder(Deployment())
    request = session.request()
    guess = encoder.encode(request)
    assert (guess.protocol, guess.claim) == (CHAT, "logical")
    assert "assumed" in guess.why[0]
    options = {encoded.protocol: assumed for assumed, encoded in encoder.alternatives(request)}
    assert list(options) == [CHAT, MESSAGES]
    encoder = SessionEncoder(Deployment(), options[MESSAGES])
    proven = encoder.encode(request)
    assert (proven.protocol, proven.claim, proven.why) == (MESSAGES, "bytes", ())
    assert Used(NAME, "messages", "capture") in proven.unlogged
    assert list(encoder.alternatives(request)) == []


@pytest.mark.parametrize(
    ("replay", "raw", "protocol"),
    [
        ({"kind": "pi-ai", "api": "openai-completions"}, {}, "openai-completions"),
        ({"kind": "pi-ai"}, {}, "pi-ai"),
        (None, {"providers": {"p": {"adapter": "llm-pi-ai"}}}, "pi-ai"),
        (None, {"providers": {"p": {"adapter": "llm-pi-ai", "api": "openai-responses"}}}, "openai-responses"),
        ({"kind": "pi-ai"}, {"providers": {"p": {"adapter": "llm-deepseek"}}}, MESSAGES),
    ],
)
def test_other_adapter(replay: Json, raw: Json, protocol: str) -> None:
    choice = ProtocolChooser().choose(_session(4).request(replay=replay), UnloggedInputs(Deployment(raw)))
    assert choice.protocol == protocol


def test_what_is_not_reproduced_says_so() -> None:
    encoded = SessionEncoder(Deployment()).encode(_session(4).request(), "smoke-signals")
    assert (encoded.body, encoded.claim) == (None, "logical")
    assert encoded.why == ("protocol smoke-signals is not reproduced",)


def test_a_call_that_fails_locally_claims_nothing() -> None:
    session = _session(4)
    session.result("1")
    encoded = SessionEncoder(Deployment()).encode(session.request())
    assert (encoded.body, encoded.claim) == (None, "none")
    assert encoded.why[0].startswith("fails locally")


def test_the_caller_may_name_the_protocol() -> None:
    assert SessionEncoder(Deployment()).encode(_session(4).request(), CHAT).protocol == CHAT
