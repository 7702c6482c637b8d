from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.audit import audit_cache, audit_drift, audit_requests
from dsh_audit.capture import CaptureArchive, bundle, read_capture
from dsh_audit.checks.uploads_run import run_uploads
from dsh_audit.deployment import Deployment
from dsh_audit.events import Event
from dsh_audit.log.generations import SessionHistory, build_history
from dsh_audit.log.locate import read_sessions
from dsh_audit.log.session_log import EventReader, open_log
from dsh_audit.replay import judge
from dsh_audit.replay.inspection import inspect_log
from dsh_audit.replay.session_replay import Replay
from dsh_audit.replay.verification import BEHIND_DAMAGE, VerifyReport, verify
from dsh_audit.request.neutral import COMPACTION_INSTRUCTION
from dsh_audit.session import read_cache_options
from dsh_audit.wire import constants
from tests.captures import write_bundle
from tests.cli import run
from tests.logs import SessionV0, log_of, two_turns

GOLDEN = Path(__file__).parent.parent / "golden"
INSTRUCTION = "Sum up the errands so far."


def bodies_of(session: SessionV0, deployment: Deployment | None = None) -> list[bytes]:
    replay = Replay(build_history(session.log()), deployment or Deployment())
    return [item.encoded.body.to_bytes() for item in replay if item.encoded.body is not None]


def check(session: SessionV0, folder: Path, deployment: Deployment | None = None) -> VerifyReport:
    return verify([build_history(session.log())], [read_capture(folder)], deployment or Deployment())


def verdicts(report: VerifyReport) -> list[tuple[str | None, int | None, str]]:
    return [(p.captured, None if p.rebuilt is None else p.rebuilt.index, p.verdict) for p in report.pairs]


def compacted(session: SessionV0 | None = None) -> SessionV0:
    session = session or two_turns()
    session.start_turn()
    shadowed = [row["seq"] for row in session.rows[1:] if row.get("surfaceOp") == "append"]
    base: dict[str, Any] = {"compactionId": "k1", "turn": 3}
    session.add("compaction/start", base)
    session.add(
        "compaction/summary",
        {
            **base, "summary": [], "rawOutput": [], "llmStreamCall": True, "shadowedSeqs": shadowed,
            "shadowedRange": {"start": shadowed[0], "end": shadowed[-1]}, "shadowedTokenCount": 9,
            "provider": "deepseek-official", "model": "toy-1", "maxTokens": 50,
            "usage": {"inputTokens": 1, "outputTokens": 1},
        },
    )  # fmt: skip
    summary = session.message("user", [{"type": "text", "text": "Summary."}], {"kind": "plugin", "plugin": "compact"})
    op = {"op": "replace", "start": shadowed[0], "end": shadowed[-1]}
    session.add("user/message", summary, surfaceOp=op, sourceEventSeqs=shadowed)
    session.add("compaction/end", base)
    session.start_step()
    session.user("Go on")
    session.answer("Going.")
    session.end_step()
    session.end_turn()
    return session


