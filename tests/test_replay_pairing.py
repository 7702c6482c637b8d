from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.replay.pairing import Candidate, Pair, pair_exchanges
from dsh_audit.replay.pairing.matching import BodyKey, PrefixMeter
from dsh_audit.text.pointer import common_start
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.parts import Part

CHAT = "/v1/chat/completions"
SESSION = "x-deepseek-harness-session-id"
COMPACT = ("x-deepseek-harness-compact", "1")


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def step_body(turns: int, session: str = "s", **extra: Any) -> bytes:
    messages = [{"role": "user", "content": f"{session} turn {turn}"} for turn in range(turns + 1)]
    return dump({"model": "toy-1", "messages": messages, "stream": True, **extra})


TITLE = dump({"model": "toy-1", "messages": [{"role": "system", "content": "Name this session."}]})


def candidate(index: int, body: bytes | None, kind: Any = "step", **members: Any) -> Candidate:
    rope = None if body is None else parse_parts(body)
    keys = () if rope is None else (BodyKey.of(rope),)
    base = Candidate(index, "s", kind, "chat-completions", 1, 1, keys, lambda _: rope)
    return replace(base, **members)


def exchange(
    body: bytes | None, session: str | None = "s", *headers: tuple[str, str], path: str = CHAT, **members: Any
) -> Exchange:
    named = () if session is None else ((SESSION, session),)
    base = Exchange("", "POST", path, None, named + headers, Fidelity.RAW, 0, lambda: body)
    return replace(base, **members)


def indices(pairs: Sequence[Pair]) -> list[int | str]:
    """Per pair the index of its candidate, or the status of what has none; not-captured negative."""
    out: list[int | str] = []
    for pair in pairs:
        if pair.candidate is None:
            out.append(pair.status)
        elif pair.exchange is None:
            assert pair.status == "not-captured"
            out.append(-1 - pair.candidate.index)
        else:
            assert pair.status == "paired" and pair.evidence is not None
            out.append(pair.candidate.index)
    return out


def steps(count: int) -> list[Candidate]:
    return [candidate(index, step_body(index)) for index in range(count)]


def broken(body: bytes) -> bytes:
    return body.replace(b"turn 0", b"TURN 0")


def test_all_captured() -> None:
    pairs = pair_exchanges([exchange(step_body(index)) for index in range(5)], {"s": steps(5)})
    assert indices(pairs) == [0, 1, 2, 3, 4]
    assert {pair.evidence for pair in pairs} == {"bytes"}


def test_fields_after_the_base_body() -> None:
    bodies = [step_body(index)[:-1] + b',"dsh_plugin_packages":{"version":1}}' for index in range(3)]
    assert indices(pair_exchanges([exchange(body) for body in bodies], {"s": steps(3)})) == [0, 1, 2]


@pytest.mark.parametrize(
    ("captured", "expected"),
    [
        ([0, 1, 2, 4], [0, 1, 2, 4, -4]),  # one is missing
        ([2, 3], [2, 3, -1, -2, -5]),  # partly captured
        ([0, "odd", 2, 3, 4], [0, 1, 2, 3, 4]),  # one differs
        ([0, 1, 1, 2, 3, 4], [0, 1, "unexplained", 2, 3, 4]),  # one too many, seen before
        ([0, 1, "odd", 2, 3, 4], [0, 1, "unexplained", 2, 3, 4]),  # one too many, never seen
        (["odd", "odd", 3], [0, 1, 3, -3, -5]),  # likest length first
        ([4, 3, 2, 1, 0], [4, 3, 2, 1, 0]),  # order of receipt is not trusted above content
        ([], [-1, -2, -3, -4, -5]),
    ],
)
def test_missing_different_and_additional_captures(captured: list[Any], expected: list[Any]) -> None:
    bodies = [step_body(at if item == "odd" else item) for at, item in enumerate(captured)]
    shown = [broken(body) if item == "odd" else body for item, body in zip(captured, bodies, strict=True)]
    assert indices(pair_exchanges([exchange(body) for body in shown], {"s": steps(5)})) == expected


