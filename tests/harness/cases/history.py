"""Kinds about a session's history: resume, fork, children, crash, compaction, pruning, overflow."""

from __future__ import annotations

from typing import Any

from tests.harness.cases.basic import ECHO, ERAS, RETRIES, call, case, texts, usage

Json = Any

CHUNK_ERAS = ("v0", "v0late")
SCOPE = "@deepseek-ai/"
WORDS = "The baker, the miller and the smith walk around the well. " * 6
OTHER_WORDS = "Rain falls on the three houses and on the road behind them. " * 6


def resumed(era: str, do: list[Json], **more: Json) -> Json:
    """A phase that resumes the first session."""
    if era == "v4":
        return {"do": [["resume", "sess-1"], *do], **more}
    return {"do": do, "resume": ["sess-1"], **more}


def resume(era: str) -> Json:
    """A second process continues the session with the same settings."""
    script = [*texts("One."), {"tools": [call("echo", {"n": 2})]}, *texts("Two.", "Three.")]
    state = {"tools": [ECHO]}
    again = resumed(era, [["prompt", "three"]])
    do = [["prompt", "one"], ["prompt", "two"]]
    return case(era, "resume", "Resume without drift.", script, do, again, state=state)


def resume_drift(era: str) -> Json:
    """A later process has another prompt, other tools, another model."""
    extra = {"name": "extra", "description": "Only in the second process."}
    state = {"tools": [ECHO], "system": "First day."}
    script = [{"tools": [call("echo", {"n": 1})]}, *texts("One.", "Two.", "Three.")]
    changed = ["state", {"tools": [extra], "system": "Second day."}]
    second = resumed(era, [["prompt", "two"]], persona="You rest in a toy village.")
    second["do"].insert(0, changed)
    third = resumed(era, [["prompt", "three"]], model="deepseek-v4-pro", max_tokens=999)
    do = [["prompt", "one"]]
    return case(era, "resume-drift", "Resume with drift.", script, do, second, third, state=state)


def fork(era: str) -> Json:
    """Two sessions forked from one, the second never run; the parent goes on."""
    script = texts("One.", "Two.", "Child one.", "Child two.", "Three.")
    do = [
        ["prompt", "one"],
        ["prompt", "two"],
        ["fork", {"id": "fork-all", "through": "turn-end"}],
        ["child", "child one", "fork-all"],
        ["child", "child two", "fork-all"],
        ["fork", {"id": "fork-idle", "through": "turn-end"}],
        ["prompt", "three"],
    ]
    return case(era, "fork", "Forked sessions.", script, do)


def children(era: str) -> Json:
    """A tool runs a child with the parent's history, and one without."""
    send = {"name": "send", "does": "child", "child": {"id": "child-fork", "through": "turn-end"}}
    spawn = {"name": "spawn", "does": "child", "child": {"id": "child-new"}}
    script: list[Json] = [
        {"text": "One."},
        {"tools": [call("send", {"prompt": "Look at the well"})]},
        {"when": "Look at the well", "tools": [call("echo", {"well": "deep"})]},
        {"when": "Look at the well", "text": "It is deep."},
        {"tools": [call("spawn", {"prompt": "Count the houses"})]},
        {"when": "Count the houses", "text": "Three."},
        {"text": "Both came back."},
    ]
    do = [["prompt", "one"], ["prompt", "two"]]
    return case(era, "children", "Child sessions.", script, do, state={"tools": [ECHO, send, spawn]})


def crash(era: str, size: int, compression: str) -> Json:
    """Killed while an answer streams; resumed by a second process, after the last bytes were lost if `size`.

    Formats without chunk events get the loss after a finished turn: during an answer their last rows are what the
    request was made of, which the harness has on disk before it sends anything.
    """
    script: list[Json] = [
        {"tools": [call("echo", {"n": 1})]},
        {"text": "One."},
        {"reasoning": "Thinking about it.", "text": "This answer never ends", "hang_after": 5},
        {"text": "Back again."},
    ]
    killed: list[Json] = [["prompt", "one"]]
    if size and era not in CHUNK_ERAS:
        del script[2]["hang_after"]
        killed += [["prompt", "two"], ["sleep", 0.6], ["kill"]]
    else:
        killed += [["prompt", "two", "sess-1", {"hanging": [["sleep", 0.6], ["kill"]]}]]
    cut = [["truncate", "sess-1", size]] if size else []
    again = resumed(era, [["prompt", "three"]])
    again["do"] = [*cut, *again["do"]]
    name = f"crash-{compression if compression != 'none' else 'plain'}{'-torn' if size else ''}"
    more = {"state": {"tools": [ECHO]}, "compression": compression}
    return case(era, name, "A crash and what the resume makes of it.", script, killed, again, **more)


def torn(era: str, size: int, compression: str) -> Json:
    """The same crash, never resumed."""
    made = crash(era, size, compression)
    lost = {"do": [["truncate", "sess-1", size]]}
    phases = [made["phases"][0], lost]
    named = {"case": made["case"].replace("crash", "left"), "shows": "A torn log as a crash leaves it."}
    return {**made, **named, "script": made["script"][:-1], "phases": phases}


