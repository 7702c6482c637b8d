from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from dsh_audit.audit import audit_drift, audit_drift_between
from dsh_audit.checks.drift_model import DriftReport
from dsh_audit.checks.prompt_diff import MAX_LINES, MAX_WIDTH, diff_text
from dsh_audit.checks.tool_diff import ToolsChange, tools_change
from dsh_audit.checks.volatile import volatile_kinds
from dsh_audit.cli.common import read_schema
from dsh_audit.deployment import Deployment
from dsh_audit.difference.requests import describe_body, diff_requests
from dsh_audit.report.drift import render_drift
from dsh_audit.text.to_json import to_json
from tests.toy_session import ToySession, tool

NOWHERE = Deployment({}, {})


def drift_of(session: ToySession) -> DriftReport:
    report = audit_drift(session.history(), NOWHERE)
    assert not [finding for finding in report.findings if not finding.code.startswith("drift/")]
    return report


def brief(report: DriftReport) -> list[tuple[Any, ...]]:
    return [
        (c.request, c.parts, c.reason, c.declared_by, c.unexplained, c.placement, c.volatile) for c in report.changes
    ]


def steady(s: ToySession) -> None:
    s.ask("two")


def tool_removed(s: ToySession) -> None:
    s.tools = s.tools[:1]
    s.ask("two")


def tool_reordered(s: ToySession) -> None:
    s.tools = s.tools[::-1]
    s.ask("two")


def schema_edited(s: ToySession) -> None:
    s.tools = [s.tools[0], tool("walk", to={"type": "string"})]
    s.ask("two")


def prompt_edited(s: ToySession) -> None:
    s.prompt = "Run no errands."
    s.ask("two")


def clock_in_prompt(s: ToySession) -> None:
    for second in range(3):
        s.prompt = f"Run errands. It is 2026-11-30T15:00:0{second}Z."
        s.ask(f"turn {second}")


def prompt_grows(s: ToySession) -> None:
    for number in range(3):
        s.prompt += f"\nErrand {number} was run."
        s.ask(f"turn {number}")


def model_settings(s: ToySession) -> None:
    s.model = "deepseek-v4-pro"
    s.ask("two")


def model_selected(s: ToySession) -> None:
    s.add("model/selection", {"provider": s.provider, "model": "deepseek-v4-pro"})
    s.model, s.tools = "deepseek-v4-pro", s.tools[:1]
    s.ask("two")


def hotter(s: ToySession) -> None:
    s.settings = {"temperature": 0.5}
    s.ask("two")


def mode_switched(s: ToySession) -> None:
    s.add("plan/mode", {"active": True})
    s.prompt = "Plan errands."
    s.ask("two")


def resumed_same(s: ToySession) -> None:
    s.resume("two")


def resumed_other(s: ToySession) -> None:
    s.tools, s.prompt = [*s.tools, tool("fly")], "Run errands fast."
    s.resume("two")


def compacted(s: ToySession) -> None:
    s.compact(s.surface[1:] if s.version >= 3 else s.surface)
    s.ask("two")


C, S, T = ("config",), ("system",), ("tools",)
CASES: list[tuple[Callable[[ToySession], None], list[tuple[Any, ...]]]] = [
    (steady, []),
    (tool_removed, [(1, T, "change", (), T, "head", ())]),
    (tool_reordered, [(1, T, "change", (), T, "head", ())]),
    (schema_edited, [(1, T, "change", (), T, "head", ())]),
    (prompt_edited, [(1, S, "change", (), S, "head", ())]),
    (
        clock_in_prompt,
        [(1, S, "change", (), S, "head", ())] + [(n, S, "change", (), S, "head", ("timestamp",)) for n in (2, 3)],
    ),
    (prompt_grows, [(n, S, "change", (), S, "head", ("growth",)) for n in (1, 2, 3)]),
    (model_settings, [(1, C, "change", ("settings",), (), "head", ())]),
    (model_selected, [(1, (*C, *T), "change", ("model/selection", "settings"), (), "head", ())]),
    (hotter, [(1, C, "change", (), C, "head", ())]),
    (mode_switched, [(1, S, "change", ("plan/mode",), (), "head", ())]),
    (resumed_same, []),
    (resumed_other, [(1, (*S, *T), "resume", ("resume",), (), "head", ())]),
    (compacted, []),
]


