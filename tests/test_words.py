"""One edit of a session of realistic size, and what every command says about it: the same words, place and cause."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.replay.session_replay import Replay
from tests.captures import write_bundle
from tests.cli import run
from tests.toy_session import ToySession, tool

TURNS = 50
"""Two messages each; the edit is made before the next one."""
PROMPT = "\n".join(f"Rule {n}: run errand {n} before the next one, and tell who asked." for n in range(300))
TOOLS = [tool(f"t{number}", f"Does thing {number}.", place={"type": "string"}) for number in range(30)]
PROFILE = {
    "api": "anthropic-messages",
    "baseURL": "http://127.0.0.1:1",
    "models": [
        {
            "id": name,
            "name": name,
            "contextWindow": 1_000_000,
            "maxTokens": 4096,
            "reasoningEfforts": {"off": None, "low": "low", "high": "high"},
        }
        for name in ("deepseek-flash", "deepseek-v4-pro")
    ],
}
PI = {"providers": {"toy": {"adapter": "llm-pi-ai", "profile": PROFILE}}}
PROTOCOLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "chat": ({"version": 0}, {}),
    "messages": ({"version": 4}, {}),
    "pi": ({"version": 4, "provider": "toy"}, PI),
}
"""Name → how its sessions are made, and the deployment."""

Edit = Callable[[ToySession], None]


def tools(change: Callable[[list[Any]], None]) -> Edit:
    def edit(session: ToySession) -> None:
        session.tools = list(session.tools)
        change(session.tools)

    return edit


def prompt(change: Callable[[list[str]], None]) -> Edit:
    def edit(session: ToySession) -> None:
        lines = session.prompt.split("\n")
        change(lines)
        session.prompt = "\n".join(lines)

    return edit


def assign(**values: Any) -> Edit:
    def edit(session: ToySession) -> None:
        for name, value in values.items():
            setattr(session, name, value)

    return edit


def redefined(**changes: Any) -> Edit:
    return tools(lambda listed: listed.__setitem__(7, {**listed[7], **changes}))


def schema(**properties: Any) -> Edit:
    return redefined(parameters={"type": "object", "properties": properties})


def respelled(session: ToySession) -> None:
    """The members of one schema in another order, which a dict does not tell from the first."""
    redefined(parameters={"properties": TOOLS[7]["parameters"]["properties"], "type": "object"})(session)
    session._shown_header = {**session._shown_header, "stale": True}


def answered(session: ToySession, place: int) -> int:
    """Seq of the tool result nearest to a place of the surface."""
    results = [seq for seq in session.surface[place:] if session.rows[seq + 1]["type"] == "tool/result"]
    return results[0]


def pruned(place: int) -> Edit:
    return lambda session: void(session.prune(answered(session, place)))


def replaced(session: ToySession) -> None:
    seq = next(seq for seq in session.surface[40:] if session.rows[seq + 1]["type"] == "user/message")
    session.replace("user/message", session.message("user", "Another errand.", session.source("toy")), [seq])


def compacted(first: int, last: int | None) -> Edit:
    def edit(session: ToySession) -> None:
        start = first + (session.version >= 3)
        users = [i for i, seq in enumerate(session.surface) if session.rows[seq + 1]["type"] == "user/message"]
        end = len(session.surface) if last is None else next(i for i in users if i >= last)
        session.compact(session.surface[start:end])

    return edit


def void(_value: object) -> None:
    return None


@dataclass(frozen=True)
class Case:
    """What an edit must be called: part and cause in ``cache``, the words everywhere."""

    edit: Edit
    part: str
    words: str
    cause: str = "header-change"
    declared: bool = False
    pointer: str = ""
    unsent: str = ""
    """The protocol in which the edit does not reach the wire."""


NEW = tool("weather")
CASES: dict[str, Case] = {
    "tool added last": Case(tools(lambda t: t.append(NEW)), "tools", "tool added: weather", pointer="/tools"),
    "tool added first": Case(tools(lambda t: t.insert(0, NEW)), "tools", "tool added: weather", pointer="/tools/0"),
    "tool added inside": Case(tools(lambda t: t.insert(9, NEW)), "tools", "tool added: weather", pointer="/tools/9"),
    "first tool removed": Case(tools(lambda t: void(t.pop(0))), "tools", "tool removed: t0", pointer="/tools/0"),
    "tool removed": Case(tools(lambda t: void(t.pop(12))), "tools", "tool removed: t12", pointer="/tools/12"),
    "last tool removed": Case(tools(lambda t: void(t.pop())), "tools", "tool removed: t29", pointer="/tools"),
    "first tool moved": Case(tools(lambda t: t.append(t.pop(0))), "tools", "tools reordered: t0", pointer="/tools/0"),
    "last tool moved": Case(tools(lambda t: t.insert(0, t.pop())), "tools", "tools reordered: t29", pointer="/tools/0"),
    "description": Case(redefined(description="Does more."), "tools", "tool redefined: t7", pointer="/tools/7"),
    "parameter added": Case(
        schema(place={"type": "string"}, when={"type": "string"}), "tools", "tool redefined: t7", pointer="/tools/7"
    ),
    "parameter retyped": Case(schema(place={"type": "number"}), "tools", "tool redefined: t7", pointer="/tools/7"),
    "parameter renamed": Case(schema(spot={"type": "string"}), "tools", "tool redefined: t7", pointer="/tools/7"),
    "parameter gone": Case(schema(), "tools", "tool redefined: t7", pointer="/tools/7"),
    "schema respelled": Case(respelled, "tools", "tool redefined: t7", pointer="/tools/7", unsent="pi"),
    "first line": Case(prompt(lambda lines: lines.__setitem__(0, "Be quick.")), "system", "system prompt edited"),
    "middle line": Case(prompt(lambda lines: lines.__setitem__(150, "Be quick.")), "system", "system prompt edited"),
    "last line": Case(prompt(lambda lines: lines.__setitem__(-1, "Be quick.")), "system", "system prompt edited"),
    "line added": Case(prompt(lambda lines: lines.append("Be quick.")), "system", "system prompt edited"),
    "line inserted": Case(prompt(lambda lines: lines.insert(3, "Be quick.")), "system", "system prompt edited"),
    "line removed": Case(prompt(lambda lines: void(lines.pop(200))), "system", "system prompt edited"),
    "clock": Case(prompt(lambda lines: lines.append("It is 2026-11-30T15:00:00Z.")), "system", "system prompt edited"),
    "effort": Case(assign(effort="low"), "config", "reasoningEffort changed", "", True),
    "temperature": Case(assign(settings={"temperature": 0.5}), "config", "temperature changed", "", unsent="pi"),
    "max tokens": Case(assign(settings={"maxTokens": 512}), "config", "maxTokens changed", "", unsent="pi"),
    "model": Case(assign(model="deepseek-v4-pro"), "config", "model changed", "model-switch", True, "/model"),
    "late result pruned": Case(pruned(90), "messages", "tool message changed", "prune", True, "/messages/"),
    "early result pruned": Case(pruned(5), "messages", "tool message changed", "prune", True, "/messages/"),
    "message replaced": Case(replaced, "messages", "user message changed", "replacement", False, "/messages/"),
    "half compacted": Case(compacted(0, 60), "messages", "", "compaction", True, "/messages/"),
    "end compacted": Case(compacted(60, None), "messages", "", "compaction", True, "/messages/"),
    "all compacted": Case(compacted(0, None), "messages", "", "compaction", True, "/messages/"),
}


def session_of(edit: Edit | None, **options: Any) -> ToySession:
    session = ToySession(prompt=PROMPT, tools=list(TOOLS), **options)
    for number in range(TURNS):
        if number % 10 == 3:
            session.call(f"errand {number}", "t3", f"result {number} " + "word " * 40)
            session.ask(None, f"done {number}")
        else:
            session.ask(f"errand {number}", f"done {number}")
    if edit is not None:
        edit(session)
    for number in range(TURNS, TURNS + 2):
        session.ask(f"errand {number}", f"done {number}")
    return session


@dataclass
class Place:
    """A protocol: how its sessions are made, the run without an edit, and its golden case."""

    name: str
    path: Path
    options: dict[str, Any]
    given: dict[str, Any]

    def __post_init__(self) -> None:
        self.deployment: tuple[str | Path, ...] = ()
        if self.given:
            self.deployment = ("--deployment", self.path / "deployment.json")
            (self.path / "deployment.json").write_text(json.dumps(self.given))
        self.rows = len((before := session_of(None, **self.options)).rows)
        self.before = self.log("before", before)
        record = ("golden", "record", "--force", self.before, "-o", self.path / "cases")
        assert run(*record, *self.deployment).returncode == 0

    def log(self, name: str, session: ToySession) -> Path:
        target = self.path / name / f"session{'' if session.version == 0 else f'.v{session.version}'}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(session.plain())
        return target

    def report(self, *command: str | Path) -> dict[str, Any]:
        done = run(*command, *self.deployment, "--format", "json")
        assert done.returncode in (0, 1), done.stderr.decode()
        value: dict[str, Any] = json.loads(done.stdout)
        return value


@pytest.fixture(params=PROTOCOLS, scope="module")
def where(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(request.param, tmp_path_factory.mktemp("words"), *PROTOCOLS[request.param])


@pytest.mark.parametrize("name", CASES)
def test_every_command_says_the_same_about_an_edit(name: str, where: Place) -> None:
    case = CASES[name]
    after = session_of(case.edit, **where.options)
    logs = where.before, where.log(name.replace(" ", "-"), after)
    told = {"diff": told_by_diff(where, *logs), "golden": told_by_golden(where, logs[1])}
    if name != "schema respelled":
        told["verify"] = told_by_verify(where, after)
    drift = where.report("drift", logs[1])
    cache = where.report("cache", logs[1])
    if where.name == case.unsent:
        assert not any(told.values()) and not any(row["bust"] for row in cache["requests"])
        assert bool(drift["changes"]) is (case.part == "config")
        return
    assert all(row["prompt"]["body_bytes"] or row["kind"] != "step" for row in cache["requests"])
    busts = [row for row in cache["requests"] if row["bust"]]
    if case.cause:
        (row,) = busts
        bust = row["bust"]
        assert (bust["cause"], bust["part"], bust["declared"]) == (case.cause, case.part, case.declared), bust
        assert bust["pointer"].startswith(case.pointer), bust["pointer"]
        assert bust["seq"] is not None and bust["seq"] > where.rows // 2
    else:
        assert not busts
    if case.part == "messages":
        assert drift["changes"] == []
        if case.words:
            told["cache"] = {busts[0]["bust"]["what"]}
    else:
        (change,) = drift["changes"]
        assert (change["what"], change["parts"]) == ([case.words], [case.part])
        assert change["declared"] is case.declared
        told["drift"] = {case.words}
        if busts:
            told["cache"] = {busts[0]["bust"]["what"]}
            assert busts[0]["bust"]["seq"] == change["seqs"][case.part]
    if case.words:
        assert told == {command: {case.words} for command in told}
    else:
        assert told["diff"] | told["verify"] <= told["golden"]  # the others show the first few


def told_by_diff(where: Place, one: Path, two: Path) -> set[str]:
    rows = where.report("diff", one, two)["requests"]
    row: dict[str, Any] = next((row for row in rows if row["status"] == "different"), {"changes": []})
    return {change["what"] for change in row["changes"]}


def told_by_golden(where: Place, log: Path) -> set[str]:
    (case,) = where.report("golden", "check", where.path / "cases", "--log", log)["cases"]
    first = min((change["requests"][0] for change in case["changes"] if change["layer"] != "requests"), default=None)
    changes = [change for change in case["changes"] if first in change["requests"] and change["layer"] != "requests"]
    return {change["what"] for change in changes}


def told_by_verify(where: Place, after: ToySession) -> set[str]:
    bodies = [rebuilt.encoded.body for rebuilt in Replay(after.history(), Deployment(where.given, {}))]
    path = "/chat/completions" if after.version == 0 else "/v1/messages"
    sent = [body.to_bytes() for body in bodies if body is not None]
    with tempfile.TemporaryDirectory(dir=where.path) as folder:
        bundle = write_bundle(Path(folder) / "bundle", sent, after.ident, path)
        pairs = where.report("verify", where.before, "--capture", bundle)["pairs"]
    pair: dict[str, Any] = next((pair for pair in pairs if pair["verdict"] == "different"), {"changes": []})
    return {change["what"] for change in pair["changes"]}
