"""The projection folds against upstream's own functions, on random valid and broken logs.

Oracle: dsh-session 0.1.0-rc.8 and 0.1.1-rc.2, driven by ``node/projection_oracle.mjs``.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsh_audit.events import Event
from dsh_audit.projection.equality import same_text
from dsh_audit.projection.messages import derive_event_message, derive_messages
from dsh_audit.projection.repair import REPAIR_TEXTS, interrupted_turn_closers
from dsh_audit.projection.request_header import canonical_header, fold_request_header, header_equals
from dsh_audit.projection.surface import ProjectionError, Rejection, fold_surface, is_surface_event
from dsh_audit.text import ecma
from tests.harness.oracle_packages import script_command
from tests.projection_events import Raw, broken_events, surface_data, to_event, valid_events

SCRIPT = Path(__file__).parent / "node" / "projection_oracle.mjs"

REASONS: dict[Rejection, str] = {
    Rejection.SEQ: r"seq -?\d+ is not contiguous",
    Rejection.OP_ON_LOG_ONLY: r"not surface-eligible and cannot carry surfaceOp",
    Rejection.SOURCES_ON_LOG_ONLY: r"not surface-eligible and cannot carry sourceEventSeqs",
    Rejection.OP_MISSING: r"requires a surfaceOp marker",
    Rejection.OP_INVALID: r"carries an invalid (replace )?surfaceOp",
    Rejection.START_NOT_FOUND: r"start seq \d+ not found",
    Rejection.END_NOT_FOUND: r"end seq \d+ not found",
    Rejection.RANGE_REVERSED: r"is after end seq",
    Rejection.SOURCES_EMPTY: r"must not be empty except",
    Rejection.SOURCE_INVALID: r"must densely contain",
    Rejection.SOURCE_DUPLICATE: r"must not contain duplicates",
    Rejection.SOURCE_NOT_EARLIER: r"must reference earlier events",
    Rejection.SHADOWED_NOT_CITED: r"must include every shadowed",
    Rejection.REWRITE_NOT_ONE: r"must rewrite exactly one",
    Rejection.REWRITE_NOT_TOOL_RESULT: r"must target a current tool/result",
    Rejection.REWRITE_CHANGES_MORE: r"may change only content",
}
"""Our reason → what upstream's message for the same reason contains (all that format 0 can give)."""

run = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _json(value: Any) -> str:
    # json prints what is beyond the doubles as a word; JSON.parse reads 1e400 as the same number.
    return json.dumps(value).replace("Infinity", "1e400")


class Oracle:
    """A Node process that answers calls."""

    def __init__(self, package_set: str) -> None:
        command = script_command(SCRIPT, package_set)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def call(self, name: str, *args: Any) -> dict[str, Any]:
        self.stdin.write(_json({"call": name, "args": args}).encode() + b"\n")
        self.stdin.flush()
        answer: dict[str, Any] = json.loads(self.stdout.readline())
        return answer

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(timeout=10)
        self.stdout.close()


@pytest.fixture(scope="module", params=["rc8", "rc2"])
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    process = Oracle(request.param)
    yield process
    process.close()


def _surface(events: list[Event]) -> dict[str, Any]:
    try:
        surface = fold_surface(events, version=0)
    except ProjectionError as error:
        return {"rejection": error.rejection, "seq": error.seq}
    replacements = [
        {"seq": done.seq, "start": done.start, "end": done.end, "shadowedSeqs": list(done.shadowed_seqs)}
        for done in surface.replacements
    ]
    return {"result": {"nodes": list(surface.seqs), "replacements": replacements}}


def _assert_same_surface(oracle: Oracle, raws: list[Raw]) -> Rejection | None:
    ours, theirs = _surface([to_event(raw) for raw in raws]), oracle.call("foldSurface", raws)
    if "error" not in theirs:
        assert ours == theirs
        return None
    rejection: Rejection = ours["rejection"]
    assert re.search(REASONS[rejection], theirs["error"]), (rejection, theirs)
    return rejection


