"""The fast way through usual rows gives what the row by row decoder of each format gives, for any bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dsh_audit.events import ChunkRun, Event
from dsh_audit.formats import FORMATS, rows
from dsh_audit.formats.base import RowRejectedError
from dsh_audit.formats.migrate import migrate
from dsh_audit.formats.rows import RowDecoder
from dsh_audit.text import ecma
from tests.format_rows import HEADERS
from tests.logs import two_turns

VERSIONS = tuple(FORMATS)
SPOILS: list[Any] = [None, True, "", "x", 0, 1, -1, 1.5, -0.0, 2**53, [], {}, [1], [[0, 1]], {"kind": "plugin"}]
BYTES = [b"", b" ", b"\n", b"\xff", b'"', b"{}", b"9", b"-0", b"\\ud800"]


def session_rows(version: int) -> list[dict[str, Any]]:
    """The rows of a small session with chunks, tools and two turns, as the format has them."""
    log = two_turns().log()
    migrated = migrate(log.events(), log.session_header, version).events
    found = [FORMATS[version].encode_row(event) for event in migrated]
    return [*found, *packed_rows(len(found))] if version < 2 else found


def packed_rows(seq: int) -> list[dict[str, Any]]:
    at = {"turn": 3, "step": 1, "index": 0, "dt": [1, 0]}
    call = {**at, "id": "c", "name": "n", "args": ["{", "", "}"]}
    return [
        {"type": "text-chunks", "seq0": seq, "time0": 5, "data": {**at, "texts": ["a", "b", "c"]}},
        {"type": "tool-call-chunks", "seq0": seq + 3, "time0": 6, "data": call},
        {"type": "assistant/chunk", "seq": seq + 6, "time": 9, "data": {"turn": 3, "step": 1, "chunk": {"type": "x"}}},
    ]


def outcome(version: int, text: bytes) -> tuple[list[Event], str, Any]:
    """Every event of a text, how it ended, and what re-loading refuses."""
    decoder = RowDecoder(FORMATS[version], FORMATS[version].parse_session_header(HEADERS[version]))
    events: list[Event] = []
    end = "whole"
    try:
        for event in decoder.decode(text, 2):
            events += event.expand() if isinstance(event, ChunkRun) else (event,)
    except (RowRejectedError, ecma.EcmaSyntaxError) as error:
        end = f"{decoder.line} {getattr(error, 'kind', '')} {error}"
    return events, end, decoder.refusal


def slowly(monkeypatch: pytest.MonkeyPatch, version: int, text: bytes) -> tuple[list[Event], str, Any]:
    with monkeypatch.context() as patch:
        patch.setattr(rows, "_usual_rows", lambda _text, _count: None)
        return outcome(version, text)


def lines(values: list[dict[str, Any]]) -> bytes:
    return b"".join(ecma.stringify(value) + b"\n" for value in values)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def spoil(rng: random.Random, value: Any) -> None:
    """Change, remove, rename or add one member anywhere in a row."""
    *path, key = rng.choice(list(places(value)))
    for step in path:
        value = value[step]
    way = rng.randrange(4)
    if way == 0 and isinstance(value, dict):
        value[rng.choice(["x", "1", "error", "surfaceOp", "sourceEventSeqs", "ignorable", "seq0"])] = rng.choice(SPOILS)
    elif way == 1:
        del value[key]
    else:
        value[key] = rng.choice(SPOILS)


@pytest.mark.parametrize("version", VERSIONS)
def test_sound_rows_are_usual_and_read_alike(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = lines(session_rows(version))
    events, end, refusal = outcome(version, text)
    assert (events, end, refusal) == slowly(monkeypatch, version, text)
    assert (end, refusal, len(events) > 15) == ("whole", None, True)


@pytest.mark.parametrize("version", VERSIONS)
def test_spoilt_rows_are_read_alike(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(version)
    made, ends, refusals = lines(session_rows(version)), set(), 0
    for _ in range(400):
        values = [ecma.parse(line) for line in made.splitlines()]
        spoil(rng, values[rng.randrange(len(values))])
        text = lines(values)
        if rng.random() < 0.3:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(BYTES) + text[at + 1 :]
            text = text if text.endswith(b"\n") else text + b"\n"
        found = outcome(version, text)
        assert found == slowly(monkeypatch, version, text), text
        ends.add(found[1].split(" ")[1] if found[1] != "whole" else "whole")
        refusals += found[2] is not None
    assert {"whole", "", "undecodable"} <= ends and refusals > 5


def test_chunks_are_one_run_and_are_expanded_when_looked_at() -> None:
    data = {"turn": 1, "step": 1, "index": 0, "dt": [1, 2], "texts": ["a", "b", "c"]}
    usage = {"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": {}}}
    start = {"turn": 1, "step": 1, "chunk": {"type": "block-start", "index": 0, "blockType": "text"}}
    text = lines(
        [
            {"type": "assistant/chunk", "seq": 0, "time": 5, "data": start},
            {"type": "text-chunks", "seq0": 1, "time0": 6, "data": data},
            {"type": "assistant/chunk", "seq": 4, "time": 9, "data": usage},
        ]
    )
    decoder = RowDecoder(FORMATS[0], FORMATS[0].parse_session_header(HEADERS[0]))
    run, last = decoder.decode(text, 2)
    assert isinstance(run, ChunkRun) and not isinstance(last, ChunkRun)
    assert (run.seq, run.last_seq, run.count, run.time, run.last_time, run.line) == (0, 3, 4, 5, 9, 2)
    assert [(event.seq, event.line) for event in run.expand()] == [(0, 2), (1, 3), (2, 3), (3, 3)]
    assert run.data == start and last.data == usage
    for split, counts in ((1, [1, 3]), (2, [1, 1, 1, 1]), (4, [4])):
        parted = RowDecoder(FORMATS[0], FORMATS[0].parse_session_header(HEADERS[0]), split).decode(text, 2)
        assert [event.last_seq - event.seq + 1 for event in parted][:-1] == counts


EMPTY_ID = {"kind": "tool", "callId": ""}


def test_what_only_re_loading_refuses_is_read_on() -> None:
    """A live run of 0.1.5 whose provider gave an empty call id went on and sent requests."""
    values = session_rows(3)
    at = next(at for at, value in enumerate(values) if value["type"] == "tool/result")
    values[at]["data"]["message"]["source"] = EMPTY_ID
    events, end, refusal = outcome(3, lines(values))
    assert (len(events), end) == (len(values), "whole")
    assert (refusal.seq, refusal.line, refusal.reason) == (at, at + 2, "tool/result message must have tool source")


@pytest.mark.parametrize("version", [3, 4])
def test_a_splice_that_does_not_fit_is_refused_on_re_loading(version: int) -> None:
    values = session_rows(version)
    splice = {"target": "next-turn", "start": 0, "inserted": [], "removedCount": 1}
    values.append({"type": "agent/inbox/spliced", "seq": len(values), "time": 5, "data": splice})
    events, end, refusal = outcome(version, lines(values))
    assert (len(events), end) == (len(values), "whole")
    assert refusal.reason == f"invalid persisted inbox splice at session seq {len(values) - 1}"


WRITER_RULES = [
    (0, {"surfaceOp": {"op": "replace", "start": 1}}),
    (3, {"sourceEventSeqs": [999]}),
    (4, {"data": {"role": "developer", "content": []}}),
    (4, {"data": {"role": "user", "content": [{"type": "tool-addition", "toolName": "t"}]}}),
]


@pytest.mark.parametrize(("version", "change"), WRITER_RULES)
def test_what_no_harness_writes_ends_the_log(version: int, change: dict[str, Any]) -> None:
    values = session_rows(version)
    at = next(at for at, value in enumerate(values) if value["type"] == "user/message")
    values[at].update(change)
    events, end, _ = outcome(version, lines(values))
    assert len(events) == at and end.startswith(f"{at + 2} ")


def test_a_copy_of_a_format_runs_under_a_new_number() -> None:
    """Adding a format is one module and one entry."""
    copy = replace(FORMATS[4], version=5)
    decoder = RowDecoder(copy, FORMATS[4].parse_session_header(HEADERS[4]))
    text = lines(session_rows(4))
    assert list(decoder.decode(text, 2)) == outcome(4, text)[0]
