"""Recorded runs: every header change and cache bust is reported with its part, cause, event and request; nothing else.

Runs with a ``cache_grain`` were answered by a true prefix cache whose figures the prediction must equal.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.audit import audit_cache
from dsh_audit.checks.cache import CacheOptions
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.provider_rules import parse_rules
from dsh_audit.cli import common
from dsh_audit.deployment import Deployment
from dsh_audit.log.generations import SessionHistory
from dsh_audit.replay.session_replay import Replay
from tests.cli import run
from tests.test_checks_cache import RULES
from tests.test_golden_cases import captured_packages

GOLDEN = Path(__file__).parent.parent / "golden"
NOWHERE = Deployment({}, {})
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/sessions"))

C, S, T = ("config",), ("system",), ("tools",)
HEADER, SYSTEM, USER, RESULT = "request/header", "system/message", "user/message", "tool/result"

Change = tuple[int, tuple[str, ...], bool, str, tuple[str, ...]]
Bust = tuple[int, str, str | None, str]

SETTINGS: tuple[list[Change], list[Bust]] = (
    [(n, C, declared, "head", ()) for n, declared in ((2, False), (3, True), (4, True), (5, False))],
    [],
)
RESUMED: tuple[list[Change], list[Bust]] = (
    [(2, S + T, True, "head", ()), (3, C + S + T, True, "head", ())],
    [(2, "resume-drift", "tools", HEADER), (3, "model-switch", "config", HEADER)],
)
STAMPED: list[Change] = [(n, S, False, "head", ("timestamp",)) for n in (1, 2, 3)]


def tools_at(*requests: int, placement: str = "head", bust: bool = True) -> tuple[list[Change], list[Bust]]:
    changes: list[Change] = [(n, T, False, placement, ()) for n in requests]
    return changes, [(n, "header-change", "tools", HEADER) for n in requests if bust]


def system_at(*changes: Change, event: str) -> tuple[list[Change], list[Bust]]:
    return list(changes), [(c[0], "header-change", "system", event) for c in changes if c[3] == "head"]


SWITCHED: tuple[list[Change], list[Bust]] = (
    [(2, C, True, "head", ()), (6, C, True, "head", ())],
    [(2, "model-switch", "config", HEADER)],
)
ROUTES: tuple[list[Change], list[Bust]] = ([(n, C, True, "head", ()) for n in (4, 5)], [])
PROTOCOLS: tuple[list[Change], list[Bust]] = ([(n, C, True, "head", ()) for n in (2, 4, 6)], [])
UPGRADED: tuple[list[Change], list[Bust]] = ([], [(5, "protocol-switch", "config", HEADER)])

EXPECTED: dict[str, tuple[list[Change], list[Bust]]] = {
    **{f"{era}-settings": SETTINGS for era in ("v0", "v0late", "v3", "v4")},
    **{f"{era}-resume-drift": RESUMED for era in ("v0", "v0late", "v3", "v4")},
    **{f"{era}-prune": ([], [(8, "prune", "messages", RESULT)]) for era in ("v0", "v0late", "v3", "v4")},
    **{f"{era}-overflow": ([], [(4, "compaction", "messages", USER)]) for era in ("v0", "v0late", "v3", "v4")},
    **{
        f"{era}-pi-{kind}": ROUTES
        for era in ("v0", "v0late", "v3", "v4")
        for kind in ("anthropic", "completions", "responses")
    },
    **{f"{era}-pi-protocols": PROTOCOLS for era in ("v0", "v0late", "v3", "v4")},
    **{f"{name}{kind}": UPGRADED for name in ("mig-v0late-v4", "mig-v3-v4") for kind in ("", "-zstd")},
    "v0-drift-tool-removed": tools_at(2),
    "v0-drift-tool-added": tools_at(2, 4),
    "v0-drift-tool-reordered": tools_at(2),
    "v0-drift-schema-edited": tools_at(2, 4),
    "v0-drift-timestamp": system_at(*STAMPED, event=HEADER),
    "v0-drift-counter": system_at(*((n, S, False, "head", ("counter",)) for n in (1, 2, 3)), event=HEADER),
    "v0-drift-system-changed": system_at((2, S, False, "head", ()), event=HEADER),
    "v0-drift-model-switched": SWITCHED,
    "v3-drift-tool-removed": tools_at(2),
    "v3-drift-tool-added": tools_at(2, 4),
    "v3-drift-timestamp": system_at(*((n, S, False, "in-history", k) for n, _, _, _, k in STAMPED), event=SYSTEM),
    "v3-drift-system-changed": system_at((2, S, False, "in-history", ()), event=SYSTEM),
    "v3-drift-system-changed-pro": system_at((2, S, False, "head", ()), event=SYSTEM),
    "v3-drift-both-changed": ([(2, S + T, False, "head", ())], [(2, "header-change", "tools", HEADER)]),
    "v3-drift-both-changed-pro": ([(2, S + T, False, "head", ())], [(2, "header-change", "tools", HEADER)]),
    "v3-drift-model-switched": SWITCHED,
    "v4-drift-tool-removed": tools_at(2),
    "v4-drift-tool-removed-pro": tools_at(2),
    "v4-drift-tool-added-pro": tools_at(2, 4),
    "v4-drift-tool-reordered": tools_at(2, placement="in-history", bust=False),
    "v4-drift-schema-edited": tools_at(2, 4),
    "v4-drift-timestamp": system_at(*((n, S, False, "in-history", k) for n, _, _, _, k in STAMPED), event=SYSTEM),
    "v4-drift-timestamp-pro": system_at(*STAMPED, event=SYSTEM),
    "v4-drift-system-changed": system_at((2, S, False, "in-history", ()), event=SYSTEM),
    "v4-drift-system-changed-pro": system_at((2, S, False, "head", ()), event=SYSTEM),
    "v4-drift-both-changed-pro": ([(2, S + T, False, "head", ())], [(2, "header-change", "tools", HEADER)]),
    "v4-drift-model-switched": SWITCHED,
}
"""Every other case is stable: no header change, no bust."""

OFFERED_LATER = {"v4-drift-tool-added", "v4-drift-both-changed"}
"""Tools declared for later, which a provider does not render at the head: no bust, but see below."""


@cache
def histories(name: str) -> list[SessionHistory]:
    logs, _ = common.open_many([str(GOLDEN / name / "sessions")], None, None)
    return [common.read_history(log, files) for log, files in logs]


def reports(name: str, **options: Any) -> list[CacheReport]:
    book = CacheOptions(parse_rules(RULES, **options))
    return [audit_cache(history, NOWHERE, book) for history in histories(name)]


@pytest.mark.parametrize("name", [name for name in CASES if name not in OFFERED_LATER and "compaction" not in name])
def test_changes_and_busts(name: str) -> None:
    changes, busts = EXPECTED.get(name, ([], []))
    found = reports(name)
    assert [
        (c.request, c.parts, c.declared, c.placement, c.volatile) for report in found for c in report.changes
    ] == changes
    assert [
        (row.index, row.bust.why.cause, row.bust.why.part, _event(report, row.index))
        for report in found
        for row in report.rows
        if row.bust
    ] == busts
    assert not [
        f for report in found for f in report.findings if f.code in ("cache/not-append-only", "cache/wire-rewrite")
    ]


def _event(report: CacheReport, index: int) -> str:
    row = report.rows[index]
    assert row.bust is not None and row.log is not None
    return next(event.type for event in row.log.events() if event.seq == row.bust.why.seq)


@pytest.mark.parametrize("name", [name for name in CASES if "compaction" in name])
def test_compactions_are_the_only_busts(name: str) -> None:
    (report,) = reports(name)
    rows = [row for row in report.rows if row.bust]
    assert rows and not report.changes
    for row in rows:
        assert row.bust and (row.bust.why.cause, row.bust.why.part) == ("compaction", "messages")
        assert _event(report, row.index) == USER
        assert row.index >= 1 and any(r.kind == "compaction" for r in report.rows[: row.index])


def grain_of(name: str) -> int | None:
    value: int | None = json.loads((GOLDEN / name / "case.json").read_bytes()).get("cache_grain")
    return value


@pytest.mark.parametrize("name", [name for name in CASES if (GOLDEN / name / "case.json").is_file() and grain_of(name)])
def test_prediction_is_what_a_true_prefix_cache_reports(name: str) -> None:
    """A token of the recorded cache is a byte of the rendered prompt, tools declared for later included."""
    grain = grain_of(name)
    bodies = [rebuilt.encoded.body for history in histories(name) for rebuilt in Replay(history, NOWHERE)]
    rows = [row for report in reports(name, chosen="prefix", grain=grain) for row in report.rows]
    compared = 0
    for row, body in zip(rows, bodies, strict=True):
        if body is None or row.usage is None or any(b'"defer_loading"' in part.data for part in body.parts()):
            continue
        compared += 1
        assert row.compared.prompt_bytes == row.usage.prompt
        assert (row.predicted.reused if row.predicted else 0) == row.usage.cached
    assert compared >= 2


@pytest.mark.parametrize("name", ["v4-drift-tool-reordered", "v4-prune", "v4-resume-drift", "v3-drift-none"])
def test_wire_lengths_are_those_of_the_captured_bodies(name: str, tmp_path: Path) -> None:
    case = GOLDEN / name
    deployment = tmp_path / "deployment.json"
    deployment.write_text(json.dumps({"extensions": {"plugin_packages": captured_packages(case)}}), "utf-8")
    options = (case / "sessions", "--deployment", deployment, "--format", "json")
    rebuilt = json.loads(run("cache", *options).stdout)["requests"]
    done = run("cache", *options, "--capture", case / "captures")
    pairs = zip(rebuilt, json.loads(done.stdout)["requests"], strict=True)
    told = [(one["wire"], other["wire"]) for one, other in pairs if other["wire"]["source"] == "captured"]
    assert told
    for one, other in told:
        assert {**one, "source": "captured"} == other