@given(raws=st.one_of(valid_events(), broken_events()))
@run
def test_fold_surface(oracle: Oracle, raws: list[Raw]) -> None:
    _assert_same_surface(oracle, raws)
    flags = [is_surface_event(to_event(raw), version=0) for raw in raws]
    assert oracle.call("isSurfaceEvents", raws) == {"result": flags}


def _append(kind: str, seq: int, **more: Any) -> Raw:
    data = surface_data(kind, seq)
    return {"type": kind, "seq": seq, "time": 0, "data": data, "surfaceOp": "append", **more}


def _replace(kind: str, seq: int, start: Any, end: Any, sources: Any) -> Raw:
    op = {"op": "replace", "start": start, "end": end}
    return _append(kind, seq, surfaceOp=op, sourceEventSeqs=sources)


_BASE = [_append("user/message", 0), _append("tool/result", 1), _append("tool/result", 2)]
_NESTED = [*_BASE, _replace("user/message", 3, 1, 1, [1])]
_TURNED = [*_BASE, _replace("user/message", 3, 0, 0, [0])]

CASES: dict[str, tuple[list[Raw], Rejection | None]] = {
    "start seq larger than end seq": ([*_TURNED, _replace("user/message", 4, 3, 1, [1, 3])], None),
    "replacement of a replacement": ([*_NESTED, _replace("user/message", 4, 0, 3, [3, 0])], None),
    "shadowed endpoint": ([*_NESTED, _replace("user/message", 4, 1, 2, [1, 2])], Rejection.START_NOT_FOUND),
    "shadowed end": ([*_NESTED, _replace("user/message", 4, 0, 1, [0, 1])], Rejection.END_NOT_FOUND),
    "reversed": ([*_BASE, _replace("user/message", 3, 2, 0, [0, 1, 2])], Rejection.RANGE_REVERSED),
    "reversed by position": (
        [*_TURNED, _replace("user/message", 4, 1, 3, [1, 3])],
        Rejection.RANGE_REVERSED,
    ),
    "own seq as endpoint": ([*_BASE, _replace("user/message", 3, 3, 3, [0])], Rejection.START_NOT_FOUND),
    "negative endpoint": ([*_BASE, _replace("user/message", 3, -1, 0, [0])], Rejection.OP_INVALID),
    "fractional endpoint": ([*_BASE, _replace("user/message", 3, 0.5, 0, [0])], Rejection.OP_INVALID),
    "uncited middle": ([*_BASE, _replace("user/message", 3, 0, 2, [0, 2])], Rejection.SHADOWED_NOT_CITED),
    "empty sources of a user message": (
        [_append("user/message", 0, sourceEventSeqs=[])],
        Rejection.SOURCES_EMPTY,
    ),
    "empty sources of an assistant message": ([_append("assistant/message", 0, sourceEventSeqs=[])], None),
    "duplicate before later": (
        [*_BASE, _append("user/message", 3, sourceEventSeqs=[9, 9])],
        Rejection.SOURCE_DUPLICATE,
    ),
    "invalid before duplicate": (
        [*_BASE, _append("user/message", 3, sourceEventSeqs=[1, 1, -1])],
        Rejection.SOURCE_INVALID,
    ),
    "range before sources": (
        [*_BASE, _replace("user/message", 3, 7, 0, [9, 9])],
        Rejection.START_NOT_FOUND,
    ),
    "later source": ([*_BASE, _append("user/message", 3, sourceEventSeqs=[3])], Rejection.SOURCE_NOT_EARLIER),
    "no surfaceOp": (
        [{"type": "user/message", "seq": 0, "time": 0, "data": surface_data("user/message", 0)}],
        Rejection.OP_MISSING,
    ),
    "system message is log-only": (
        [{"type": "system/message", "seq": 0, "time": 0, "data": {}, "ignorable": True}],
        None,
    ),
    "ignorable event with surfaceOp": (
        [{"type": "x", "seq": 0, "time": 0, "data": {}, "ignorable": True, "surfaceOp": "append"}],
        Rejection.OP_ON_LOG_ONLY,
    ),
    "ignorable event with sources": (
        [{"type": "x", "seq": 0, "time": 0, "data": {}, "ignorable": True, "sourceEventSeqs": []}],
        Rejection.SOURCES_ON_LOG_ONLY,
    ),
    "rewrite": ([*_BASE, _replace("tool/result", 3, 1, 1, [1])], None),
    "rewrite of two": ([*_BASE, _replace("tool/result", 3, 1, 2, [1, 2])], Rejection.REWRITE_NOT_ONE),
    "rewrite of a user message": (
        [*_BASE, _replace("tool/result", 3, 0, 0, [0])],
        Rejection.REWRITE_NOT_TOOL_RESULT,
    ),
    "seq repeated": ([_append("user/message", 0), _append("user/message", 0)], Rejection.SEQ),
    "seq from one": ([_append("user/message", 1)], Rejection.SEQ),
}


