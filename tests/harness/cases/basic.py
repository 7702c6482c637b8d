"""Kinds that every release knows: turns, tools, reasoning, text and numbers, settings."""

from __future__ import annotations

from typing import Any

Json = Any

PERSONA = "You run errands in a toy village."
ECHO = {"name": "echo", "description": "Say the arguments again."}
BOOM = {
    "name": "boom",
    "description": "Always fail.",
    "does": "fail",
    "message": "The well is dry: \u2028 no water.",
}
SLOW = {"name": "slow", "description": "Echo after a moment.", "delay_ms": 120}

ERAS = {"v0": "0.1.1rc1", "v0late": "0.1.2rc1", "v3": "0.1.5rc1", "v4": "0.2.1rc2"}
"""Prefix of a case name, and the runtime that records it."""


def case(era: str, kind: str, shows: str, script: list[Json], *phases: Json, **more: Json) -> Json:
    """One case; `phases` are lists of operations or whole phases."""
    whole = [phase if isinstance(phase, dict) else {"do": phase} for phase in phases]
    head = {"case": f"{era}-{kind}", "shows": shows, "runtime": ERAS[era], "persona": PERSONA, **more}
    return {**head, "script": script, "phases": whole}


def call(name: str, arguments: Json, number: int = 1) -> Json:
    """One tool call of a reply."""
    return {"id": f"call_{name}_{number}", "name": name, "arguments": arguments}


def multi_turn(era: str) -> Json:
    """Three turns of text in one session, a second session in between."""
    prompts = [
        ["prompt", "Hello"],
        ["prompt", "Good day", "sess-2"],
        ["prompt", "And now?"],
        ["prompt", "Bye"],
    ]
    replies = [{"text": text} for text in ("Hello there.", "Good day to you.", "Nothing new.", "Farewell.")]
    return case(era, "multi-turn", "Turns of plain text in two interleaved sessions.", replies, prompts)


def tools(era: str) -> Json:
    """Parallel calls, a failing tool, an unknown tool, broken and empty arguments."""
    script: list[Json] = [
        {"tools": [call("echo", {"house": 1}), call("boom", {}), call("slow", {"house": 2})]},
        {"text": "Trying more.", "tools": [call("nothing", {"a": 1}), call("echo", '{"house": ', 2)]},
        {"tools": [call("echo", "", 3), call("echo", " { } ", 4), call("echo", "[1]", 5)]},
        {"text": "All errands are done."},
        {"text": "You are welcome."},
    ]
    state = {"tools": [SLOW, ECHO, BOOM], "system": "The village has three houses."}
    do = [["prompt", "Visit the houses"], ["prompt", "Thanks"]]
    return case(era, "tools", "Parallel tool calls and tool errors.", script, do, state=state)


CASES = [kind(era) for era in ERAS for kind in (multi_turn, tools)]
