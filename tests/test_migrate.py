"""Migrations: each rule of the four steps on small logs."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from dsh_audit.events import Event
from dsh_audit.formats import FORMATS
from dsh_audit.formats.envelope import encode_event
from dsh_audit.formats.migrate import ChildSession, MigrationRefusedError, child_session, migrate, same_event
from tests.format_rows import (
    HEADERS,
    Row,
    answer,
    chunk,
    header,
    read,
    renumbered,
    result,
    row,
    step_of,
    turn,
    turn_end,
    user,
)


def run(version: int, to: int, *rows: Row, children: tuple[ChildSession, ...] = (), **members: Any) -> list[Row]:
    """Rows of the migrated log, as the harness holds them in memory."""
    session_header = FORMATS[version].parse_session_header({**HEADERS[version], **members})
    events = read(version, *rows, **members)
    result = migrate(events, session_header, to, children)
    keys = ("start", "end") if to < 3 else ("startSeq", "endSeq")
    return [encode_event(event, keys, ranges=False) for event in result.events]


def refusal(version: int, to: int, *rows: Row, **members: Any) -> str:
    with pytest.raises(MigrationRefusedError) as caught:
        run(version, to, *rows, **members)
    assert caught.value.from_version >= version
    return caught.value.reason


def kinds(rows: list[Row]) -> list[str]:
    return [each["type"] for each in rows]


def text(seq: int, part: str = "x", **members: Any) -> Row:
    return chunk(seq, "text-delta", index=0, text=part, **members)


def finish(seq: int, kind: str = "stop") -> Row:
    return chunk(seq, "finish", reason={"kind": kind})


OPEN = (turn(0), step_of("step/start", 1))
CLOSE = (step_of("step/end", 8), turn_end(9))


# The session header


def test_headers() -> None:
    source = {**HEADERS[0], "seedLength": 0, "parentSession": "p", "agentPreset": "code"}
    chain = [migrate([], FORMATS[0].parse_session_header(source), to).header.raw for to in (1, 2, 3, 4)]
    assert [list(each) for each in chain] == [
        ["type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "delegationDepth", "agentPreset"],
        *[["type", "version", "id", "createdAt", "cwd", "parentSession", "isSeeded", "delegationDepth", "agentPreset"]]
        * 3,
    ]
    assert [each["agentPreset"] for each in chain] == ["code", "code", "ptc", "ptc"]


def test_unknown_header_members_are_refused() -> None:
    loose = FORMATS[0].parse_session_header({**HEADERS[0], "later": 1})
    with pytest.raises(MigrationRefusedError, match="later"):
        migrate([], loose, 1)


def test_no_way_back() -> None:
    with pytest.raises(ValueError, match="no migration"):
        migrate([], FORMATS[3].parse_session_header(HEADERS[3]), 2)
    with pytest.raises(ValueError, match="no migration"):
        migrate([], FORMATS[4].parse_session_header(HEADERS[4]), 5)


# 0 → 1


def test_old_shapes_become_current() -> None:
    old = row("user/message", 0, {"content": [], "source": {"kind": "user"}}, surfaceOp="append")
    assert run(0, 1, old)[0]["data"]["id"] == "legacy-message:s1:0"


REFUSED_0 = [
    (row("x/y", 0, {}), "unknown event type"),
    (row("x/y", 0, {}, ignorable=True), "even when ignorable"),
    (row("subagent/descriptor", 0, {"mode": "one-shot", "version": 2, "provider": "p"}), "descriptor version"),
    (row("plan/mode", 0, {"active": True, "more": 1}), "unexpected member"),
    (row("plan/mode", 0, {}), "lacks required"),
    (row("plan/mode", 0, {"active": 1}), "boolean"),
    (row("session-log-deepseek/delivery-accepted", 1, {"sessionId": "s2", "throughSeq": 0}), "another session"),
    (row("session-log-deepseek/delivery-accepted", 1, {"sessionId": "s1", "throughSeq": 1}), "earlier"),
    (row("llm/retry", 0, {"turn": 1, "step": 1, "provider": "p", "policyKey": "k"}), "lacks required"),
    (row("tool/code-dispatch-start", 0, {"arguments": -0.0}), "lacks required"),
    (header(0, tools=[{"name": "t", "description": "d", "parameters": {}, "deferLoading": True}]), "unexpected"),
]


@pytest.mark.parametrize(("bad", "part"), REFUSED_0)
def test_refused_by_the_step_to_1(bad: Row, part: str) -> None:
    assert part in refusal(0, 1, bad)


def test_seed_length_beyond_the_log() -> None:
    assert "seedLength" in refusal(0, 1, turn(0), seedLength=2)


def test_markers_of_a_parent_are_inherited() -> None:
    marker = row("session-log-deepseek/delivery-accepted", 1, {"sessionId": "p", "throughSeq": 0})
    assert len(run(0, 1, turn(0), marker, parentSession="p", seedLength=2)) == 2


def test_opaque_arguments_must_be_lossless() -> None:
    ids = {"rootCallId": "a", "parentCallId": "a", "subCallId": "b", "name": "n"}
    assert "lossless" in refusal(0, 1, row("tool/code-dispatch-start", 0, {**ids, "arguments": [-0.0]}))
    assert run(0, 1, row("tool/code-dispatch-start", 0, {**ids, "arguments": [0]}))


# 1 → 2


def test_chunks_move_into_the_message() -> None:
    rows = (*OPEN, text(2, "a"), text(3, "b"), finish(4), answer(5, sourceEventSeqs=[2, 3, 4]), *CLOSE)
    out = run(1, 2, *renumbered(*rows))
    assert kinds(out) == ["turn/start", "step/start", "assistant/message", "step/end", "turn/end"]
    message = out[2]
    assert "sourceEventSeqs" not in message
    assert message["seq"] == 2
    assert message["data"]["stream"] == [
        {"type": "text-chunks", "time0": 1002, "index": 0, "dt": [1], "texts": ["a", "b"]},
        {"type": "chunk", "time": 1004, "chunk": {"type": "finish", "reason": {"kind": "stop"}}},
    ]


def test_an_attempt_without_message_becomes_an_event() -> None:
    out = run(1, 2, *renumbered(*OPEN, text(2), text(3), *CLOSE))
    assert kinds(out)[2:4] == ["assistant/attempt", "step/end"]
    assert (out[2]["time"], out[2]["seq"]) == (1003, 2)
    assert list(out[2]["data"]) == ["turn", "step", "stream"]


def test_a_finish_chunk_ends_an_attempt() -> None:
    rows = renumbered(*OPEN, text(2), finish(3), text(4), finish(5), answer(6, sourceEventSeqs=[4, 5]))
    out = run(1, 2, *rows)
    assert kinds(out)[2:] == ["assistant/attempt", "assistant/message"]
    assert [len(each["data"]["stream"]) for each in out[2:]] == [2, 2]


def test_events_between_chunks_come_first_events_behind_come_after() -> None:
    mode = row("plan/mode", 0, {"active": True})
    rows = renumbered(*OPEN, text(2), mode, text(4), mode, *CLOSE)
    out = run(1, 2, *rows)
    assert kinds(out)[2:5] == ["plan/mode", "assistant/attempt", "plan/mode"]
    assert [each["time"] for each in out[2:5]] == [1000, 1004, 1000]


@pytest.mark.parametrize(
    "closer",
    [
        step_of("step/end", 3),
        turn_end(3),
        row("llm/retry-started", 3, {"retryId": "r", "turn": 1, "step": 1, "retry": 1}),
        row(
            "llm/retry",
            3,
            {
                "retryId": "r",
                "turn": 1,
                "step": 1,
                "provider": "p",
                "mode": "always",
                "policyKey": "k",
                "retry": 1,
                "delayMs": 0,
                "failure": {"message": "m", "code": "c"},
            },
        ),
    ],
)
def test_closers_settle_first(closer: Row) -> None:
    out = run(1, 2, *renumbered(*OPEN, text(2), closer))
    assert kinds(out)[2:] == ["assistant/attempt", closer["type"]]


def test_messages_without_chunks_have_an_empty_stream() -> None:
    choices: list[Row] = [{}, {"sourceEventSeqs": []}]
    for sources in choices:
        out = run(1, 2, *renumbered(*OPEN, answer(2, **sources)))
        assert out[2]["data"]["stream"] == []


def test_empty_sources_settle_the_attempt() -> None:
    out = run(1, 2, *renumbered(*OPEN, text(2), answer(3, sourceEventSeqs=[])))
    assert kinds(out)[2:] == ["assistant/attempt", "assistant/message"]


def test_a_message_of_another_step_settles_the_attempt() -> None:
    other = answer(3, sourceEventSeqs=[2])
    other["data"]["step"] = 2
    out = run(1, 2, *renumbered(*OPEN, text(2), other))
    assert kinds(out)[2:] == ["assistant/attempt", "assistant/message"]
    assert out[3]["data"]["stream"] == []


@pytest.mark.parametrize("sources", [{}, {"sourceEventSeqs": [2]}, {"sourceEventSeqs": [3, 2]}])
def test_sources_must_be_the_whole_attempt(sources: Row) -> None:
    assert "attempt" in refusal(1, 2, *renumbered(*OPEN, text(2), text(3), answer(4, **sources)))


def test_references_are_renumbered() -> None:
    rows = renumbered(
        *OPEN,
        text(2),
        user(3),
        text(4),
        answer(5, sourceEventSeqs=[2, 4]),
        row("command/run", 6, {"commandId": "c", "name": "n", "source": {"kind": "user"}}),
        row("command/done", 7, {"commandId": "c", "kind": "success", "sourceEventSeq": 3}),
        row(
            "compaction/prune",
            8,
            {"shadowedRange": {"start": 3, "end": 5}, "shadowedSeqs": [3, 5], "shadowedTokenCount": 1},
        ),
        user(9, surfaceOp={"op": "replace", "start": 3, "end": 5}, sourceEventSeqs=[3, 5]),
        row("session/title", 10, {"title": "t", "messageSeqs": [3], "source": {"kind": "fallback"}}),
        row(
            "session-log-deepseek/delivery-accepted",
            11,
            {"sessionId": "s1", "sessionFormatVersion": 1, "throughSeq": 10},
        ),
    )
    out = run(1, 2, *rows)
    assert kinds(out)[2:4] == ["user/message", "assistant/message"]
    assert out[5]["data"]["sourceEventSeq"] == 2
    assert out[6]["data"]["shadowedRange"] == {"start": 2, "end": 3}
    assert out[6]["data"]["shadowedSeqs"] == [2, 3]
    assert (out[7]["surfaceOp"], out[7]["sourceEventSeqs"]) == ({"op": "replace", "start": 2, "end": 3}, [2, 3])
    assert out[8]["data"]["messageSeqs"] == [2]
    assert out[9]["data"]["throughSeq"] == 10


def test_references_to_chunks_are_refused() -> None:
    bad = row("command/done", 3, {"commandId": "c", "kind": "success", "sourceEventSeq": 2})
    assert "gone" in refusal(1, 2, *renumbered(*OPEN, text(2), step_of("step/end", 3), bad))


def seeded(length: int, *rows: Row, version: int = 1) -> list[Row]:
    return run(version, 2, *renumbered(*rows), seedLength=length, parentSession="p")


def test_the_seed_end_at_the_cut_is_marked() -> None:
    out = seeded(1, turn(0), row("session/end-seed", 1, {}), turn_end(2))
    assert [each["data"] for each in out] == [{"turn": 1}, {"inherited": True}, turn_end(2)["data"]]


def test_a_missing_seed_end_is_inserted_at_the_cut_or_the_end() -> None:
    out = seeded(1, turn(0), turn_end(1))
    assert kinds(out) == ["turn/start", "session/end-seed", "turn/end"]
    assert (out[1]["time"], out[1]["data"]) == (1001, {"inherited": True})
    out = seeded(2, turn(0), turn_end(1))
    assert kinds(out) == ["turn/start", "turn/end", "session/end-seed"]
    assert out[2]["time"] == 1001
    assert seeded(0)[0]["time"] == 5


def test_a_cut_that_splits_an_attempt_is_refused() -> None:
    assert "splits" in refusal(1, 2, *renumbered(*OPEN, text(2), text(3)), seedLength=3, parentSession="p")


SPLICE = row("agent/inbox/spliced", 0, {"target": "next-turn", "start": 0, "inserted": [user(7)["data"]]})


def test_an_interrupted_restart_is_given_its_end() -> None:
    out = run(1, 2, *renumbered(*OPEN, step_of("step/end", 2), SPLICE, turn(4, 2)))
    assert kinds(out)[3:] == ["agent/inbox/spliced", "turn/end", "turn/start"]
    assert out[4]["data"] == {"turn": 1, "reason": {"kind": "interrupted"}}
    assert out[4]["time"] == out[5]["time"]


@pytest.mark.parametrize(
    "rows",
    [
        (*OPEN, SPLICE, turn(4, 2)),
        (*OPEN, step_of("step/end", 2), turn(3, 2)),
        (*OPEN, step_of("step/end", 2), SPLICE, turn(3, 3)),
        (*OPEN, step_of("step/end", 2), SPLICE, row("plan/mode", 0, {"active": True}), turn(4, 2)),
    ],
)
def test_other_unclosed_turns_are_refused(rows: tuple[Row, ...]) -> None:
    assert "does not close" in refusal(1, 2, *renumbered(*rows))


def goal(content: str | None = None, revision: int = 1) -> Row:
    change = {"kind": "goal/change", "version": 1, "operation": "clear", "cleared": {"id": "g", "revision": 1}}
    change["clearedAt"] = 9
    made = content or '<goal_state>{"cleared":{"id":"g","revision":1},"clearedAt":9}</goal_state>'
    source = {"kind": "goal", "goalId": "g", "revision": revision, "round": 0, "change": change}
    data = {"id": "u", "role": "user", "content": [{"type": "text", "text": made}], "source": source}
    return row("user/message", 0, data, surfaceOp="append")


def test_a_goal_change_leaves_its_message() -> None:
    out = run(0, 2, goal())
    assert kinds(out) == ["goal/change", "user/message"]
    assert out[0]["data"]["operation"] == "clear"
    assert out[1]["data"]["source"] == {"kind": "plugin", "plugin": "goal"}


def test_a_goal_message_must_match_its_change() -> None:
    assert "does not match" in refusal(0, 1, goal("other"))
    assert "does not match" in refusal(0, 1, goal(revision=2))


def test_refused_by_the_step_to_2() -> None:
    assert "unknown event type" in refusal(1, 2, row("x/y", 0, {}, ignorable=True))
    assert "unknown stream chunk" in refusal(1, 2, *renumbered(*OPEN, chunk(2, "later-delta")))
    foreign = {"sessionId": "s2", "sessionFormatVersion": 1, "throughSeq": 0}
    assert "another session" in refusal(1, 2, turn(0), row("session-log-deepseek/delivery-accepted", 1, foreign))


# 2 → 3


def test_the_prompt_becomes_a_message() -> None:
    rows = renumbered(*OPEN, header(2, system="a", tools=[]), user(3), header(4, "change", system="b"), *CLOSE)
    out = run(2, 3, *rows)
    assert kinds(out)[:6] == [
        "turn/start",
        "step/start",
        "system/message",
        "system/message",
        "request/header",
        "user/message",
    ]
    first, second = out[2], out[3]
    assert (first["surfaceOp"], first["data"]["message"]["content"]) == ("append", [])
    assert second["surfaceOp"] == {"op": "replace", "startSeq": 2, "endSeq": 2}
    assert list(second)[-2:] == ["surfaceOp", "sourceEventSeqs"]
    assert second["data"]["message"]["content"] == [{"type": "text", "text": "a"}]
    assert list(second["data"]["message"]) == ["id", "role", "source", "content"]
    identity = b'["session-format-v2-to-v3","s1",2,"request/header"]'
    assert second["data"]["message"]["id"] == "v2-to-v3-system-" + hashlib.sha256(identity).hexdigest()
    assert out[4]["data"]["header"] == {"config": {"provider": "p", "model": "m"}}
    assert out[6]["surfaceOp"] == {"op": "replace", "startSeq": 3, "endSeq": 3}


def test_an_unchanged_prompt_adds_nothing_an_empty_one_clears() -> None:
    rows = (header(0, system="a"), header(0, "resume", system="a"), header(0, "change"))
    out = run(2, 3, *renumbered(*OPEN, *rows))
    contents = [each["data"]["message"]["content"] for each in out if each["type"] == "system/message"]
    assert contents == [[], [{"type": "text", "text": "a"}], []]


def test_names_of_programmatic_tool_calls() -> None:
    message = {**user(0)["data"], "source": {"kind": "plugin", "plugin": "tools-code-mode"}}
    ids = {"rootCallId": "a", "parentCallId": "a", "subCallId": "b", "name": "n", "arguments": {}}
    rows = renumbered(
        *OPEN,
        row("tool/code-dispatch-start", 0, ids),
        row("tool/code-dispatch", 0, {**ids, "isError": False, "content": []}),
        row("agent-preset/selected", 0, {"agentPreset": "code"}),
        row("user/message", 0, message, surfaceOp="append"),
        row("agent/inbox/spliced", 0, {"target": "next-step", "start": 0, "inserted": [message]}),
    )
    out = run(2, 3, *rows)[3:]
    assert kinds(out)[:2] == ["tool/ptc-dispatch-start", "tool/ptc-dispatch"]
    assert out[2]["data"]["agentPreset"] == "ptc"
    assert out[3]["data"]["source"]["plugin"] == "tools-ptc"
    assert out[4]["data"]["inserted"][0]["source"]["plugin"] == "tools-ptc"


FILE = {"type": "file", "attachment": {"attachmentId": "f", "name": "n", "bytes": 3}}


def with_blocks(*blocks: Row, source: Row | None = None) -> Row:
    data = {**user(0)["data"], "content": list(blocks)}
    return row("user/message", 0, data | ({"source": source} if source else {}), surfaceOp="append")


def test_file_blocks_pass() -> None:
    assert run(2, 4, *renumbered(*OPEN, with_blocks(FILE)))[3]["data"]["content"] == [FILE]


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        ((user(0),), "before the first step"),
        ((turn(0), header(0, system="a")), "outside an open step"),
        ((*OPEN, row("x/y", 0, {}, ignorable=True)), "unclassified event"),
        ((*OPEN, with_blocks({"type": "video"})), "unclassified content kind"),
        ((*OPEN, with_blocks({"type": "file"})), "lacks required"),
        ((*OPEN, with_blocks(source={"kind": "later"})), "unclassified message source"),
        ((*OPEN, with_blocks(source={"kind": "agent-message", "form": "x", "senderSessionId": "s"})), "relay"),
        ((*OPEN, row("assistant/attempt", 0, {"turn": 1, "step": 0, "stream": []})), "positive"),
        ((*OPEN, row("session/end-seed", 0, {"inherited": True})), "unseeded"),
        ((*OPEN, row("session/end-seed", 0, {"inherited": False})), "must be true"),
        ((*OPEN, row("feedback/message-delete", 0, {"sessionId": "s"})), "lacks required"),
        (
            (
                *OPEN,
                row(
                    "session-log-deepseek/delivery-accepted",
                    0,
                    {"sessionId": "s1", "sessionFormatVersion": 3, "throughSeq": 0},
                ),
            ),
            "claims format 3",
        ),
        (
            (
                *OPEN,
                row(
                    "session-log-deepseek/delivery-accepted",
                    0,
                    {"sessionId": "s2", "sessionFormatVersion": 2, "throughSeq": 0},
                ),
            ),
            "another session",
        ),
    ],
)
def test_refused_by_the_step_to_3(bad: tuple[Row, ...], part: str) -> None:
    assert part in refusal(2, 3, *renumbered(*bad))


def test_a_taken_system_id_is_refused() -> None:
    identity = b'["session-format-v2-to-v3","s1",3,"request/header"]'
    taken = with_blocks()
    taken["data"]["id"] = "v2-to-v3-system-" + hashlib.sha256(identity).hexdigest()
    assert "collides" in refusal(2, 3, *renumbered(*OPEN, taken, header(3, system="a")))


def test_repairs_keep_their_canonical_id() -> None:
    repair = result(2, "c")
    repair["data"]["error"] = {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    repair["data"]["message"]["content"][0]["isError"] = True
    assert "canonical message id" in refusal(2, 3, *renumbered(*OPEN, repair))
    repair["data"]["message"]["id"] = "interrupted-tool-result-c-2"
    assert len(run(2, 3, *renumbered(*OPEN, repair))) == 4


def test_a_seeded_log_needs_its_mark() -> None:
    rows = renumbered(*OPEN, row("session/end-seed", 2, {"inherited": True}))
    assert len(run(2, 3, *rows, isSeeded=True)) == 4
    assert "inherited" in refusal(2, 3, *OPEN, isSeeded=True)


# 3 → 4


def v3(*rows: Row, children: tuple[ChildSession, ...] = (), **members: Any) -> list[Row]:
    return run(3, 4, *renumbered(*rows), children=children, **members)


def test_tool_results_get_a_role_of_their_own() -> None:
    old = result(0, "c")
    old["data"]["message"] |= {"later": 1}
    old["data"]["message"]["content"][0] |= {"isError": False, "more": 2}
    message = v3(old)[0]["data"]["message"]
    assert list(message.items()) == [
        ("role", "tool"),
        ("source", {"kind": "tool", "callId": "c"}),
        ("toolCallId", "c"),
        ("content", [{"type": "text", "text": "r"}]),
        ("isError", False),
        ("id", "r0"),
        ("plugin:message:later", 1),
        ("plugin:result:more", 2),
    ]


@pytest.mark.parametrize(
    ("plugin", "kind"),
    [
        ("compact", "compact-checkpoint"),
        ("tools-code-mode", "ptc-mode"),
        ("tools-ptc", "ptc-mode"),
        ("dsh-compaction-basic", "compact-basic"),
        ("@deepseek-ai/dsh-system-prompt", "runtime-context"),
        ("time-context", "time-context"),
        ("other", "plugin:other"),
        ("__proto__", "plugin:__proto__"),
    ],
)
def test_plugin_sources_name_their_producer(plugin: str, kind: str) -> None:
    made = with_blocks(source={"kind": "plugin", "plugin": plugin, "form": "notice"})
    assert v3(made)[0]["data"]["source"] == {"kind": kind, "form": "notice"}


def test_the_system_prompt_keeps_its_own_name() -> None:
    source = {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"}
    message = {"id": "s", "role": "system", "source": source, "content": []}
    made = row("system/message", 0, {"turn": 1, "step": 1, "message": message}, surfaceOp="append")
    assert v3(made)[0]["data"]["message"]["source"] == {"kind": "system-prompt"}


def test_unknown_blocks_and_ignorable_events_are_namespaced() -> None:
    stream = [
        {"type": "chunk", "time": 1, "chunk": {"type": "block-start", "index": 0, "blockType": "video"}},
        {"type": "chunk", "time": 2, "chunk": {"type": "block-end", "index": 0, "block": {"type": "video"}}},
    ]
    out = v3(
        with_blocks({"type": "video", "x": 1}),
        row("x/y", 0, {"content": [{"type": "video"}]}, ignorable=True),
        row("assistant/attempt", 0, {"turn": 1, "step": 1, "stream": stream}),
    )
    assert out[0]["data"]["content"] == [{"type": "plugin:video", "x": 1}]
    assert (out[1]["type"], out[1]["data"]) == ("plugin:x/y", {"content": [{"type": "video"}]})
    assert out[2]["data"]["stream"][0]["chunk"]["blockType"] == "plugin:video"
    assert out[2]["data"]["stream"][1]["chunk"]["block"] == {"type": "plugin:video"}


def test_a_restart_shifts_all_references() -> None:
    rows = (
        with_blocks(),
        turn(0),
        SPLICE,
        turn(0, 2),
        with_blocks(),
        row("image/offload", 0, {"targets": [{"seq": 4, "imageIndexes": [0]}, {"seq": 0, "imageIndexes": [1]}]}),
        user(0, surfaceOp={"op": "replace", "startSeq": 0, "endSeq": 4}, sourceEventSeqs=[0, 4]),
    )
    out = v3(*rows)
    assert kinds(out)[3:5] == ["turn/end", "turn/start"]
    assert out[6]["data"]["targets"] == [{"seq": 5, "imageIndexes": [0]}, {"seq": 0, "imageIndexes": [1]}]
    assert out[7]["surfaceOp"] == {"op": "replace", "startSeq": 0, "endSeq": 5}
    assert out[7]["sourceEventSeqs"] == [0, 5]


@pytest.mark.parametrize(
    ("bad", "part"),
    [
        (row("x/y", 0, {}), "unknown event type"),
        (header(0, tools=[{"name": "t", "deferLoading": True}]), "deferLoading"),
        (with_blocks({}), "with a type"),
        (with_blocks(source={"kind": "plugin"}), "plugin name"),
        (row("agent/inbox/spliced", 0, {}), "message array"),
    ],
)
def test_refused_by_the_step_to_4(bad: Row, part: str) -> None:
    assert part in refusal(3, 4, bad)


def test_a_nested_tool_result_is_refused() -> None:
    nested = result(0, "c")
    nested["data"]["message"]["content"][0]["content"] = [{"type": "tool-result"}]
    assert "nested" in refusal(3, 4, nested)


@pytest.mark.parametrize(
    ("claim", "part"),
    [({"sessionFormatVersion": 4}, "claims format 4"), ({"sessionFormatVersion": 3}, "another session")],
)
def test_markers_of_the_step_to_4(claim: Row, part: str) -> None:
    marker = row("session-log-deepseek/delivery-accepted", 1, {"sessionId": "s2", "throughSeq": 0, **claim})
    assert part in refusal(3, 4, turn(0), marker)


def test_missing_children_are_listed_in_order() -> None:
    descriptor = {"version": 3, "provider": "p", "mode": "one-shot", "label": "l"}
    children = (
        ChildSession("b", 9),
        ChildSession("c", 7, 1, descriptor),
        ChildSession("a", 9, 2, descriptor),
        ChildSession("known", 3),
    )
    known = {"version": 1, "childId": "known", "childCreatedAt": 3, "mode": "unknown"}
    out = v3(row("subagent/catalog", 0, known), children=children)[1:]
    assert [each["time"] for each in out] == [1000] * 3
    assert [each["data"] for each in out] == [
        {"version": 0, "childId": "c", "childCreatedAt": 7, "mode": "one-shot", "label": "l"},
        {"version": 1, "childId": "a", "childCreatedAt": 9, "mode": "unknown"},
        {"version": 1, "childId": "b", "childCreatedAt": 9, "mode": "unknown"},
    ]
    assert v3(children=(ChildSession("b", 9),))[0]["time"] == 5


@pytest.mark.parametrize(
    ("rows", "child", "part"),
    [
        ([{"version": 0, "childId": "a", "childCreatedAt": 3, "mode": "unknown"}], None, "valid fact"),
        ([{"version": 1, "childId": "a", "childCreatedAt": 3, "mode": "unknown"}] * 2, None, "duplicate"),
        (
            [{"version": 1, "childId": "a", "childCreatedAt": 3, "mode": "unknown"}],
            ChildSession("a", 4),
            "conflicts",
        ),
        ([], ChildSession("a", 4, 1, {"version": 3}), "provider"),
        ([], ChildSession("a", 4, 1, {"version": 3, "provider": "p", "mode": "x"}), "mode"),
    ],
)
def test_catalogs_that_are_refused(rows: list[Row], child: ChildSession | None, part: str) -> None:
    events = [row("subagent/catalog", seq, data) for seq, data in enumerate(rows)]
    with pytest.raises(MigrationRefusedError, match=part):
        run(3, 4, *events, children=(child,) if child else ())


def test_what_a_parent_needs_of_a_child() -> None:
    members = {"origin": "subagent", "parentSession": "p", "delegationDepth": 1, "isSeeded": True}
    child = FORMATS[3].parse_session_header({**HEADERS[3], **members})
    own = row("subagent/descriptor", 0, {"version": 3})
    events = read(3, *renumbered(own, row("session/end-seed", 0, {"inherited": True}), own), **members)
    assert child_session(child, events) == ChildSession("s1", 5, 1, {"version": 3})
    plain = FORMATS[3].parse_session_header(HEADERS[3])
    with pytest.raises(ValueError, match="direct parent"):
        child_session(plain, [])


def test_the_whole_chain() -> None:
    rows = renumbered(
        *OPEN, header(2, system="a"), user(3), text(4), answer(5, "c", sourceEventSeqs=[4]), result(6, "c")
    )
    out = run(0, 4, *rows)
    assert kinds(out)[2:] == [
        "system/message",
        "system/message",
        "request/header",
        "user/message",
        "assistant/message",
        "tool/result",
    ]
    assert [each["seq"] for each in out] == list(range(8))


def test_refusals_name_the_seq_and_leave_the_prefix() -> None:
    source = read(3, turn(0), row("x/y", 1, {}))
    migrated = migrate(source, FORMATS[3].parse_session_header(HEADERS[3]), 4)
    assert next(migrated.events).type == "turn/start"
    with pytest.raises(MigrationRefusedError) as caught:
        next(migrated.events)
    assert (caught.value.seq, caught.value.from_version) == (1, 3)


def test_same_event_ignores_place_and_order() -> None:
    one = Event("x", 0, 1, {"a": 1, "b": 2}, line=4, order=("seq", "type"))
    assert same_event(one, Event("x", 0, 1, {"b": 2, "a": 1}))
    assert not same_event(one, Event("x", 0, 1, {"b": 2, "a": True}))
    assert not same_event(one, Event("x", 0, 2, {"b": 2, "a": 1}))
