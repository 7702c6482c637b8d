"""Kinds that every release knows: turns, tools, reasoning, text and numbers, settings, failures."""

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
RETRIES = {
    "mode": "normal",
    "maxRetries": 3,
    "backoff": {"initialDelayMs": 5, "maxDelayMs": 40, "jitterRatio": 0},
}

ERAS = {"v0": "0.1.1rc1", "v0late": "0.1.2rc1", "v3": "0.1.5rc1", "v4": "0.2.1rc2"}
"""Prefix of a case name, and the runtime that records it."""
HARNESS = {era: version.replace("rc", "-rc.") for era, version in ERAS.items()}
"""The harness version of each era."""
MESSAGES_ERAS = ("v4",)


def case(era: str, kind: str, shows: str, script: list[Json], *phases: Json, **more: Json) -> Json:
    """One case; `phases` are lists of operations or whole phases."""
    whole = [phase if isinstance(phase, dict) else {"do": phase} for phase in phases]
    head = {"case": f"{era}-{kind}", "shows": shows, "runtime": ERAS[era], "persona": PERSONA, **more}
    return {**head, "script": script, "phases": whole}


def call(name: str, arguments: Json, number: int = 1) -> Json:
    """One tool call of a reply."""
    return {"id": f"call_{name}_{number}", "name": name, "arguments": arguments}


def usage(era: str, prompt: int, cached: int = 0) -> Json:
    """What a provider reports for a prompt of so many tokens."""
    if era in MESSAGES_ERAS:
        fresh = {"input_tokens": prompt - cached, "cache_creation_input_tokens": 0}
        return {**fresh, "cache_read_input_tokens": cached, "output_tokens": 20}
    split = {"prompt_cache_hit_tokens": cached, "prompt_cache_miss_tokens": prompt - cached}
    return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20, **split}


def texts(*lines: str) -> list[Json]:
    """Replies of plain text."""
    return [{"text": line} for line in lines]


def multi_turn(era: str) -> Json:
    """Three turns of text in one session, a second session in between."""
    prompts = [
        ["prompt", "Hello"],
        ["prompt", "Good day", "sess-2"],
        ["prompt", "And now?"],
        ["prompt", "Bye"],
    ]
    script = texts("Hello there.", "Good day to you.", "Nothing new.", "Farewell.")
    return case(era, "multi-turn", "Turns of plain text in two interleaved sessions.", script, prompts)


def tools(era: str) -> Json:
    """Parallel calls, a failing and an unknown tool, empty arguments, a second turn."""
    script: list[Json] = [
        {"tools": [call("echo", {"house": 1}), call("boom", {}), call("slow", {"house": 2})]},
        {"text": "Trying more.", "tools": [call("nothing", {"a": 1}), call("echo", " { } ", 2)]},
        {"tools": [call("echo", "", 3)]},
        {"text": "All errands are done."},
        {"text": "You are welcome."},
    ]
    state = {"tools": [SLOW, ECHO, BOOM], "system": "The village has three houses."}
    do = [["prompt", "Visit the houses"], ["prompt", "Thanks"]]
    return case(era, "tools", "Parallel tool calls and tool errors.", script, do, state=state)


def malformed(era: str) -> Json:
    """Tool arguments that are no JSON object, and a stream that is no JSON."""
    broken: list[Json] = [
        {"tools": [call("echo", '{"house": ')]},
        {"tools": [call("echo", "[1]", 2)]},
        {"raw": ["data: {not json\n\n"]},
    ]
    script = [*broken, *texts("Enough.", "Done.", "Really done.")]
    do = [["prompt", text] for text in ("Break it", "Again", "Once more")]
    kept = {"leftover": True}
    return case(era, "malformed", "Malformed replies.", script, do, state={"tools": [ECHO]}, **kept)


def reasoning(era: str) -> Json:
    """Reasoning with text, with tools, alone, empty, with and without signatures; an effort."""
    script: list[Json] = [
        {
            "reasoning": ["First ", "the bakery", ", then the well."],
            "tools": [call("echo", {"at": "bakery"})],
        },
        {"reasoning": "Now the well.", "text": "Bread and water.", "signature": None},
        {"reasoning": "Only a thought."},
        {"reasoning": "", "text": "No thought.", "signature": ""},
        {"text": "The end."},
    ]
    do = [["prompt", text] for text in ("Go", "Think", "Do not think", "Stop")]
    return case(era, "reasoning", "Reasoning in every place.", script, do, state={"tools": [ECHO]}, effort=None)


