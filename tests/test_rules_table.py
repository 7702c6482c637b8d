"""Every finding code with its severity, a run that gives it, and the place it names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.rules import RULES
from tests.capture_files import BODY, har_entry
from tests.cli import run
from tests.lint_sessions import (
    KEY,
    asked,
    at,
    call,
    copied,
    in_home,
    lint,
    locked,
    marked,
    no_schema,
    one_turn,
    picture,
    refused,
    spliced,
    thought,
    tool_added,
)
from tests.logs import frame
from tests.rule_cases import (
    ROWS,
    ZSTD,
    Make,
    added_members,
    altered,
    archive,
    as_migrated,
    cache,
    compacted_apart,
    damaged_store,
    edit_body,
    golden,
    har,
    huge_row,
    link,
    log,
    meta,
    missed,
    mixed,
    mode_switched,
    not_as_captured,
    not_continued,
    off_surface,
    one_empty,
    paired,
    record,
    recorded,
    renamed,
    repeat_body,
    replaced,
    rewritten,
    session,
    traversal,
    two_copies,
    two_runs,
    unpinned,
    unreadable,
    verified,
    with_image,
    without,
    without_body,
    wrong_type,
)

IN_HOME = "session.jsonl session=toy request=1"

TABLE: list[tuple[str, str, Make, str]] = [
    ("log/as-migrated", "warning", as_migrated, "session.v4.jsonl session=sess-1"),
    ("log/bad-frame", "error", log(frame(ROWS[0]), frame(ROWS[1]), b"nope", frame(ROWS[2]), name=ZSTD),
     "session.jsonl.zstd session=toy-1 frame=2 line=3"),
    ("log/blank-line", "error", log(*ROWS[:4], b"\n", *ROWS[4:]), "session.jsonl session=toy-1 line=5"),
    ("log/damaged", "error", log(*ROWS[:4], *ROWS[5:]), "session.jsonl session=toy-1 at=397 line=5 seq=3"),
    ("log/dropped-tail", "error", log(*ROWS, b"[]\n"), "session.jsonl session=toy-1 at=4259 line=31 seq=29"),
    ("log/first-frame", "error", log(frame(b"".join(ROWS)), name=ZSTD),
     "session.jsonl.zstd session=toy-1 frame=0 line=1"),
    ("log/ignored-event", "info", session(lambda toy: toy.add("acme/note", {}, ignorable=True)),
     "session.jsonl session=toy-1 line=31 seq=29"),
    ("log/mixed-encodings", "warning", mixed, "toy"),
    ("log/name-mismatch", "error", log(*ROWS, name="session.v3.jsonl"), "session.v3.jsonl session=toy-1"),
    ("log/no-newline", "warning", log(b"".join(ROWS)[:-1]), "session.jsonl session=toy-1 at=4170 line=30"),
    ("log/no-session-header", "warning", log(without("seq", "time")), "session.jsonl"),
    ("log/open-row", "error", log(frame(ROWS[0]), frame(b"".join(ROWS[1:])[:-9]), name=ZSTD),
     "session.jsonl.zstd session=toy-1 frame=1 line=30"),
    ("log/predecessor-mismatch", "warning", not_continued, "session.v4.jsonl session=sess-1"),
    ("log/projected", "info", log(without("seq", "time")), "session.jsonl"),
    ("log/projection", "error", session(off_surface), "session.jsonl session=toy-1 line=31 seq=29"),
    ("log/refused", "error", session(lambda toy: toy.add("user/message", toy.message("user", [], {"kind": "user"}))),
     "session.jsonl session=toy-1 at=4259 line=31 seq=29"),
    ("log/reload-refused", "error", session(lambda toy: toy.rows[3]["data"].update(id="")),
     "session.jsonl session=toy-1 line=4 seq=2"),
    ("log/row-too-large", "error", huge_row, "session.jsonl.zstd session=toy-1 frame=1 line=2"),
    ("log/schema", "error", wrong_type, "session.jsonl session=toy-1 line=2 pointer=/time"),
    ("log/seed-length", "warning", session(lambda toy: toy.rows[0].update(seedLength=9999)),
     "session.jsonl session=toy-1 line=1"),
    ("log/torn-tail", "error", recorded("v0-left-plain-torn", "requests"),
     "session.jsonl session=sess-1 at=6028 line=36"),
    ("log/unknown-event", "error", recorded("v0-plugin-events", "requests"),
     "session.jsonl session=sess-1 line=18 seq=16"),
    ("log/unreadable", "error", one_empty, "b"),
    ("log/unsafe-member", "error", traversal, "session.jsonl"),
    ("log/zero-tail", "error", log(b"".join(map(frame, ROWS)), bytes(512), name=ZSTD),
     "session.jsonl.zstd session=toy-1 frame=30 line=31"),
    ("lint/arguments", "info", lint(lambda toy: asked(toy, call("c9", arguments="{no"))),
     "session.jsonl session=toy seq=7 pointer=/message/content/1/arguments request=1"),
    ("lint/copy", "warning", in_home(lambda: at(f"{KEY}/toy", one_turn), copied), "session.jsonl 2 session=toy"),
    ("lint/empty-call", "error", lint(lambda toy: asked(toy, call("c9", name=""), answered=False)),
     "session.jsonl session=toy seq=7 pointer=/message/content/1"),
    ("lint/foreign-marker", "error", lint(marked, version=4),
     "session.v4.jsonl session=toy line=11 seq=9 pointer=/sessionId"),
    ("lint/image", "error", lint(lambda toy: refused(toy, "this model takes no image", picture)),
     "session.jsonl session=toy seq=2 pointer=/content request=0"),
    ("lint/inbox-splice", "warning", lint(spliced), "session.jsonl session=toy line=12 seq=10 pointer=/removedCount"),
    ("lint/interposed-message", "error", lint(lambda toy: asked(toy, call("c9"), between="Wait", answered=False)),
     "session.jsonl session=toy seq=8"),
    ("lint/last-request", "error", lint(lambda toy: (toy.ask("one"), refused(toy, "no such file"))),
     "session.jsonl session=toy seq=13 request=1"),
    ("lint/migration", "warning", lint(lambda toy: (toy.ask("one"), toy.add("x/note", {}, ignorable=True))),
     "session.jsonl session=toy line=12 seq=10"),
    ("lint/misplaced", "warning", in_home(lambda: at("--srv--/toy", one_turn)), "session.jsonl session=toy"),
    ("lint/no-log", "warning", in_home(lambda: at(f"{KEY}/toy", one_turn), locked), "gone"),
    ("lint/no-parent", "warning", in_home(lambda: at(f"{KEY}/toy", one_turn, parentSession="lead")),
     "session.jsonl session=toy"),
    ("lint/open-call", "error", lint(lambda toy: asked(toy, call("c9"), results=(), answered=False)),
     "session.jsonl session=toy seq=7 pointer=/message/content/1"),
    ("lint/open-compaction", "warning",
     lint(lambda toy: (toy.ask("one"), toy.add("compaction/start", {"compactionId": "c", "turn": None}))),
     "session.jsonl session=toy line=12 seq=10"),
    ("lint/reasoning-missing", "error",
     lint(lambda toy: (asked(toy, call("c9"), answered=False), refused(toy, "pass reasoning_content back"))),
     "session.jsonl session=toy seq=7 pointer=/message/content request=1"),
    ("lint/reasoning-only", "info", lint(thought),
     "session.jsonl session=toy seq=7 pointer=/message/content request=1"),
    ("lint/repeated-call", "error",
     lint(lambda toy: (asked(toy, call("c9")), asked(toy, call("c9"), answered=False)), version=4),
     "session.v4.jsonl session=toy seq=16 pointer=/message/content/1"),
    ("lint/stray-result", "error", lint(lambda toy: asked(toy, call("c9"), results=("c9", "c8"), answered=False)),
     "session.jsonl session=toy seq=9 pointer=/message"),
    ("lint/too-new", "error", lint(lambda toy: toy.ask("one"), "--for", "0.1.5-rc.1", version=4),
     "session.v4.jsonl session=toy line=1"),
    ("lint/tool-change", "error", lint(tool_added, version=4),
     "session.v4.jsonl session=toy seq=13 pointer=/message/content request=1"),
    ("lint/tool-schema", "error", lint(lambda toy: refused(toy, "tools.0.input_schema: field required", no_schema)),
     "session.jsonl session=toy seq=3 pointer=/header/tools/0 request=0"),
    ("lint/unfinished-turn", "warning", lint(lambda toy: toy.begin("one")), "session.jsonl session=toy line=2 seq=0"),
    ("attachments/altered", "error", damaged_store("altered"), IN_HOME),
    ("attachments/damaged-version", "error", damaged_store("version"), IN_HOME),
    ("attachments/missing", "error", damaged_store("missing"), IN_HOME),
    ("attachments/mistyped", "error", damaged_store("mistyped"), IN_HOME),
    ("attachments/swapped", "error", damaged_store("swapped"), IN_HOME),
    ("capture/added-members", "info", archive("a.jsonl", added_members()), "a.jsonl"),
    ("capture/bad-meta", "error", meta(b"[1]"), "c captured=0001"),
    ("capture/bad-record", "error", archive("a.jsonl", record() + b"\n{\n" + record()), "a.jsonl at=154 line=2"),
    ("capture/encoded-body", "info", paired("0003", gzip.compress(BODY, mtime=0), ("content-encoding", "gzip")),
     "c captured=0003"),
    ("capture/lossy-text", "warning", har(har_entry("{\ud800}")), "a.har captured=0000"),
    ("capture/no-body", "error", paired("0003", None), "c captured=0003"),
    ("capture/no-meta", "error", verified(lambda folder, _: (folder / "0003.body").write_bytes(BODY)),
     "c captured=0003"),
    ("capture/not-utf8", "error", paired("0003", BODY[:-1] + b"\xff}"), "c at=74 captured=0003"),
    ("capture/parsed-bodies", "info", archive("a.jsonl", record(body=json.loads(BODY))), "a.jsonl"),
    ("capture/skipped-record", "info", archive("a.jsonl", b'{"note":"started"}\n' + record()), "a.jsonl line=1"),
    ("capture/too-large", "error", meta(b" " * (1 << 20) + b"{}"), "c captured=0001"),
    ("capture/torn-record", "warning", archive("a.jsonl", record() + b'\n{"url":"/v1/cha'), "a.jsonl at=153 line=2"),
    ("capture/truncated-body", "warning", paired("0003", BODY[:30], ("content-length", "75")), "c captured=0003"),
    ("capture/undecodable-body", "error", paired("0003", b"\x01\x02", ("content-encoding", "br")), "c captured=0003"),
    ("capture/unknown-length", "warning", har(har_entry()), "a.har captured=0000"),
    ("capture/unreadable-file", "error", verified(unreadable), "c captured=0001"),
    ("capture/unsafe-file", "error", verified(link), "c captured=0001"),
    ("capture/withheld-body", "info", recorded("v0-compaction", "verify"), "captures captured=0003"),
    ("log/duplicate-session", "warning", two_copies, "session.jsonl session=toy-1"),
    ("wire/different", "error", verified(edit_body),
     "session.jsonl session=toy-1 at=103 seq=2 pointer=/messages/1/content request=1 captured=0001"),
    ("wire/not-captured", "warning", recorded("v0-pi-protocols", "verify"), "session.jsonl session=sess-1 request=0"),
    ("wire/not-checked", "warning", recorded("v0-compaction", "verify"),
     "session.jsonl session=sess-1 request=3 captured=0003"),
    ("wire/nothing-compared", "error", recorded("v0-pi-protocols", "verify"), "session.jsonl session=sess-1"),
    ("wire/unexplained", "error", verified(repeat_body), "session.jsonl session=toy-1 captured=0003"),
    ("drift/declared", "info", recorded("v0-drift-model-switched", "drift"),
     "session.jsonl session=sess-1 seq=46 request=2"),
    ("drift/in-history", "info", recorded("v3-drift-system-changed", "drift"),
     "session.v3.jsonl session=sess-1 seq=24 request=2"),
    ("drift/unexplained", "warning", recorded("v0-drift-schema-edited", "drift"),
     "session.jsonl session=sess-1 seq=46 request=2"),
    ("drift/volatile", "warning", recorded("v0-drift-counter", "drift"),
     "session.jsonl session=sess-1 seq=27 request=1"),
    ("cache/compaction", "info", recorded("v0-compaction", "cache"),
     "session.jsonl session=sess-1 seq=203 pointer=/messages/1/content request=5"),
    ("cache/config-changed", "warning", cache(missed(60, maxTokens=9)),
     "session.jsonl session=toy seq=13 pointer=/max_tokens request=1"),
    ("cache/declared-change", "info", cache(mode_switched),
     "session.jsonl session=toy seq=14 pointer=/messages/0/content request=1"),
    ("cache/idle-expiry", "info", cache(missed(7200)), "session.jsonl session=toy seq=13 request=1"),
    ("cache/images-offloaded", "info", with_image(is_offloaded=True),
     "session.v4.jsonl session=toy seq=7 pointer=/messages/0/content request=1"),
    ("cache/look-back", "warning", cache(missed(60, blocks=21), "--provider-rules", "anthropic", version=4),
     "session.v4.jsonl session=toy seq=33 request=1"),
    ("cache/not-append-only", "error", with_image(is_offloaded=False),
     "session.v4.jsonl session=toy pointer=/messages/0/content request=1"),
    ("cache/provider-miss", "warning", cache(missed(60)), "session.jsonl session=toy seq=13 request=1"),
    ("cache/pruned", "info", recorded("v0-prune", "cache"),
     "session.jsonl session=sess-1 seq=311 pointer=/messages/3/content request=8"),
    ("cache/replaced", "warning", cache(replaced),
     "session.jsonl session=toy seq=10 pointer=/messages/1/content request=1"),
    ("cache/resume-drift", "warning", recorded("v0-resume-drift", "cache"),
     "session.jsonl session=sess-1 seq=34 pointer=/tools/0/function/name request=2"),
    ("cache/retry", "info", cache(missed(60, fails=True)), "session.jsonl session=toy seq=16 request=2"),
    ("cache/side-request", "warning", compacted_apart, "session.v4.jsonl session=toy seq=15 request=2"),
    ("cache/switched", "info", recorded("v0-drift-model-switched", "cache"),
     "session.jsonl session=sess-1 seq=46 pointer=/model request=2"),
    ("cache/system-changed", "warning", recorded("v0-drift-system-changed", "cache"),
     "session.jsonl session=sess-1 seq=46 pointer=/messages/0/content request=2"),
    ("cache/threshold", "error", cache(missed(60), "--fail-on", "busts>0"), "session.jsonl session=toy"),
    ("cache/too-soon", "info", cache(missed(1)), "session.jsonl session=toy seq=13 request=1"),
    ("cache/tools-changed", "warning", recorded("v0-drift-schema-edited", "cache"),
     "session.jsonl session=sess-1 seq=46 pointer=/tools/1/function/parameters/properties/deep/description request=2"),
    ("cache/wire-rewrite", "error", rewritten, "session.jsonl session=toy-1 request=2"),
    ("uploads/altered", "error", altered, "session.v4.jsonl session=sess-1 at=558 request=0 captured=0000"),
    ("uploads/other-id", "warning", renamed, "session=imported request=0"),
    ("uploads/uncaptured", "warning", recorded("v4-compaction", "uploads-captured"), "session=sess-1"),
    ("golden/changed", "error", golden("tool-added"), "session.jsonl pointer=/reasoning_effort request=0"),
    ("golden/missing", "error", golden(None), "tools.golden.json"),
    ("golden/new", "error", unpinned, "sess-2.golden.json"),
    ("golden/not-as-captured", "error", not_as_captured, "at session.jsonl, capture 0000"),
    ("golden/unused", "warning", unpinned, "tools.golden.json"),
    ("diff/different", "error", two_runs("prompt-edited"), "session.jsonl seq=6 pointer=/messages/0/content"),
    ("diff/not-compared", "warning", without_body, "two"),
    ("diff/one-side", "error", two_runs("turn-gone"), "session.jsonl"),
]  # fmt: skip
"""Code, severity, files and command, place."""


def test_the_table_names_every_rule_with_its_severity() -> None:
    assert [(code, severity) for code, severity, _, _ in TABLE] == [(r.code, str(r.severity)) for r in RULES.values()]


@pytest.mark.parametrize(("code", "severity", "make", "place"), TABLE, ids=[row[0] for row in TABLE])
def test_a_run_gives_it(
    code: str, severity: str, make: Make, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = make(monkeypatch)
    if arguments[:2] == ["golden", "record"]:  # prints text only
        done = run(*arguments)
        assert f"{severity}[{code}]" in done.stdout.decode()
        assert f"    {place}\n" in done.stdout.decode()
        assert done.returncode == 1
        return
    done = run(*arguments, "--format", "json")
    found = findings_of(json.loads(done.stdout))
    assert [(f["severity"], place_of(f["where"])) for f in found if f["code"] == code][:1] == [(severity, place)]
    assert done.returncode == any(f["severity"] == "error" for f in found), done.stderr


def findings_of(value: Any) -> list[dict[str, Any]]:
    """Every finding of a report, wherever it stands."""
    if isinstance(value, list):
        return [finding for item in value for finding in findings_of(item)]
    if not isinstance(value, dict):
        return []
    return [value] if {"code", "where"} <= value.keys() else findings_of(list(value.values()))


def place_of(where: dict[str, Any]) -> str:
    """The place in one line; offsets behind a compressed frame depend on the compressor and are left out."""
    source = [where["source"].rsplit("/", 1)[-1]] if "source" in where else []
    skipped = {"source", "at"} if "frame" in where else {"source"}
    return " ".join([*source, *(f"{key}={value}" for key, value in where.items() if key not in skipped)])
