from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.events import Event
from dsh_audit.formats import FORMATS
from dsh_audit.formats.migrate import migrate
from dsh_audit.log.generations import build_history, find_border, find_migrated_end
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.session_replay import AS_MIGRATED, Replay
from dsh_audit.text import ecma
from tests.logs import SessionV0, log_of, two_turns


def migrated(session: SessionV0, *, native: bool = True, edit: Any = None) -> SessionLog:
    """The session as a format-4 writer leaves it, with a first native event."""
    log = session.log()
    result = migrate(log.events(), log.session_header, 4)
    events = list(result.events)
    if native:
        events.append(Event("session/end-seed", len(events), 9999, {}))
    if edit is not None:
        events = [edit(event) for event in events]
    rows = [result.header.raw, *(FORMATS[4].encode_row(event) for event in events)]
    return log_of(b"".join(ecma.stringify(row) + b"\n" for row in rows), "session.v4.jsonl")


def test_the_border_is_where_the_log_stops_being_the_migrated_predecessor() -> None:
    session = two_turns()
    log = migrated(session)
    border, problem = find_border(log, session.log())
    assert problem is None
    assert [event.type for event in log.events() if event.seq >= border] == ["session/end-seed"]


def test_requests_before_the_migration_come_from_the_old_log() -> None:
    session = two_turns()
    history = build_history(migrated(session), [session.log()])
    requests = list(Replay(history, Deployment()))
    assert [(item.log.version, item.encoded.protocol) for item in requests] == [(0, "deepseek-chat-completions")] * 3
    assert [item.index for item in requests] == [0, 1, 2]
    assert history.findings == ()


def test_without_the_old_log_they_are_as_migrated_not_as_sent() -> None:
    history = build_history(migrated(two_turns()))
    assert [finding.code for finding in history.findings] == ["log/as-migrated"]
    for item in Replay(history, Deployment()):
        assert item.encoded.claim == "logical"
        assert AS_MIGRATED in item.encoded.why


def test_a_predecessor_that_is_not_continued_is_not_used() -> None:
    def edit(event: Event) -> Event:
        return event.changed(time=event.time + 1) if event.seq == 3 else event

    log = migrated(two_turns(), edit=edit)
    history = build_history(log, [two_turns().log()])
    assert "log/predecessor-mismatch" in [finding.code for finding in history.findings]
    assert len(history.generations) == 1


def test_a_log_of_the_same_format_is_no_predecessor() -> None:
    log = migrated(two_turns())
    assert find_border(log, log) == (0, "it holds format 4")
    history = build_history(log, [log])
    assert [finding.code for finding in history.findings] == ["log/predecessor-mismatch", "log/as-migrated"]


def test_what_a_damaged_predecessor_lost_is_as_migrated() -> None:
    session = two_turns()
    log = migrated(session)
    lines = session.log().source.open().read().split(b"\n")
    damaged = log_of(b"\n".join([*lines[:20], b"{broken", *lines[21:]]), "session.jsonl")
    history = build_history(log, [damaged])
    assert [generation.log.version for generation in history.generations] == [0, 4]
    later = [item for item in Replay(history, Deployment()) if item.log.version == 4]
    assert later
    assert all(item.encoded.claim == "logical" and AS_MIGRATED in item.encoded.why for item in later)


def test_another_session_is_no_predecessor() -> None:
    other = SessionV0("other")
    _, problem = find_border(migrated(two_turns()), other.log())
    assert problem == "session other is another session"


@pytest.mark.parametrize("native", [True, False])
def test_a_log_that_was_never_migrated_shows_no_border(native: bool) -> None:
    assert find_migrated_end(two_turns().log()) == 0
    assert bool(find_migrated_end(migrated(two_turns(), native=native))) is native


def test_answers_without_a_replay_state_show_a_migration_in_format_4() -> None:
    session = two_turns()
    for row in session.rows[1:]:
        if row["type"] == "request/header":
            row["data"]["header"].pop("system")
    log = migrated(session, edit=_rename_system)
    assert find_migrated_end(log) == next(event.seq for event in log.events() if event.type == "session/end-seed")


def _rename_system(event: Event) -> Event:
    """The same system message under an id that the migration does not make."""
    if event.type != "system/message":
        return event
    return event.changed(data={**event.data, "message": {**event.data["message"], "id": "x"}})
