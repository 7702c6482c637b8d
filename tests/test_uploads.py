"""``uploads``: ranges, bytes, hosts and acceptance from markers alone and from captures; totals and repeats."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.checks.uploads import Upload, UploadsReport, check_uploads, read_field
from dsh_audit.checks.uploads_run import run_uploads
from dsh_audit.deployment import Deployment
from dsh_audit.log.generations import Generation, SessionHistory, build_history
from dsh_audit.log.session_log import LogSource, open_log
from dsh_audit.replay.session_replay import Rebuilt, Replay
from dsh_audit.report.uploads import render_uploads
from dsh_audit.wire.extensions import Extensions
from dsh_audit.wire.session_log_field import MARKER
from tests.captures import write_bundle
from tests.cli import run
from tests.toy_session import ToySession

SCHEMA = json.loads((Path(__file__).parent.parent / "schemas" / "uploads.schema.json").read_text("utf-8"))


def mark(session: ToySession, through: int | None = None, **more: Any) -> int:
    """A delivery marker whose range ends right before it, or where named."""
    data = {"sessionId": session.ident, "throughSeq": session.seq - 1 if through is None else through}
    if session.version:
        data["sessionFormatVersion"] = session.version
    return session.add(MARKER, {**data, **more})


def step(session: ToySession, text: str, *, failures: int = 0, marked: bool = True) -> None:
    """A turn of one step."""
    session.begin(text)
    for _ in range(failures):
        session.fail()
    if marked:
        mark(session)
    session.answer("Done.")
    session.add("step/end", {"turn": session.turn, "step": session.step})
    session.add("turn/end", {"turn": session.turn, "reason": {"kind": "completed"}})


def toy(version: int = 4) -> ToySession:
    """Two accepted uploads, one refused attempt before the second."""
    session = ToySession(version)
    step(session, "one")
    step(session, "two", failures=1)
    return session


def rebuild(session: ToySession, deployment: Deployment | None = None) -> list[Rebuilt]:
    """All requests of a session."""
    return list(Replay(session.history(), deployment or Deployment()))


def bodies(session: ToySession, deployment: Deployment | None = None) -> list[bytes]:
    """Every request as sent; unmarked ones end with the last event before their settlement."""
    extensions = Extensions(session.log(), deployment or Deployment())
    sent = []
    for rebuilt in rebuild(session):
        body = rebuilt.encoded.body
        assert body is not None
        span = next(extensions.spans(rebuilt.request), None)
        value = None if span is None else extensions.value(span)
        tail = b"}" if value is None else b',"dsh_session_log":' + value + b"}"
        sent.append(body.to_bytes()[:-1] + tail)
    return sent


def exchange(ident: str, body: bytes | None, host: str | None = "h:1", status: int | None = None) -> Exchange:
    """A captured request."""
    return Exchange(ident, "POST", "/v1/messages", host, (), Fidelity.RAW, 0, lambda: body, status=status)


def captured(session: ToySession, sent: Sequence[bytes], **more: Any) -> UploadsReport:
    """The check of a session whose requests were all captured."""
    exchanges = {index: [exchange(f"{index:04}", body, **more)] for index, body in enumerate(sent)}
    return check_uploads("toy", rebuild(session), Deployment(), exchanges)


def ranges(report: UploadsReport) -> list[tuple[int | None, int, int, int]]:
    """Request, first, last and repeated events of each upload."""
    return [(upload.request, upload.first_seq, upload.last_seq, upload.resent) for upload in report.uploads]


@pytest.mark.parametrize("version", [0, 3, 4])
def test_from_the_log_alone(version: int) -> None:
    session = toy(version)
    seqs = [row["seq"] for row in session.rows if row.get("type") == MARKER]
    report = check_uploads("toy", rebuild(session), Deployment())
    assert ranges(report) == [(0, 0, seqs[0] - 1, 0), (2, seqs[0], seqs[1] - 1, 0)]
    assert [upload.proof for upload in report.uploads] == ["marker", "marker"]
    assert [upload.size_bytes for upload in report.uploads] == [
        len(body) - body.index(b'"dsh_session_log":') - len('"dsh_session_log":') - 1
        for index, body in enumerate(bodies(session))
        if index != 1
    ]
    assert report.possible == {"toy": (1,)}
    assert {upload.host for upload in report.uploads} == {"api.deepseek.com"}
    summary = report.summary
    assert (summary["uploads"], summary["accepted"], summary["possible"]) == (2, 2, 1)
    assert summary["events"] == summary["distinct_events"] == seqs[1]


def test_hosts_may_come_from_the_deployment() -> None:
    deployment = Deployment({"providers": {"deepseek-official": {"base_url": "https://proxy.example:8/v1"}}})
    report = check_uploads("toy", rebuild(toy()), deployment)
    assert [(u.host, u.host_source) for u in report.uploads] == [("proxy.example:8", "deployment")] * 2


def test_with_a_capture() -> None:
    session = toy()
    sent = bodies(session)
    report = captured(session, sent)
    assert [(u.proof, u.accepted, u.verified) for u in report.uploads] == [
        ("marker+capture", True, True),
        ("capture", False, True),
        ("marker+capture", True, True),
    ]
    refused, accepted = report.uploads[1:]
    assert accepted.resent == refused.events
    summary = report.summary
    assert summary["size_bytes"] == sum(len(b) - b.index(b'"dsh_session_log":') - 19 for b in sent)
    assert (summary["refused"], summary["hosts"], report.possible) == (1, ["h:1"], {})
    assert report.findings == ()


@pytest.mark.parametrize(("status", "accepted"), [(200, True), (503, False), (None, False)])
def test_the_answer_of_a_request_without_marker(status: int | None, accepted: bool) -> None:
    session = toy()
    report = captured(session, bodies(session), status=status)
    assert report.uploads[1].accepted is accepted


def test_a_request_that_nothing_answered() -> None:
    session = toy()
    session.begin("three")
    report = captured(session, bodies(session))
    assert report.uploads[-1].accepted is None


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (rb'"text":"four"', b'"text":"FOUR"'),
        (rb'"throughSeq":[0-9]+', b'"throughSeq":1'),
        (rb'"afterSeq":[0-9]+', b'"afterSeq":-1'),
        (rb'"delegationDepth":0', b'"delegationDepth":1'),
        (rb'"afterSeq":', b'"afterSeq": '),
    ],
)
def test_an_altered_field_is_found(pattern: bytes, replacement: bytes) -> None:
    session = toy()
    session.restart()
    step(session, "four")
    sent = bodies(session)
    at = sent[-1].index(b'"dsh_session_log":')
    field, changes = re.subn(pattern, replacement, sent[-1][at:], count=1)
    assert changes == 1
    sent[-1] = sent[-1][:at] + field
    report = captured(session, sent)
    assert [upload.verified for upload in report.uploads] == [True, True, True, False]
    assert [finding.code for finding in report.findings] == ["uploads/altered"]
    assert report.findings[0].where.request == 3


def test_a_capture_without_the_field_is_no_upload_unless_a_marker_proves_one() -> None:
    session = toy()
    sent = [body[: body.index(b',"dsh_session_log":')] + b"}" for body in bodies(session)]
    report = captured(session, sent)
    assert [(u.request, u.proof, u.captured) for u in report.uploads] == [(0, "marker", None), (2, "marker", None)]
    assert report.possible == {}
    assert [finding.code for finding in report.findings] == ["uploads/uncaptured"]
    assert "2 uploads are proven by markers only: requests 0, 2" in report.findings[0].message


def test_captures_that_no_request_explains() -> None:
    session = toy()
    body = bodies(session)[2]
    strangers = [exchange("9", body), exchange("8", None), exchange("7", b"{}"), exchange("6", b"junk")]
    report = check_uploads("toy", [], Deployment(), {}, strangers)
    (upload,) = report.uploads
    assert (upload.request, upload.captured, upload.verified, upload.generation) == (None, "9", False, 4)


def test_logs_of_releases_without_the_field() -> None:
    session = ToySession(0)
    step(session, "one", failures=1, marked=False)
    report = check_uploads("toy", rebuild(session), Deployment())
    assert (report.uploads, report.possible) == ((), {})
    on = Deployment({"extensions": {"session_log": "on"}})
    assert check_uploads("toy", rebuild(session, on), on).possible == {"toy": (0,)}
    off = Deployment({"extensions": {"session_log": "off"}})
    assert check_uploads("toy", rebuild(toy(), off), off).uploads == ()


def test_markers_of_the_parent_are_not_this_sessions() -> None:
    session = ToySession(4)
    session.rows[0] |= {"isSeeded": True, "parentSession": "parent"}
    session.begin("one")
    mark(session, sessionId="parent")
    session.answer("Done.")
    session.add("step/end", {"turn": 1, "step": 1})
    session.add("turn/end", {"turn": 1, "reason": {"kind": "forked"}})
    seed = session.add("session/end-seed", {"inherited": True})
    session.rows[0] = dict(sorted(session.rows[0].items(), key=lambda item: _ORDER.index(item[0])))
    step(session, "two")
    (upload,) = check_uploads("toy", rebuild(session), Deployment()).uploads
    assert (upload.first_seq, upload.inherited) == (0, seed)


_ORDER = ["type", "version", "id", "createdAt", "cwd", "parentSession", "isSeeded", "delegationDepth"]


def test_after_a_migration_everything_is_sent_again() -> None:
    old, new = toy(3), toy(4)
    border = new.seq
    new.restart()
    step(new, "three")
    for row in new.rows:
        if row.get("type") == MARKER and row["seq"] < border:
            row["data"].pop("sessionFormatVersion")
    history = SessionHistory((Generation(old.log()), Generation(new.log(), border)))
    report = run_uploads([history], [], Deployment())
    assert [upload.generation for upload in report.uploads] == [3, 3, 4]
    last = report.uploads[-1]
    assert (last.first_seq, last.resent) == (0, border)


def test_ranges_that_overlap_are_counted_once() -> None:
    session = ToySession(4)
    session.begin("one")
    title = session.title()
    mark(session, title)
    mark(session, title - 1)
    session.answer("Done.")
    report = check_uploads("toy", rebuild(session), Deployment())
    by_kind = {upload.kind: upload for upload in report.uploads}
    assert by_kind["title"].resent + by_kind["step"].resent == by_kind["step"].events
    assert report.summary["distinct_events"] == title + 1


def test_read_field() -> None:
    body = b'{"a":{"dsh_session_log":1},"dsh_session_log":{"afterSeq":-1,"throughSeq":2,"events":[]}}'
    sent = read_field(body)
    assert sent is not None
    assert (sent.after, sent.through, sent.version) == (-1, 2, None)
    assert body[sent.at : sent.at + sent.size_bytes].startswith(b'{"afterSeq"')
    for bad in (b"", b"{}", b'{"dsh_session_log":{}}', b'{"dsh_session_log":[]}', b'{"dsh_session_log":{"afterSeq":'):
        assert read_field(bad) is None


def write(session: ToySession, folder: Path) -> Path:
    """The log as a file."""
    path = folder / "session.v4.jsonl"
    path.write_bytes(session.plain())
    return path


def test_command(tmp_path: Path) -> None:
    session = toy()
    log = write(session, tmp_path)
    bundle = write_bundle(tmp_path / "captures", bodies(session), "toy", "/v1/messages")
    done = run("uploads", log, "--capture", bundle, "--format", "json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(value)
    assert [upload["verified"] for upload in value["uploads"]] == [True, True, True]
    text = run("uploads", log)
    assert text.returncode == 0
    assert text.stdout.startswith(b"SENT 2 uploads: ")
    assert b"1 more request may have carried" in text.stdout
    assert run("uploads", log, "--fail-on-upload").returncode == 1


def test_command_without_uploads(tmp_path: Path) -> None:
    session = ToySession(4)
    step(session, "one", marked=False)
    done = run("uploads", write(session, tmp_path), "--fail-on-upload")
    assert (done.returncode, done.stdout) == (0, b"OK no request is known to have carried a part of the log\n")


def test_an_imported_session_was_uploaded_under_its_other_id(tmp_path: Path) -> None:
    session = toy()
    target = write(session, tmp_path)
    head, rest = target.read_bytes().split(b"\n", 1)
    target.write_bytes(head.replace(session.ident.encode(), b"imported") + b"\n" + rest)
    done = run("uploads", target, "--fail-on-upload")
    assert done.returncode == 1
    assert done.stdout.startswith(b"SENT 2 uploads under another session id; what they held is not known")
    claims = [row["claim"] for row in json.loads(run("requests", target, "--format", "json").stdout)["requests"]]
    assert claims.count("logical") == 2


def test_text_says_what_is_unknown() -> None:
    upload = Upload(
        session_id="s\x1b", request=None, kind=None, turn=None, step=None, captured="0001", generation=4, first_seq=0,
        last_seq=2, events=3, resent=0, inherited=0, size_bytes=None, host=None, host_source="default", accepted=None,
        proof="capture", verified=False,
    )  # fmt: skip
    text = render_uploads(UploadsReport((), (upload,) * 201, {"s": tuple(range(25))}, ()))
    assert "at least 0 B to an unknown host" in text
    assert "… and 1 more upload; --format json lists them all" in text
    assert "\x1b[" in text and "s\\u001b" in text
    assert "requests 0, 1, 2" in text and "19, …" in text


def test_history_of_one_log_is_the_default() -> None:
    data = toy().plain()
    log = open_log(LogSource("l", "session.v4.jsonl", len(data), lambda: io.BytesIO(data)))
    assert len(run_uploads([build_history(log)], [], Deployment()).uploads) == 2