def test_a_dispatch_that_may_have_sent_nothing() -> None:
    maybe = candidate(0, step_body(0), wire_min=0)
    attempts = [maybe, candidate(1, step_body(0)), candidate(2, step_body(1))]
    both = [exchange(step_body(0)), exchange(step_body(0)), exchange(step_body(1))]
    assert indices(pair_exchanges(both, {"s": attempts})) == [0, 1, 2]
    assert indices(pair_exchanges(both[1:], {"s": attempts})) == [1, 2, -1]
    never = [replace(maybe, wire_max=0), *attempts[1:]]
    assert indices(pair_exchanges(both[1:], {"s": never})) == [1, 2]
    different = [exchange(broken(step_body(0))), exchange(broken(step_body(1)))]
    assert indices(pair_exchanges(different, {"s": attempts})) == [1, 2, -1]


def test_a_dispatch_that_may_have_sent_twice() -> None:
    twice = [candidate(0, step_body(0)), candidate(1, step_body(1, id="b"), wire_max=2)]
    shown = [step_body(0), step_body(1, id="a"), step_body(1, id="b")]
    assert indices(pair_exchanges([exchange(body) for body in shown], {"s": twice})) == [0, "unexplained", 1]
    shown = [step_body(0), step_body(1, id="b"), step_body(1, id="c")]
    assert indices(pair_exchanges([exchange(body) for body in shown], {"s": twice})) == [0, 1, 1]


def test_titles_and_compactions_race_the_steps() -> None:
    dispatches = [
        candidate(0, TITLE, "title"),
        candidate(1, step_body(0)),
        candidate(2, step_body(0, compact=True), "compaction"),
        candidate(3, step_body(1)),
    ]
    shown = [
        exchange(step_body(0)),
        exchange(step_body(1)),
        exchange(step_body(0, compact=True), "s", COMPACT),
        exchange(TITLE),
    ]
    assert indices(pair_exchanges(shown, {"s": dispatches})) == [1, 3, 2, 0]
    altered = [exchange(broken(step_body(0))), *shown[1:3], exchange(TITLE + b" ")]
    assert indices(pair_exchanges(altered, {"s": dispatches})) == [1, 3, 2, 0]


def test_a_compaction_pairs_with_compactions_only() -> None:
    assert indices(pair_exchanges([exchange(step_body(0), "s", COMPACT)], {"s": steps(1)})) == [
        "unexplained",
        -1,
    ]


def test_alternatives() -> None:
    bodies = [parse_parts(step_body(0, files=True)), parse_parts(step_body(0))]
    either = candidate(0, None, keys=tuple(map(BodyKey.of, bodies)), load_body=bodies.__getitem__)
    for place, body in enumerate(bodies):
        (pair,) = pair_exchanges([exchange(body.to_bytes())], {"s": [either]})
        assert (pair.alternative, pair.evidence) == (place, "bytes")
        (pair,) = pair_exchanges([exchange(b" " + body.to_bytes())], {"s": [either]})
        assert (pair.alternative, pair.evidence) == (place, "json")


def test_parsed_and_printed_again() -> None:
    shown = [json.dumps(json.loads(step_body(index)), sort_keys=True).encode() for index in (1, 3, 4)]
    pairs = pair_exchanges([exchange(body, fidelity=Fidelity.JSON) for body in shown], {"s": steps(5)})
    assert indices(pairs) == [1, 3, 4, -1, -3]
    assert {pair.evidence for pair in pairs} == {"json", None}


def test_what_is_no_request_of_a_given_session() -> None:
    shown = [
        exchange(b"--boundary", None, path="/v1/files"),
        exchange(None, None, path="/v1/models", method="GET"),
        exchange(step_body(0), "another"),
        exchange(step_body(0, "another"), None),
        exchange(b'{"q":1}', None, ("user-agent", "deepseek-harness/0.0.1"), path="/v1/messages"),
        exchange(b"", None),
    ]
    pairs = pair_exchanges(shown, {"s": steps(1)})
    assert indices(pairs) == ["other"] * 6 + [-1]
    assert all(pair.notes for pair in pairs[:6])