@pytest.mark.parametrize("version", [0, 3, 4])
@pytest.mark.parametrize(("act", "expected"), CASES, ids=[case[0].__name__ for case in CASES])
def test_changes(act: Callable[[ToySession], None], expected: list[tuple[Any, ...]], version: int) -> None:
    session = ToySession(version)
    session.ask("one")
    act(session)
    assert brief(drift_of(session)) == expected


@pytest.mark.parametrize("version", [3, 4])
def test_updates_in_the_history_are_told_from_head_rewrites(version: int) -> None:
    session = ToySession(version, in_history=True)
    session.ask("one")
    session.prompt = "Run errands slowly."
    session.ask("two")
    session.tools = session.tools[:1]
    session.ask("three")
    report = drift_of(session)
    assert [(c.parts, c.placement) for c in report.changes] == [(S, "in-history"), (T, "head")]
    assert [f.code for f in report.findings] == ["drift/in-history", "drift/unexplained"]
    change = report.changes[0]
    assert change.seq == change.seqs["system"]
    assert session.rows[(change.seq or 0) + 1]["type"] == "system/message"


def test_a_tool_added_on_an_addition_only_route_stays_out_of_the_head() -> None:
    session = ToySession(4, in_history=True)
    session.ask("one")
    session.tools = [*session.tools, tool("fly")]
    session.ask("two")
    (change,) = drift_of(session).changes
    assert (change.tools.added, change.placement) == (("fly",), "in-history")


def test_json_has_the_members_of_the_contract() -> None:
    session = ToySession(0)
    session.ask("one")
    session.tools = [tool("walk", steps={"type": "number"}), tool("echo"), tool("fly")]
    session.ask("two")
    out = to_json(drift_of(session))
    assert out["schema"] == "dsh-audit/drift/1"
    (change,) = out["changes"]
    header = next(row for row in reversed(session.rows) if row["type"] == "request/header")
    assert {key: change[key] for key in ("request", "seq", "reason", "declared", "parts", "placement")} == {
        "request": 1,
        "seq": header["seq"],
        "reason": "change",
        "declared": False,
        "parts": ["tools"],
        "placement": "head",
    }
    assert change["tools"]["added"] == ["fly"]
    assert change["tools"]["removed"] == []
    assert change["tools"]["reordered"] == ["echo"] or change["tools"]["reordered"] == ["walk"]
    assert change["tools"]["changed"] == ["walk"]
    assert change["tools"]["pointers"][0]["pointer"] == "/parameters/properties/steps"
    assert out["headers"][0]["reason"] == "initial"


def test_two_logs_are_compared_request_by_request() -> None:
    one, two = ToySession(0), ToySession(0)
    two.tools = two.tools[:1]
    for session in (one, two):
        session.ask("one")
        session.ask("two")
    two.prompt = "Run."
    for session in (one, two):
        session.ask("three")
    report = audit_drift_between(one.history(), two.history(), NOWHERE)
    assert [(c.request, c.parts) for c in report.changes] == [(0, T), (2, (*S, *T))]
    assert {c.tools.removed for c in report.changes} == {("walk",)}
    assert audit_drift_between(one.history(), one.history(), NOWHERE).changes == ()


