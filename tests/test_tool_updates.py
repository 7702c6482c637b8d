"""The tool-update projection: baseline, updates, names check, modes (spec wire-deepseek 6)."""

from __future__ import annotations

import pytest

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json, SurfaceOp
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.wire.deepseek_messages import MessagesEncoder, alternatives
from dsh_audit.wire.session import SessionEncoder
from tests.messages_session import ToySession, text, tool, wire_tool

A, B, C = tool("a"), tool("b"), tool("c")


def start(*tools: dict[str, Json], in_history: bool = True) -> ToySession:
    """A session whose first request has gone out."""
    session = ToySession()
    session.user("hi")
    session.header(*tools)
    session.context(in_history=in_history)
    session.assistant("A")
    session.user("next")
    return session


def view(session: ToySession, mode: str, **more: Json) -> tuple[Json, list[list[str]]]:
    """Tools of the body (name, with ``+`` when deferred) and the blocks of each system message."""
    body = session.body(raw={"providers": {"p": {"tool_update": mode}}}, **more)
    tools = body.get("tools")
    names = None if tools is None else [t["name"] + "+" * t.get("defer_loading", False) for t in tools]
    blocks = [m["content"] for m in body["messages"] if m["role"] == "system"]
    return names, [[_block(block) for block in content] for content in blocks]


def _block(block: dict[str, Json]) -> str:
    if block["type"] == "text":
        return str(block["text"])
    assert block["tool"]["type"] == "tool_reference"
    return ("+" if block["type"] == "tool_addition" else "-") + str(block["tool"]["name"])


def _add_then_remove(session: ToySession) -> None:
    session.added(session.header(A, B), "b")
    session.assistant("B")
    session.user("more")
    session.header(B)
    session.removed("a")


@pytest.mark.parametrize(
    ("mode", "tools", "blocks"),
    [
        ("none", ["b"], []),
        ("addition-only", ["b+"], [["+b"]]),
        ("in-history", ["a", "b+"], [["+b"], ["-a"]]),
    ],
)
def test_modes(mode: str, tools: list[str], blocks: list[list[str]]) -> None:
    session = start(A)
    _add_then_remove(session)
    assert view(session, mode) == (tools, blocks)


@pytest.mark.parametrize(("mode", "tools"), [("none", None), ("addition-only", []), ("in-history", [])])
def test_no_tools(mode: str, tools: Json) -> None:
    assert view(start(), mode) == (tools, [])


def test_tool_added_to_nothing_and_removed() -> None:
    session = start()
    session.added(session.header(A), "a")
    assert view(session, "addition-only") == (["a+"], [["+a"]])
    session.assistant("B")
    session.user("more")
    session.header()
    session.removed("a")
    assert view(session, "addition-only") == ([], [])
    assert view(session, "in-history") == (["a+"], [["+a"], ["-a"]])


@pytest.mark.parametrize("more", [{"reason": "series"}, {"reason": "resume", "startsSeries": True}])
def test_new_series_forgets_the_updates(more: dict[str, Json]) -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    session.header(A, B, **more)
    assert view(session, "addition-only") == (["a", "b"], [])


def test_other_reasons_start_no_series() -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    session.header(A, B, reason="resume")
    assert view(session, "addition-only") == (["a", "b+"], [["+b"]])


@pytest.mark.parametrize(
    "changed",
    [tool("a", deferLoading=True), {"description": "tool a", "name": "a", "parameters": {"type": "object"}}],
)
def test_redeclared_tool_starts_a_series(changed: dict[str, Json]) -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    session.header(changed, B)
    names, blocks = view(session, "none")
    assert (names, blocks) == (["a", "b"], [])
    names, blocks = view(session, "addition-only")
    assert names is not None and "b" in names and blocks == []


def test_redeclaring_a_removed_tool_starts_a_series() -> None:
    session = start(A, B)
    session.header(A)
    session.removed("b")
    assert view(session, "in-history") == (["a", "b"], [["-b"]])
    session.header(A, {**B, "description": "other"})
    assert view(session, "in-history") == (["a", "b"], [])


def test_names_that_no_update_explains_make_a_new_baseline() -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    session.header(A, B, C)
    assert view(session, "addition-only") == (["a", "b", "c"], [])
    session.header(A)
    assert view(session, "addition-only") == (["a"], [])


def test_an_update_that_is_not_in_the_request_is_told_by_the_header_alone() -> None:
    session = start(A)
    seq = session.added(session.header(A, B), "b")
    session.user("summary", op=SurfaceOp("replace", seq, seq))
    assert view(session, "addition-only") == (["a", "b"], [])
    assert view(session, "in-history") == (["a", "b"], [])