def unicode(era: str) -> Json:
    """Text that JSON printers disagree about, from the user, the model and a tool."""
    odd = '\u2603 \U0001f600 \u2028\u2029 \u0000\u0001\u007f\u0085 \ufeff \u05d0\u202eabc "\\/ </b> e\u0301'
    lone = "high \ud83d end, low \ude00 end"
    script: list[Json] = [
        {"text": ["split \ud83d", "\ude00 pair, ", lone], "reasoning": ["\ud83d", "\ude00", " thought"]},
        {"text": odd, "tools": [call("fixed", {"say": odd}), call("echo", {"\u2603": lone}, 2)]},
        {"text": "\n\t trimmed? \u3000 "},
        {"text": "Yes."},
    ]
    fixed = {"name": "fixed", "description": odd, "does": "fixed", "result": f"{odd} {lone}"}
    state = {"tools": [fixed, ECHO], "system": f"Names: {odd} {lone}"}
    do = [["prompt", odd], ["prompt", lone], ["prompt", "\u2028"]]
    return case(era, "unicode", "Unicode, control characters, lone surrogates.", script, do, state=state)


TORTURE = (
    '{"b":1,"10":"ten","2":"two","a":{"01":1,"1":2,"-1":3,"4294967295":4,"4294967294":5,"":6},'
    '"n":[-0,0.0,1.0,1e21,1e-7,123456789012345680000,9007199254740993,1e400,-1e-400,0.1,5e-324,1.7976931348623157e308],'
    '"dup":1,"x":2,"dup":3,"__proto__":{"polluted":true},"constructor":null,"t":true,"s":"\\u0041\\/\\ud800"}'
)
SCHEMA = (
    '{"type":"object","properties":{"z":{"type":"string","maxLength":1e3},"10":{"type":"number","minimum":0.10},'
    '"2":{"type":"integer","maximum":12345678901234567890},"__proto__":{"type":"null"},"":{"enum":[1.50,"\\u2028",null]}},'
    '"required":["z","2"],"additionalProperties":true}'
)


def torture(era: str) -> Json:
    """Numbers, key orders, duplicates and `__proto__` in tool arguments and in a schema."""
    wild = {"name": "wild", "description": "Any JSON.", "parameters_json": SCHEMA}
    spaced = TORTURE.replace('{"b"', '{ "b"').replace(":1,", " : 1 ,\n")
    script: list[Json] = [
        {"tools": [call("echo", TORTURE), call("wild", '{"z":"q","2":7,"1":[]}'), call("echo", spaced, 2)]},
        {"text": "Survived."},
        {"text": "Still here."},
    ]
    do = [["prompt", "Do your worst"], ["prompt", "And?"]]
    return case(era, "json", "JSON torture in arguments and schemas.", script, do, state={"tools": [ECHO, wild]})


def settings(era: str) -> Json:
    """The request header changes between turns and between the steps of one turn."""
    turn_on = {"name": "shift", "does": "state", "state": {"config": {"temperature": 0.25, "maxTokens": 777}}}
    script: list[Json] = [
        {"text": "One."},
        {"tools": [call("shift", {})]},
        {"text": "Two."},
        {"text": "Three."},
        {"text": "Four."},
        {"text": "Five."},
    ]
    do = [
        ["prompt", "one"],
        ["prompt", "two"],
        ["state", {"config": {"stop": ["END", ""], "reasoningEffort": "low"}}],
        ["prompt", "three"],
        ["state", {"config": {"reasoningEffort": "off", "stop": [], "temperature": 0}}],
        ["prompt", "four"],
        ["state", {"config": {"maxTokens": None, "temperature": 1.0}}],
        ["prompt", "five"],
    ]
    return case(era, "settings", "Settings change inside a session.", script, do, state={"tools": [turn_on]})