@pytest.mark.parametrize("name", CASES)
def test_named_cases(oracle: Oracle, name: str) -> None:
    raws, rejection = CASES[name]
    assert _assert_same_surface(oracle, raws) is rejection


@pytest.mark.parametrize(
    ("one", "two"),
    [
        *((1, True), (0, False), (1, 1.0), (0.0, -0.0), (None, False), ([], {})),
        ({"a": 1, "b": []}, {"b": [], "a": 1}),
    ],
)
def test_rewrite_compares_as_upstream(oracle: Oracle, one: Any, two: Any) -> None:
    first, second = _append("tool/result", 0), _replace("tool/result", 1, 0, 0, [0])
    first["data"]["error"], second["data"]["error"] = one, two
    _assert_same_surface(oracle, [first, second])


@given(raws=valid_events())
@run
def test_messages_and_request_header_at_any_prefix(oracle: Oracle, raws: list[Raw]) -> None:
    events = [to_event(raw) for raw in raws]
    for through in {len(raws) - 1, len(raws) // 2, 0}:
        prefix = raws[: through + 1]
        ours: Any = [[done.seq, done.message] for done in derive_messages(events, through, version=0)]
        assert oracle.call("deriveMessages", prefix) == {"result": ours}
        assert oracle.call("foldRequestHeader", prefix) == {"result": fold_request_header(events, through)}
    for raw, event in zip(raws, events, strict=True):
        assert oracle.call("deriveEventMessage", raw) == {"result": derive_event_message(event)}


_SCALARS = st.sampled_from([None, True, False, 0, 1, 1.5, -0.0, 1e400, "", "a", "\ud800", "é"])
_SCHEMAS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab0"), inner, max_size=2),
    max_leaves=5,
)


@st.composite
def _headers(draw: st.DrawFn) -> Raw:
    maybe = st.booleans()
    config: Raw = {"provider": "p", "model": draw(st.sampled_from("mn"))}
    for key in draw(st.permutations(("reasoningEffort", "temperature", "maxTokens"))):
        if draw(maybe):
            config[key] = draw(st.sampled_from(["low", 0, -0.0, 1, 1.0]))
    if draw(maybe):
        config["stop"] = draw(st.lists(st.sampled_from("xy"), max_size=2))
    header: Raw = {"config": config}
    if draw(maybe):
        header["adapterDefaults"] = draw(
            st.dictionaries(st.sampled_from(["reasoningEffort", "maxTokens"]), st.just(True))
        )
    if draw(maybe):
        header["system"] = draw(st.sampled_from(["", "s", "t"]))
    if draw(maybe):
        tools = st.builds(lambda schema: {"name": "t", "parameters": schema}, _SCHEMAS)
        header["tools"] = draw(st.lists(tools, max_size=2))
    return header