def test_incomplete_history_keeps_deferral_as_logged() -> None:
    session = start(A)
    deferred = {**B, "deferLoading": True}
    seq = session.added(session.header(A, deferred), "b")
    session.user("summary", op=SurfaceOp("replace", seq, seq))
    assert view(session, "addition-only") == (["a", "b+"], [])
    assert view(session, "none") == (["a", "b"], [])


def test_deferred_baseline_tools_become_available_by_their_first_addition() -> None:
    session = start(A, {**B, "deferLoading": True})
    header = session.header(A, {**B, "deferLoading": True}, reason="resume")
    session.added(header, "b")
    session.added(header, "b")
    assert view(session, "addition-only") == (["a", "b+"], [["+b"]])


def test_offered_again_after_a_removal() -> None:
    session = start(A, B)
    session.header(A)
    session.removed("b")
    session.added(session.header(A, B), "b")
    assert view(session, "in-history") == (["a", "b"], [["-b"], ["+b"]])
    assert view(session, "addition-only") == (["a", "b"], [])


def test_text_blocks_of_an_update_stay() -> None:
    session = start(A, B)
    session.header(A)
    session.developer(text("mind"), text(""), {"type": "tool-removal", "toolName": "b"})
    assert view(session, "addition-only") == (["a"], [["mind"]])
    assert view(session, "in-history") == (["a", "b"], [["mind", "-b"]])


def test_compaction_sees_only_the_updates_in_its_range() -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    messages = list(session.state.snapshot().messages())
    calls: dict[str, Json] = {"purpose": "compaction"}
    assert view(session, "addition-only", messages=messages, **calls) == (["a", "b+"], [["+b"]])
    assert view(session, "addition-only", messages=messages[:1], **calls) == (["a", "b"], [])


def test_titles_have_no_tools() -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    messages = [DerivedMessage(0, {"role": "user", "content": [text("hi")]})]
    assert view(session, "addition-only", purpose="session-title", messages=messages, tools=None) == (
        None,
        [],
    )


def test_the_beta_header_follows_the_body() -> None:
    session = start(A)
    session.added(session.header(A, B), "b")
    beta = ("anthropic-beta", "mid-conversation-tool-changes-2026-07-01")
    for mode, expected in (("addition-only", True), ("none", False)):
        encoded = session.encode(raw={"providers": {"p": {"tool_update": mode}}})
        assert (beta in encoded.http_headers) is expected
    session.removed("b")
    session.header(A)
    encoded = session.encode(raw={"providers": {"p": {"tool_update": "addition-only"}}})
    assert beta not in encoded.http_headers


def test_a_withdrawn_addition_rewrites_what_was_shared() -> None:
    session, encoder = start(A), MessagesEncoder()
    raw = {"providers": {"p": {"tool_update": "addition-only"}}}
    session.added(session.header(A, B), "b")
    session.encode(encoder, raw=raw)
    session.assistant("B")
    session.user("more")
    session.header(A)
    session.removed("b")
    kept, fresh = session.encode(encoder, raw=raw).body, session.encode(raw=raw).body
    assert kept is not None and fresh is not None
    assert kept.to_bytes() == fresh.to_bytes()
    assert b"tool_addition" not in fresh.to_bytes()


def test_the_guess_follows_the_request_context_and_is_recorded() -> None:
    name = "providers.p.models.m.tool_update"
    for in_history, guess in ((True, "addition-only"), (False, "none")):
        session = start(A, in_history=in_history)
        encoded = SessionEncoder(Deployment()).encode(session.request())
        assert name not in [used.name for used in encoded.unlogged]
        session.added(session.header(A, B), "b")
        encoded = SessionEncoder(Deployment()).encode(session.request())
        assert Used(name, guess, "default") in encoded.unlogged


def test_alternatives() -> None:
    session = start(A)
    assert alternatives(session.request(), Deployment()) == ()
    session.added(session.header(A, B), "b")
    modes = [used.value for used in alternatives(session.request(), Deployment())]
    assert modes == ["none", "in-history"]
    told = Deployment({"providers": {"p": {"tool_update": "none"}}})
    assert alternatives(session.request(), told) == ()


def test_an_adopted_alternative_stays() -> None:
    session = start(A)
    _add_then_remove(session)
    sessions = SessionEncoder(Deployment())
    request = session.request()
    first = sessions.encode(request).body
    assumed, other = list(sessions.alternatives(request))[1]
    assert other.body is not None and first is not None
    assert other.body.to_bytes() != first.to_bytes()
    again = SessionEncoder(Deployment(), assumed).encode(request)
    assert again.body is not None
    assert again.body.to_bytes() == other.body.to_bytes()
    assert Used("providers.p.models.m.tool_update", "in-history", "capture") in again.unlogged


def test_wire_names_of_a_tool() -> None:
    session = start({**A, "deferLoading": True, "extra": 1})
    raw = {"providers": {"p": {"tool_update": "in-history"}}}
    assert session.body(raw=raw)["tools"] == [wire_tool("a", defer_loading=True)]