def compacting(era: str, window: int = 3000, pruner: bool = False, **config: Json) -> Json:
    """A phase with a small context window and the compaction plugins."""
    compaction = {"thresholdRatio": 0.5, "retainRatio": 0.1, "maxTokens": 200, **config}
    if era == "v4":
        compaction["headroomTokens"] = 64
    plugins = [
        {"id": "token-meter", "name": f"{SCOPE}dsh-token-meter"},
        {"id": "compaction-basic", "name": f"{SCOPE}dsh-compaction-basic", "config": compaction},
    ]
    prune = {"thresholdChars": 300, "headChars": 60, "tailChars": 40}
    pruning = {"id": "pruner", "name": f"{SCOPE}dsh-compaction-tool-result-pruner", "config": prune}
    model = {"id": "deepseek-flash", "contextWindow": window}
    update = {"systemPromptUpdate": "in-history"} if era in ("v3", "v4") else {}
    update |= {"toolUpdate": "addition-only"} if era == "v4" else {}
    adapter = {"maxTokens": 300, "models": [{**model, **update}], "retryPolicy": RETRIES}
    rows: Json = {"llm-deepseek": {"config": adapter}}
    inserted = plugins if era != "v4" else []
    if era == "v4":
        rows["compaction-basic"] = {"config": compaction}
    return {"rows": rows, "insert": [*inserted, *([pruning] if pruner else [])]}


def compaction(era: str) -> Json:
    """Pressure compaction before a step, manual ones, one whose summary is no gain, one that fails."""
    full = {"usage": usage(era, 2700, 128)}
    script: list[Json] = [
        {"text": f"Zero. {OTHER_WORDS}"},
        {"text": f"One. {OTHER_WORDS}"},
        {"text": f"Two. {OTHER_WORDS}", **full},
        {"to": "compaction", "text": "They walk; it rains."},
        {"text": f"Three. {OTHER_WORDS}"},
        {"to": "compaction", "reasoning": "In short.", "text": "Still walking, still raining."},
        {"text": f"Four. {OTHER_WORDS}", **full},
        {"to": "compaction", "text": WORDS * 8},
        {"to": "compaction", "status": 400},
        {"text": f"Five. {OTHER_WORDS}"},
        {"text": "Six."},
    ]
    do = [
        *[["prompt", f"{n}: {WORDS}"] for n in range(4)],
        ["compact"],
        *[["prompt", f"{n}: {WORDS}"] for n in range(4, 7)],
        ["compact"],
        ["prompt", "seven"],
    ]
    phase = {"do": do, **compacting(era)}
    return case(era, "compaction", "Pressure and manual compaction.", script, phase, leftover=True)


def overflow(era: str) -> Json:
    """The provider says that the context is too long: compaction, then the step again."""
    kind = {"message": "context length exceeded: too many tokens", "type": "invalid_request_error"}
    too_long: Json = {"status": 400, "error": {**kind, "code": "context_length_exceeded"}}
    if era == "v4":
        too_long["error"]["message"] = "prompt is too long: 5000 tokens > 3000 maximum"
    script: list[Json] = [
        {"text": f"One. {OTHER_WORDS}"},
        {"text": f"Two. {OTHER_WORDS}"},
        too_long,
        {"to": "compaction", "text": "They walk; it rains."},
        {"text": "Three."},
        {"text": "Four."},
    ]
    do = [["prompt", f"one {WORDS}"], ["prompt", f"two {WORDS}"], ["prompt", "three"], ["prompt", "four"]]
    phase = {"do": do, **compacting(era, window=60000)}
    return case(era, "overflow", "Overflow with compaction.", script, phase)


def prune(era: str) -> Json:
    """Long tool results are cut out of the history under pressure."""
    long = {"name": "long", "description": "Many lines.", "does": "long", "lines": 60}
    script: list[Json] = []
    for n in range(4):
        script += [{"tools": [call("long", {}, n)]}, {"text": f"Read {n}. {OTHER_WORDS}"}]
    script += [{"text": "End."}, {"to": "compaction", "text": "Read the lines."}]
    phase = {"do": [["prompt", f"read {n}"] for n in range(5)], **compacting(era, window=4000, pruner=True)}
    more = {"state": {"tools": [long]}, "leftover": True}
    return case(era, "prune", "Pruned tool results.", script, phase, **more)


def events(era: str) -> Json:
    """Plugin events: an ignorable one, then one that makes a later resume refuse the log."""
    do = [
        ["prompt", "one"],
        ["append", "sess-1", "toy/note", {"note": "harmless"}, {"ignorable": True}],
        ["prompt", "two"],
        ["append", "sess-1", "toy/must-know", {"note": "vital"}],
        ["prompt", "three"],
    ]
    return case(era, "plugin-events", "Events of a plugin.", texts("One.", "Two.", "Three."), do)


def _cases(era: str) -> list[Json]:
    kinds = (resume, resume_drift, fork, children, compaction, overflow, prune, events)
    crashes = [crash(era, size, how) for size, how in ((0, "none"), (37, "none"), (9, "zstd"))]
    left = [torn(era, 37, "none"), torn(era, 9, "zstd")]
    return [*(kind(era) for kind in kinds), *crashes, *left]


CASES = [made for era in ERAS for made in _cases(era)]