@given(pair=st.tuples(_headers(), _headers()), reuse=st.sampled_from(["config", "tools", "both", "no"]))
@run
def test_headers(oracle: Oracle, pair: tuple[Raw, Raw], reuse: str) -> None:
    # Parsed as logs are: integer-like keys come first, as upstream sees them.
    one, two = ecma.parse(_json(pair))
    if reuse in ("config", "both"):
        two = {**two, "config": dict(reversed(one["config"].items()))}
    if reuse in ("tools", "both"):
        two = {**two, **{key: one[key] for key in ("tools", "system", "adapterDefaults") if key in one}}
    mine = canonical_header(one), canonical_header(two)
    assert same_text(oracle.call("canonicalHeader", one)["result"], mine[0])
    assert oracle.call("headerEquals", *mine) == {"result": header_equals(*mine)}


_CALLS = ("a", "b", "c")
_STEPS = ("turn", "step", "ask", "call", "result", "step/end", "turn/end", "request/context")


@st.composite
def _turns(draw: st.DrawFn) -> list[Raw]:
    raws: list[Raw] = []

    def add(kind: str, data: Raw, **more: Any) -> None:
        raws.append({"type": kind, "seq": len(raws), "time": len(raws) * 7, "data": data, **more})

    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(_STEPS))
        place = {"turn": draw(st.integers(1, 2)), "step": draw(st.integers(1, 2))}
        call = draw(st.sampled_from(_CALLS))
        if kind in ("turn", "step"):
            add(f"{kind}/start", place)
        elif kind == "ask":
            ids = draw(st.lists(st.sampled_from(_CALLS), max_size=3))
            blocks = [{"type": "tool-call", "id": one, "name": "t", "arguments": "{}"} for one in ids]
            data = {**surface_data("assistant/message", 0, blocks), **place}
            add("assistant/message", data, surfaceOp="append", sourceEventSeqs=[])
        elif kind == "call":
            add("tool/call", {**place, "callId": call})
        elif kind == "result":
            data = {**surface_data("tool/result", 0), **place}
            data["message"] = {**data["message"], "source": {"kind": "tool", "callId": call}}
            add("tool/result", data, surfaceOp="append")
        else:
            add(kind, place)
    return raws


def _raw(event: Event) -> Raw:
    raw: Raw = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.surface_op is not None:
        raw["surfaceOp"] = "append"
    if event.source_event_seqs is not None:
        raw["sourceEventSeqs"] = list(event.source_event_seqs)
    return raw


@pytest.fixture(scope="module")
def texts(oracle: Oracle) -> dict[str, str]:
    """The harness's own closing texts, got from it: the repository knows them by digest only."""
    ask = surface_data("assistant/message", 0, [{"type": "tool-call", "id": name} for name in "ab"])
    raws = [
        {"type": "turn/start", "seq": 0, "time": 0, "data": {"turn": 1}},
        {"type": "assistant/message", "seq": 1, "time": 0, "data": ask},
        {"type": "tool/call", "seq": 2, "time": 0, "data": {"callId": "a"}},
    ]
    closers = oracle.call("interruptedTurnClosers", raws)["result"]
    found = [closer["data"]["message"]["content"][0]["content"][0]["text"] for closer in closers[:2]]
    return dict(zip(("interrupted-started", "interrupted-not-started"), found, strict=True))


def test_closing_texts_have_the_known_digests(texts: dict[str, str]) -> None:
    assert all(REPAIR_TEXTS[name].matches(text) for name, text in texts.items())


@given(raws=_turns())
@run
def test_interrupted_turn_closers(oracle: Oracle, texts: dict[str, str], raws: list[Raw]) -> None:
    closers = interrupted_turn_closers(map(to_event, raws), version=0, texts=texts)
    ours = [_raw(closer) for closer in closers]
    theirs = oracle.call("interruptedTurnClosers", raws)["result"]
    assert json.dumps(ours) == json.dumps(theirs)