@pytest.fixture
def instruction(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    digest = hashlib.sha256(INSTRUCTION.encode()).hexdigest()
    known = constants.Constant(COMPACTION_INSTRUCTION, len(INSTRUCTION), digest)
    monkeypatch.setitem(constants.CONSTANTS, COMPACTION_INSTRUCTION, known)
    return Deployment({}, {COMPACTION_INSTRUCTION: INSTRUCTION})


def test_a_compaction_is_learned_from_the_capture_and_checked_by_digest(
    instruction: Deployment, tmp_path: Path
) -> None:
    session = compacted()
    bodies = bodies_of(session, instruction)
    assert INSTRUCTION.encode() in bodies[3]
    folder = write_bundle(tmp_path / "c", bodies)
    mark_compaction(folder, "0003")
    assert [verdict for _, _, verdict in verdicts(check(session, folder))] == ["identical"] * 5
    (folder / "0003.body").write_bytes(bodies[3].replace(b"errands", b"errors!"))
    assert verdicts(check(session, folder))[3] == ("0003", 3, "not-checked")


def test_a_digest_only_capture_is_compared_by_digest(instruction: Deployment, tmp_path: Path) -> None:
    session = compacted()
    bodies = bodies_of(session, instruction)
    folder = write_bundle(tmp_path / "c", bodies)
    mark_compaction(folder, "0003")
    withhold(folder, "0003", len(bodies[3]), hashlib.sha256(bodies[3]).hexdigest())
    assert verdicts(check(session, folder, instruction))[3] == ("0003", 3, "identical")
    assert verdicts(check(session, folder))[3] == ("0003", 3, "not-checked")
    withhold(folder, "0003", len(bodies[3]), "0" * 64)
    assert verdicts(check(session, folder, instruction))[3] == ("0003", 3, "different")
    withhold(folder, "0003", len(bodies[3]) + 5, "0" * 64)
    assert verdicts(check(session, folder, instruction))[3] == ("0003", 3, "not-checked")


def mark_compaction(folder: Path, ident: str) -> None:
    edit_meta(folder, ident, lambda meta: meta["headers"].append(["x-deepseek-harness-compact", "1"]))


def withhold(folder: Path, ident: str, size: int, sha256: str) -> None:
    (folder / f"{ident}.body").unlink(missing_ok=True)
    body = {"size": size, "sha256": sha256, "withheld": "long prose"}
    edit_meta(folder, ident, lambda meta: meta.update(body=body))


def edit_meta(folder: Path, ident: str, edit: Any) -> None:
    path = folder / f"{ident}.meta.json"
    meta = json.loads(path.read_text("utf-8"))
    edit(meta)
    path.write_text(json.dumps(meta), "utf-8")


def test_the_text_of_an_unmarked_compaction_is_learned_as_well(instruction: Deployment, tmp_path: Path) -> None:
    session = compacted()
    folder = write_bundle(tmp_path / "c", bodies_of(session, instruction))
    for number in range(5):
        edit_meta(folder, f"{number:04}", lambda meta: meta.update(headers=[]))
    assert [verdict for _, _, verdict in verdicts(check(session, folder))] == ["identical"] * 5


@pytest.mark.parametrize(
    ("raw", "limit"), [({}, 50), ({"compaction": {"max_tokens": 77}}, 77)], ids=["later summary", "deployment"]
)
def test_the_output_limit_of_a_failed_compaction(instruction: Deployment, raw: dict[str, Any], limit: int) -> None:
    session = two_turns()
    session.add("compaction/start", {"compactionId": "k0", "turn": None})
    session.add("compaction/end", {"compactionId": "k0", "turn": None, "error": "cancelled"})
    first = bodies_of(compacted(session), replace(instruction, raw=raw))[3]
    assert f'"max_tokens":{limit}'.encode() in first
    alone = two_turns()
    alone.add("compaction/start", {"compactionId": "k0", "turn": None})
    assert b'"max_tokens":8192' in bodies_of(alone, instruction)[3]


@pytest.mark.parametrize(("failed", "verdict"), [(1, "identical-except-unlogged"), (2, "identical")])
def test_an_output_limit_that_only_captures_show(
    instruction: Deployment, failed: int, verdict: str, tmp_path: Path
) -> None:
    session = two_turns()
    for number in range(failed):
        session.add("compaction/start", {"compactionId": f"k{number}", "turn": None})
        session.add("compaction/end", {"compactionId": f"k{number}", "turn": None, "error": "cancelled"})
        session.simple_turn("And now?", "Go on.")
    told = replace(instruction, raw={"compaction": {"max_tokens": 77}})
    folder = write_bundle(tmp_path / "c", bodies_of(session, told))
    for ident in ("0003", "0005")[:failed]:
        mark_compaction(folder, ident)
    report = check(session, folder, instruction)
    assert [pair.verdict for pair in report.pairs[3 : 3 + 2 * failed : 2]] == [verdict] * failed
    assert {pair.verdict for pair in report.pairs[::2]} <= {"identical"}
    limits = [used for used in report.used if used["name"] == "compaction.max_tokens"]
    assert limits == [{"name": "compaction.max_tokens", "value": 77, "source": "capture"}]
    alone = [pair for pair in report.pairs if any("fits one" in note for note in pair.notes)]
    assert [field.name for pair in alone for field in pair.unlogged] == ["compaction.max_tokens"] * (failed == 1)


def test_a_capture_behind_damage_is_not_checked(tmp_path: Path) -> None:
    session = two_turns()
    folder = write_bundle(tmp_path / "c", bodies_of(session))
    lines = session.plain().split(b"\n")
    cut = next(at for at, line in enumerate(lines) if b"Thanks" in line)
    log = log_of(b"\n".join([*lines[:cut], b'{"type":"user/mess', *lines[cut + 1 :]]))
    report = verify([build_history(log)], [read_capture(folder)], Deployment())
    assert verdicts(report)[:3] == [("0000", 0, "identical"), ("0001", 1, "identical"), ("0002", None, "not-checked")]
    assert report.pairs[2].notes == (BEHIND_DAMAGE,)


def test_captures_from_before_a_migration_are_compared_as_chat_bodies(tmp_path: Path) -> None:
    case = Path(__file__).parent.parent / "golden" / "mig-v0late-v4"
    shutil.copytree(case / "sessions", tmp_path / "sessions")
    for older in [path for path in tmp_path.rglob("session*") if path.is_file() and "v4" not in path.name]:
        older.unlink()
    done = run("verify", tmp_path / "sessions", "--capture", case / "captures", "--format", "json")
    told = {pair["verdict"] for pair in json.loads(done.stdout)["pairs"] if pair["captured"] is not None}
    assert told <= {"identical", "identical-except-unlogged", "not-checked", "other"}
    assert "identical-except-unlogged" in told


def test_missing_and_foreign_captures(tmp_path: Path) -> None:
    session = two_turns()
    bodies = bodies_of(session)
    folder = write_bundle(tmp_path / "a", [bodies[0], bodies[2]])
    report = check(session, folder)
    assert verdicts(report) == [("0000", 0, "identical"), ("0001", 2, "identical"), (None, 1, "not-captured")]
    assert [finding.code for finding in report.findings] == ["wire/not-captured"]
    foreign = write_bundle(tmp_path / "b", bodies, session="someone-else")
    assert {verdict for _, _, verdict in verdicts(check(session, foreign))} == {"other", "not-captured"}


def test_a_request_that_no_dispatch_explains(tmp_path: Path) -> None:
    session = two_turns()
    bodies = bodies_of(session)
    report = check(session, write_bundle(tmp_path / "c", [*bodies, bodies[2]]))
    assert verdicts(report)[3] == ("0003", None, "unexplained")
    assert [finding.code for finding in report.findings] == ["wire/unexplained"]


def test_of_two_logs_with_one_id_the_longer_is_used(tmp_path: Path) -> None:
    session, shorter = two_turns(), two_turns()
    del shorter.rows[10:]
    capture = read_capture(write_bundle(tmp_path / "c", bodies_of(session)))
    for order in ([session, shorter], [shorter, session]):
        report = verify([build_history(one.log()) for one in order], [capture], Deployment())
        assert report.summary["identical"] == 3
        assert "log/duplicate-session" in [finding.code for finding in report.findings]


def test_an_identical_body_is_read_once_and_never_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = two_turns()
    bodies = bodies_of(session)
    folder = write_bundle(tmp_path / "c", [*bodies[:2], bodies[2][:-1] + b',"dsh_plugin_packages":[]}'])
    read: list[str] = []

    def counted(path: Path, limit: int) -> bytes | None:
        read.append(path.name)
        return path.read_bytes()

    monkeypatch.setattr(bundle, "read_regular", counted)
    monkeypatch.setattr(judge, "diff_body", None)
    report = check(session, folder)
    assert [verdict for _, _, verdict in verdicts(report)] == ["identical", "identical", "identical-except-unlogged"]
    assert sorted(name for name in read if name.endswith(".body")) == ["0000.body", "0001.body", "0002.body"]
    assert report.pairs[2].unlogged[0].offset == len(bodies[2])


def test_what_follows_an_equal_body_is_checked_for_text(tmp_path: Path) -> None:
    bodies = bodies_of(session := two_turns())
    folder = write_bundle(tmp_path / "c", [bodies[0][:-1] + b',"more":"\xff"}', b"\xff", bodies[1]])
    report = check(session, folder)
    found = sorted((f.where.captured, f.where.at) for f in report.findings if f.code == "capture/not-utf8")
    assert found == [("0000", len(bodies[0]) + 8), ("0001", 0)]


WORK: dict[str, Callable[[SessionHistory, CaptureArchive], object]] = {
    "requests": lambda history, _: audit_requests(history, Deployment(), None),
    "drift": lambda history, _: audit_drift(history, Deployment()),
    "cache": lambda history, _: audit_cache(history, Deployment(), read_cache_options("USD", None)),
    "inspect": lambda history, _: inspect_log(history.current),
    "verify": lambda history, archive: verify([history], [archive], Deployment()),
    "uploads": lambda history, _: run_uploads([history], [], Deployment()),
}


@pytest.mark.parametrize("case", ["v0-tools", "v4-tools", "v4-retries", "v4-resume", "v4-fork", "v4-compaction"])
@pytest.mark.parametrize("work", WORK)
def test_rows_are_decoded_once_a_command(work: str, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[str] = []
    runs = EventReader.runs

    def counted(reader: EventReader, split_at: int = 0) -> Iterator[Event]:
        passes.append(reader.log.source.label)
        return runs(reader, split_at)

    monkeypatch.setattr(EventReader, "runs", counted)
    archive = read_capture(GOLDEN / case / "captures")
    for files in read_sessions(str(GOLDEN / case / "sessions")):
        history = build_history(open_log(files.choose(None)))
        WORK[work](history, archive)
        assert len(passes) == 1
        passes.clear()
