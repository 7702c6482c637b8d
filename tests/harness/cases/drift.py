"""Kinds about header drift and the prompt cache; usage comes from a true prefix cache."""

from __future__ import annotations

from typing import Any

from tests.harness.cases.basic import ECHO, call, case, texts

Json = Any

GRAIN = 64
PRO = "deepseek-v4-pro"
AXE = {"name": "axe", "description": "Cut the tree.", "parameters": {"type": "object", "properties": {}}}
OAK = {"name": "oak", "description": "Look at the oak."}
SCHEMA = {"type": "object", "properties": {"deep": {"type": "number", "description": "In feet."}, "wet": {}}}
EDITED = {"type": "object", "properties": {"deep": {"type": "number", "description": "In metres."}, "wet": {}}}


def _drift(era: str, kind: str, shows: str, do: list[Json], state: Json, **more: Json) -> Json:
    script = texts(*(f"Answer {n}: nothing much happened in the village." for n in range(8)))
    model = more.get("model", "")
    name = f"drift-{kind}" + ("-pro" if model == PRO else "")
    return case(era, name, shows, script, do, state=state, cache_grain=GRAIN, leftover=True, **more)


def _turns(*changes: Json) -> list[Json]:
    """Two turns, then after each change two more."""
    count = iter(range(100))
    do = [["prompt", f"Turn {next(count)} please"] for _ in range(2)]
    for change in changes:
        do += [["state", change], *(["prompt", f"Turn {next(count)} please"] for _ in range(2))]
    return do


def clean(era: str, **more: Json) -> Json:
    """Nothing changes: an append-only session with tools."""
    script: list[Json] = []
    for n in range(4):
        script += [{"reasoning": "Hm.", "tools": [call("echo", {"turn": n}, n)]}, {"text": f"Said {n}."}]
    do = [["prompt", f"Turn {n} please"] for n in range(4)]
    more |= {"state": {"tools": [ECHO], "system": "The village has three houses."}, "cache_grain": GRAIN}
    name = "drift-none" + ("-pro" if more.get("model") == PRO else "")
    return case(era, name, "No drift at all.", script, do, **more)


def tool_removed(era: str, **more: Json) -> Json:
    """One of three tools goes."""
    do = _turns({"tools": [ECHO, AXE]})
    return _drift(era, "tool-removed", "A tool removed.", do, {"tools": [ECHO, AXE, OAK]}, **more)


def tool_added(era: str, **more: Json) -> Json:
    """A tool comes, then another with a name that sorts first."""
    do = _turns({"tools": [ECHO, OAK]}, {"tools": [ECHO, OAK, AXE]})
    return _drift(era, "tool-added", "Tools added.", do, {"tools": [ECHO]}, **more)


def tool_reordered(era: str, **more: Json) -> Json:
    """The same tools in another order."""
    do = _turns({"toolOrder": ["oak", "<unlisted-tools>"]})
    return _drift(era, "tool-reordered", "A tool reordered.", do, {"tools": [ECHO, AXE, OAK]}, **more)


def schema_edited(era: str, **more: Json) -> Json:
    """One word in one tool's schema, then its description."""
    well = {"name": "well", "description": "Look into the well.", "parameters": SCHEMA}
    edited = {**well, "parameters": EDITED}
    do = _turns({"tools": [ECHO, edited]}, {"tools": [ECHO, {**edited, "description": "Look down the well."}]})
    return _drift(era, "schema-edited", "A tool redefined.", do, {"tools": [ECHO, well]}, **more)


def timestamp(era: str, **more: Json) -> Json:
    """The time in the system prompt of every request."""
    state = {"tools": [ECHO], "system": "It is {now} in the village."}
    return _drift(era, "timestamp", "A timestamp in the system prompt.", _turns({}), state, **more)


def counter(era: str, **more: Json) -> Json:
    """A growing counter in the system prompt."""
    state = {"tools": [ECHO], "system": "Requests so far: {count}."}
    return _drift(era, "counter", "A counter in the system prompt.", _turns({}), state, **more)


def system_changed(era: str, **more: Json) -> Json:
    """The system prompt is rewritten once: in the history on routes that can, at the head on others."""
    do = _turns({"system": "The village has four houses.\nOne of them is new."})
    state = {"tools": [ECHO], "system": "The village has three houses."}
    return _drift(era, "system-changed", "The system prompt changed once.", do, state, **more)


def both_changed(era: str, **more: Json) -> Json:
    """System prompt and tools change together."""
    do = _turns({"system": "The village has four houses.", "tools": [ECHO, OAK]})
    state = {"tools": [ECHO], "system": "The village has three houses."}
    return _drift(era, "both-changed", "Prompt and tools changed together.", do, state, **more)


def model_switched(era: str) -> Json:
    """The user switches the model and back, then the effort."""
    do = _turns({"config": {"model": PRO}}, {"config": {}}, {"config": {"reasoningEffort": "low"}})
    state = {"tools": [ECHO], "system": "The village has three houses."}
    return _drift(era, "model-switched", "Model and effort switched.", do, state)


KINDS = (clean, tool_removed, tool_added, tool_reordered, schema_edited, timestamp, system_changed)
LATER = (system_changed, both_changed, timestamp, tool_added, tool_removed)
CASES = [
    *(kind("v0") for kind in (*KINDS, counter, model_switched)),
    *(kind("v3") for kind in (clean, *LATER, model_switched)),
    *(kind("v3", model=PRO) for kind in (system_changed, both_changed)),
    *(kind("v4") for kind in (*KINDS, both_changed, model_switched)),
    *(kind("v4", model=PRO) for kind in (clean, *LATER)),
]