def test_text_names_part_place_and_cause() -> None:
    session = ToySession(0)
    session.ask("one")
    clock_in_prompt(session)
    text = click.unstyle(render_drift(drift_of(session)))
    assert "3 changes: session toy" in text
    assert "volatile: timestamp 2" in text
    assert "request 2 (turn 3, step 1)" in text
    assert "+Run errands. It is 2026-11-30T15:00:01Z." in text
    assert click.unstyle(render_drift(drift_of(ToySession(0)))).startswith("no drift: session toy")


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ("at 2026-11-30T15:00:01Z.", "at 2026-11-30T15:00:07Z.", ("timestamp",)),
        ("Mon Nov 30 2026 15:00:01 GMT+0000 (UTC)", "Mon Nov 30 2026 15:00:02 GMT+0000 (UTC)", ("timestamp",)),
        ("epoch 1796040626566", "epoch 1796040629999", ("timestamp",)),
        ("Today is Monday, November 30, 2026.", "Today is Tuesday, December 1, 2026.", ("date",)),
        ("2026-11-30", "2026-12-01", ("date",)),
        ("It is 15:04 here", "It is 15:05 here", ("time",)),
        ("step 3 of many", "step 14 of many", ("counter",)),
        ("cwd /srv/a/b", "cwd /srv/a/c", ("path",)),
        ("C:\\work\\a x", "C:\\work\\b x", ("path",)),
        ("id 8b7772dd-591f-4661-8692-a8124d84dda1", "id 8b7772dd-591f-4661-8692-a8124d84ddb1", ("uuid",)),
        ("commit 9f3cde1a2b", "commit 01bcde1a2c", ("id",)),
        ("step 1 at 15:04", "step 2 at 15:05", ("counter", "time")),
        ("at 2026-11-30T15:00:01Z.\nGo.", "at 2026-11-30T15:00:07Z.\nGo.", ("timestamp",)),
        ("abc", "abcdef", ("growth",)),
        ("errands", "chores", ()),
        ("a 1", "b 2", ()),
        ("abcdef", "abc", ()),
    ],
)
def test_volatile_content_is_named(before: str, after: str, kinds: tuple[str, ...]) -> None:
    assert volatile_kinds(before, after) == kinds


def test_diffs_are_bounded_and_cut_around_the_difference() -> None:
    change = diff_text("x" * 5000 + "A" + "y" * 5000, "x" * 5000 + "B" + "y" * 5000)
    assert all(len(line) <= MAX_WIDTH + 3 for line in change.diff)
    assert "A" in change.diff[1] and "B" in change.diff[2]
    assert change.shared_chars == 5000
    many = diff_text("\n".join(f"a{n}" for n in range(5000)), "\n".join(f"b{n}" for n in range(5000)))
    assert len(many.diff) == MAX_LINES and many.is_truncated


def diff_tools(before: list[Any], after: list[Any]) -> ToolsChange:
    return tools_change(diff_requests(*(describe_body({"tools": tools}) for tools in (before, after))))


def test_few_tools_count_as_moved() -> None:
    names = [tool(name) for name in "abcdef"]
    assert diff_tools(names, [names[5], *names[:5]]).reordered == ("f",)
    assert diff_tools(names, names[:2] + names[3:]).reordered == ()
    assert diff_tools([tool("a"), tool("a")], [tool("a")]).removed == ("a",)


def test_key_order_alone_is_a_change() -> None:
    one = {"name": "a", "description": "d", "parameters": {"type": "object", "properties": {}}}
    two = {"name": "a", "description": "d", "parameters": {"properties": {}, "type": "object"}}
    change = diff_tools([one], [two])
    assert [(p.pointer, p.kind) for p in change.pointers] == [("/parameters", "key-order")]


def test_reports_keep_to_their_schema() -> None:
    validator = Draft202012Validator(read_schema("drift"))
    for act, _ in CASES:
        session = ToySession(3)
        session.ask("one")
        act(session)
        validator.validate(to_json(drift_of(session)))
    validator.validate(to_json(audit_drift_between(session.history(), ToySession(3).history(), NOWHERE)))
