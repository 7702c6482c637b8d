"""Logged content that no release writes gives a reason instead of a body, never an error of the program."""

from __future__ import annotations

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.events import Json, ShapeError
from dsh_audit.projection.shapes import check_message, check_tools
from dsh_audit.wire.protocol import CHAT, MESSAGES
from dsh_audit.wire.session import SessionEncoder
from tests.messages_session import ToySession, call, text, tool

RESULT = {"type": "tool-result", "toolCallId": "1", "content": [text("x")]}


@pytest.mark.parametrize(
    "block",
    [
        1,
        None,
        "text",
        {},
        {"type": 1},
        {"type": "text"},
        {"type": "text", "text": 1},
        {"type": "reasoning", "text": None},
        {**call("1"), "arguments": {}},
        {"type": "tool-call", "name": "x", "arguments": "{}"},
        {**RESULT, "content": None},
        {**RESULT, "content": [1]},
        {"type": "tool-addition", "toolName": ["x"]},
    ],
)
def test_malformed_blocks(block: Json) -> None:
    with pytest.raises(ShapeError, match="seq 7") as caught:
        check_message({"role": "user", "content": [text("fine"), block]}, 7)
    assert caught.value.reason.endswith("no body follows from the log")


def test_a_tool_message_names_its_call() -> None:
    check_message({"role": "tool", "toolCallId": "1", "content": []}, 7)
    with pytest.raises(ShapeError, match="names no call"):
        check_message({"role": "tool", "content": []}, 7)


def test_sound_blocks() -> None:
    content = [text(""), {"type": "reasoning", "text": "r"}, call("1"), RESULT, {"type": "plugin:x"}]
    check_message({"role": "user", "content": content}, 7)


@pytest.mark.parametrize("item", [1, "name", {}, {"name": 1}])
def test_malformed_tools(item: Json) -> None:
    check_tools([tool("a")])
    with pytest.raises(ShapeError):
        check_tools([tool("a"), item])


@pytest.mark.parametrize("protocol", [CHAT, MESSAGES])
@pytest.mark.parametrize("part", ["message", "tools"])
def test_the_encoders_give_the_reason(protocol: str, part: str) -> None:
    session = ToySession()
    session.message("user/message", {"role": "user", "content": [1 if part == "message" else text("x")]})
    tools: list[Json] = [tool("a"), 1] if part == "tools" else [tool("a")]
    session.header(*tools)
    encoded = SessionEncoder(Deployment()).encode(session.request(), protocol)
    assert (encoded.body, encoded.claim) == (None, "none")
    assert encoded.why[0].endswith("no body follows from the log")
