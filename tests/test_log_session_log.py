from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dsh_audit.errors import LogError
from dsh_audit.text import ecma
from tests.logs import SessionV0, frame, log_of, two_turns


def read(data: bytes) -> tuple[list[int], list[str], Any]:
    reader = log_of(data).events()
    seqs = [event.seq for event in reader]
    return seqs, [finding.code for finding in reader.findings], reader


def lines(session: SessionV0) -> list[bytes]:
    return session.plain().splitlines(keepends=True)


def test_a_sound_log_is_read_whole() -> None:
    session = two_turns()
    for data in (session.plain(), session.zstd()):
        seqs, codes, reader = read(data)
        assert seqs == list(range(session.seq))
        assert codes == []
        assert (reader.stats.events, reader.stopped_at, reader.fence_seq) == (session.seq, None, None)


def test_through_stops_after_a_seq() -> None:
    assert [event.seq for event in two_turns().log().events(through=4)] == [0, 1, 2, 3, 4]


def drop(index: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda rows: rows[:index] + rows[index + 1 :]


def repeat(index: int) -> Callable[[list[bytes]], list[bytes]]:
    return lambda rows: rows[: index + 1] + rows[index:]


def spoil(index: int, row: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda rows: [*rows[:index], row, *rows[index + 1 :]]


DAMAGE = [
    ("seq gap in committed data", drop(3), 2, "log/damaged"),
    ("duplicate in committed data", repeat(3), 3, "log/damaged"),
    ("not JSON in committed data", spoil(3, b"{nope\n"), 2, "log/damaged"),
    ("invalid UTF-8 in committed data", spoil(3, b'{"type":"\xff"}\n'), 2, "log/damaged"),
    ("a gap in the last turn", drop(-2), None, "log/damaged"),
    ("an unknown tail", lambda rows: [*rows, b"[]\n"], None, "log/dropped-tail"),
    ("a rewind at the end", lambda rows: [*rows, rows[2]], None, "log/dropped-tail"),
]


@pytest.mark.parametrize(("what", "change", "last", "code"), DAMAGE, ids=[case[0] for case in DAMAGE])
def test_damage(what: str, change: Callable[[list[bytes]], list[bytes]], last: int | None, code: str) -> None:
    rows = lines(two_turns())
    seqs, codes, reader = read(b"".join(change(rows)))
    assert codes == [code]
    assert seqs == list(range(len(seqs)))
    assert reader.stopped_at == len(seqs)
    if last is not None:
        assert seqs == list(range(last))


def test_an_ignorable_unknown_event_is_skipped_and_a_required_one_fences() -> None:
    session = two_turns()
    session.add("acme/note", {"x": 1}, ignorable=True)
    fence = session.add("acme/rewrite", {"x": 1})
    session.simple_turn("more", "ok")
    seqs, codes, reader = read(session.plain())
    assert seqs == list(range(session.seq))
    assert codes == ["log/ignored-event", "log/unknown-event"]
    assert reader.fence_seq == fence


def test_a_projected_fixture_is_numbered() -> None:
    session = two_turns()
    rows = [{k: v for k, v in row.items() if k not in ("seq", "time")} for row in session.rows[1:]]
    data = b"".join(ecma.stringify(row) + b"\n" for row in rows)
    log = log_of(data)
    assert [finding.code for finding in log.open_findings] == ["log/no-session-header"]
    reader = log.events()
    assert [event.seq for event in reader] == list(range(session.seq))
    assert [finding.code for finding in reader.findings] == ["log/projected"]


REFUSED = [
    (b"", "the file is empty"),
    (b"\n", "line 1 is not JSON"),
    (b'{"type":"session"', "no complete row"),
    (b"hello\n", "line 1 is not JSON"),
    (b"[]\n", "no session header"),
    (b'{"type":"session","version":5,"id":"x"}\n', "format 5 is not supported"),
    (b'{"type":"session","version":"0","id":"x"}\n', "no valid format version"),
    (b'{"type":"session","version":0}\n', "session header is not valid"),
    (b"\x28\xb5\x2f\xfdgarbage", "no complete row"),
    (frame(b""), "no complete row"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_is_no_log_is_one_clear_error(data: bytes, message: str) -> None:
    with pytest.raises(LogError) as caught:
        log_of(data)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


def test_a_deeply_nested_row_is_read() -> None:
    session = two_turns()
    deep = "[" * 10_000 + "]" * 10_000
    session.rows.append({"type": "acme/deep", "seq": session.seq, "time": 1, "data": None, "ignorable": True})
    data = session.plain().replace(b'"data":null', b'"data":' + deep.encode())
    seqs, codes, _ = read(data)
    assert seqs == list(range(session.seq + 1))
    assert codes == ["log/ignored-event"]


def test_own_events_of_a_seeded_log_start_after_the_seed() -> None:
    session = two_turns()
    session.rows[0] = {**session.rows[0], "seedLength": 5}
    assert session.log().own_from() == 5


def test_a_seed_longer_than_the_log_is_told() -> None:
    session = two_turns()
    session.rows[0] = {**session.rows[0], "seedLength": 9999}
    _, codes, _ = read(session.plain())
    assert codes == ["log/seed-length"]
