"""Assertion helpers for users' own tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.testing import assert_cache, assert_prefix_stable, assert_requests_identical
from tests.golden_logs import EDITS, GOLDEN, TOOLS_LOG, Rows, edited, header_of

CAPTURES = GOLDEN / "v0-tools" / "captures"


def test_identical_requests_pass_and_others_say_where(tmp_path: Path) -> None:
    assert_requests_identical(TOOLS_LOG, CAPTURES)
    assert_requests_identical(str(TOOLS_LOG), [CAPTURES], Deployment())
    log = edited(TOOLS_LOG, tmp_path / "session.jsonl", EDITS["message-changed"][0])
    with pytest.raises(AssertionError, match=r"capture 0000 differs at byte \d+, /messages/1/content, from seq 4"):
        assert_requests_identical(log, CAPTURES)


def test_captures_of_another_session_prove_nothing(tmp_path: Path) -> None:
    def renamed(rows: Rows) -> None:
        rows[0]["id"] = "another"

    with pytest.raises(AssertionError):
        assert_requests_identical(edited(TOOLS_LOG, tmp_path / "session.jsonl", renamed), CAPTURES)


def change_tools(rows: Rows) -> None:
    """The header of the second turn brings another tool list."""
    first = next(row for row in rows if row["type"] == "request/header")
    place = next(at for at, row in enumerate(rows) if row["type"] == "step/start" and row["data"]["turn"] == 2)
    seq = rows[place]["seq"] + 1
    for row in rows[place + 1 :]:
        key = "seq0" if "seq0" in row else "seq"
        row[key] += 1
        if "sourceEventSeqs" in row:
            row["sourceEventSeqs"] = [n + 1 if isinstance(n, int) and n >= seq else n for n in row["sourceEventSeqs"]]
    header = {**header_of(rows), "tools": header_of(rows)["tools"][:2]}
    rows.insert(place + 1, {**first, "seq": seq, "data": {"header": header, "reason": "change"}})


def test_stable_prefixes_pass_and_breaks_name_their_cause(tmp_path: Path) -> None:
    assert_prefix_stable(TOOLS_LOG)
    log = edited(TOOLS_LOG, tmp_path / "session.jsonl", change_tools)
    with pytest.raises(AssertionError, match="not stable in 1 of 5 requests") as caught:
        assert_prefix_stable(log)
    assert "request 4 (step): header-change in tools" in str(caught.value)
    assert_prefix_stable(log, allow={"header-change"})


@pytest.mark.parametrize(
    ("threshold", "holds"),
    [
        ("requests>=5", True),
        ("requests>5", False),
        ("requests<=5", True),
        ("requests<5", False),
        ("requests==5", True),
        ("requests!=5", False),
        ("busts==0", True),
        ("hit_rate>=0.95", False),
    ],
)
def test_a_cache_threshold_must_hold(threshold: str, holds: bool) -> None:
    if holds:
        assert_cache(TOOLS_LOG, threshold)
        return
    with pytest.raises(AssertionError, match=threshold):
        assert_cache(TOOLS_LOG, threshold)


def test_what_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(UsageError, match="no number is called speed"):
        assert_cache(TOOLS_LOG, "speed>1")
    for assertion in (assert_prefix_stable, assert_cache):
        with pytest.raises(AuditError, match="no such file"):
            assertion("nowhere/at/all")