def test_searches_pair_by_content() -> None:
    search = candidate(0, b'{"q":1}', "web-search", endpoint="search", wire_min=0)
    agent = ("user-agent", "deepseek-harness/0.0.1")
    shown = [exchange(body, None, agent, path="/v1/messages") for body in (b'{"q":2}', b'{"q":1}')]
    assert indices(pair_exchanges(shown, {"s": [search, *steps(1)[:0]]})) == ["other", 0]


def test_requests_that_name_no_session() -> None:
    both = {
        name: [replace(candidate(index, step_body(index, name)), session_id=name) for index in range(3)]
        for name in ("s", "t")
    }
    shown = [
        exchange(broken(step_body(0, "t")), None, ("x-client-request-id", "t")),
        exchange(step_body(1, "t"), None),
        exchange(step_body(0, "s"), None),
        exchange(step_body(2, "t").replace(b"turn 2", b"TURN 2"), None),  # by its first message
    ]
    pairs = pair_exchanges(shown, both)
    assert [pair.candidate and (pair.candidate.session_id, pair.candidate.index) for pair in pairs[:4]] == [
        ("t", 0),
        ("t", 1),
        ("s", 0),
        ("t", 2),
    ]


def test_two_sessions_with_the_same_first_request() -> None:
    both = {name: [replace(candidate(0, step_body(0)), session_id=name)] for name in ("s", "t")}
    pairs = pair_exchanges([exchange(step_body(0), None), exchange(step_body(0), None)], both)
    assert [pair.candidate and pair.candidate.session_id for pair in pairs] == ["s", "t"]


def test_another_protocol_never_pairs_in_order() -> None:
    pairs = pair_exchanges([exchange(broken(step_body(0)), path="/v1/messages")], {"s": steps(1)})
    assert indices(pairs) == ["unexplained", -1]
    unknown = [candidate(0, None, endpoint=None)]
    pairs = pair_exchanges([exchange(step_body(0), path="/v1/messages")], {"s": unknown})
    assert indices(pairs) == [0]


def test_no_body_keeps_the_place_but_proves_nothing() -> None:
    shown = [exchange(broken(step_body(0))), exchange(None), exchange(broken(step_body(2)))]
    pairs = pair_exchanges(shown, {"s": steps(3)})
    assert indices(pairs) == [0, 1, 2]
    more = pair_exchanges([*shown, exchange(None)], {"s": steps(3)})[-1]
    assert (more.status, more.notes) == ("not-checked", ("no body was captured",))


def test_long_sessions_without_any_equal_body() -> None:
    shown = [exchange(broken(step_body(index))) for index in range(120) if index != 60]
    expected = [index for index in range(120) if index != 60]
    assert indices(pair_exchanges(shown, {"s": steps(120)})) == [*expected, -61]


def test_random_losses_and_changes_are_found_again() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        kept = sorted(rng.sample(range(20), 15))
        altered = set(rng.sample(kept, 3))
        shown = [
            exchange(step_body(index) + b" " if index in altered else step_body(index)) for index in kept
        ]
        found = indices(pair_exchanges(shown, {"s": steps(20)}))
        assert found[: len(kept)] == kept


def test_a_body_that_matches_nothing_is_compared_with_bodies_of_its_size_only() -> None:
    loaded: list[int] = []

    def counted(index: int) -> Candidate:
        def load(_place: int) -> Body:
            loaded.append(index)
            return parse_parts(step_body(index))

        return candidate(index, step_body(index), load_body=load)

    many = [counted(index) for index in range(3000)]
    pairs = pair_exchanges([exchange(broken(step_body(40)))], {"s": many})
    assert pairs[0].status == "paired" and loaded == [40]


def text(data: bytes) -> Part:
    return Part(data, "message", "", ())


def test_the_start_of_many_bodies_is_measured_once() -> None:
    run = PartRun()
    for index in range(50):
        run.append(text(b"message %d," % index))
    bodies = [Body((text(b"["),), run, count, (text(b"end %d]" % count),)) for count in range(51)]
    captured = bodies[50].to_bytes().replace(b"message 30", b"message x0")
    meter = PrefixMeter(captured)
    expected = [common_start(captured, body.to_bytes()) for body in bodies]
    assert [meter.common(body) for body in bodies] == expected
    assert [meter.common(body) for body in bodies[::-1]] == expected[::-1]