def empty(era: str) -> Json:
    """Answers without content, and each way to finish."""
    finishes = ("max_tokens", "refusal") if era in MESSAGES_ERAS else ("length", "content_filter")
    script: list[Json] = [
        {"text": ""},
        {"text": []},
        {"text": "  \n"},
        {"text": "Cut sho", "finish": finishes[0]},
        {"text": "", "finish": finishes[0]},
        {"text": "Not for you", "finish": finishes[1]},
        {"text": "Back again."},
    ]
    do = [["prompt", f"say {n}"] for n in range(7)]
    return case(era, "empty", "Empty and cut answers.", script, do, leftover=True)


def retries(era: str) -> Json:
    """Each failure that a retry answers: statuses, drops, cuts; and one that it does not."""
    limited = {
        "status": 429,
        "headers": {"retry-after": "0"},
        "error": _error("slow down", "rate_limit_error"),
    }
    script: list[Json] = [
        {"status": 500},
        limited,
        {"drop": True},
        {"text": "Third time lucky."},
        {"text": "This will be cut in the middle", "cut_after": 4},
        {"text": "Not cut."},
        {"reasoning": "Hm.", "stream_error": _error("overloaded", "overloaded_error")},
        {"text": "No load."},
        {"status": 400, "error": _error("no such thing", "invalid_request_error")},
        {"status": 401, "error": _error("who are you", "authentication_error")},
        *([{"status": 503}] * 4),
        {"text": "At last."},
    ]
    do = [["prompt", f"try {n}"] for n in range(7)]
    phase = {"do": do, "rows": {"llm-deepseek": {"config": {"retryPolicy": RETRIES}}}}
    return case(era, "retries", "Failed attempts and retries.", script, phase, leftover=True)


def _error(message: str, kind: str) -> Json:
    return {"message": message, "type": kind, "code": kind}


def cancel(era: str) -> Json:
    """Cancelled while text streams, while reasoning streams, before the first part, during a tool call."""
    during = {"hanging": [["cancel"], ["sleep", 0.3]]}
    script: list[Json] = [
        {"text": "This text stops half way", "hang_after": 4},
        {"reasoning": "A long thought", "hang_after": 3},
        {"text": "Nothing yet", "hang_after": 1},
        {"tools": [call("echo", {"never": "finished"})], "hang_after": 3},
        {"text": "And on we go."},
    ]
    do: list[Json] = [["prompt", f"start {n}", "sess-1", during] for n in range(4)]
    return case(era, "cancel", "Cancelled turns.", script, [*do, ["prompt", "go on"]], state={"tools": [ECHO]})


def no_request(era: str) -> Json:
    """Steps that end before a request: a minus zero in a schema, an effort the model does not know."""
    bad = {
        "name": "bad",
        "parameters_json": '{"type":"object","properties":{"n":{"type":"number","minimum":-0}}}',
    }
    do = [
        ["prompt", "one"],
        ["state", {"tools": [bad]}],
        ["prompt", "two"],
        ["state", {"tools": [], "config": {"reasoningEffort": "warp"}}],
        ["prompt", "three"],
        ["state", {"config": {}}],
        ["prompt", "four"],
    ]
    return case(era, "no-request", "Steps that never reach the wire.", texts("One.", "Four."), do)


def stored(era: str, kind: str, shows: str, **storage: Json) -> Json:
    """The tools case, stored another way."""
    base = tools(era)
    return {**base, "case": f"{era}-{kind}", "shows": shows, **storage}


def _storage(era: str) -> list[Json]:
    cases = [stored(era, "zstd", "zstd frames.", compression="zstd")]
    if era in ("v0", "v0late"):
        unpacked = {"compression": "zstd", "pack": False}
        cases.append(stored(era, "unpacked", "Plain, chunk rows not packed.", pack=False))
        cases.append(stored(era, "zstd-unpacked", "zstd frames, chunk rows not packed.", **unpacked))
    return cases


KINDS = (
    *(multi_turn, tools, malformed, reasoning, unicode, torture),
    *(settings, empty, retries, cancel, no_request),
)
CASES = [kind(era) for era in ERAS for kind in KINDS] + [c for era in ERAS for c in _storage(era)]
