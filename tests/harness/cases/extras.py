"""Kinds beside the steps: titles, web search, migration by a later release, other adapters' routes."""

from __future__ import annotations

from typing import Any

from tests.harness.cases.basic import ECHO, ERAS, HARNESS, RETRIES, call, case, texts

Json = Any

SCOPE = "@deepseek-ai/"


def title(era: str, automatic: str) -> Json:
    """A plugin asks for titles; one answer fails."""
    script: list[Json] = [
        *texts("One.", "Two.", "Three."),
        {"to": "title", "text": "Errands in the village"},
        {"to": "title", "status": 400},
        {"to": "title", "text": "More errands"},
    ]
    setting = {"system": "Name this in three words.", "maxTokens": 64, "automatic": automatic}
    do: list[Json] = [["prompt", "First \u4f1a\u8bdd"], ["sleep", 0.4], ["prompt", "Second"], ["sleep", 0.4]]
    do += [["title"], ["prompt", "Third"], ["sleep", 0.4], ["title"]]
    more = {"state": {"title": setting}, "leftover": True}
    return case(era, f"title-{automatic}", "Session titles by the model.", script, do, **more)


def search(era: str) -> Json:
    """A tool searches the web through the harness's own provider, twice."""
    tool = {"name": "look", "description": "Look it up.", "does": "search"}
    found = {"type": "web_search_result", "url": "http://well.test/", "title": "Wells", "encrypted_content": "toy"}
    result = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [found]}
    answer = {"id": "msg_s", "type": "message", "role": "assistant", "model": "toy", "stop_reason": "end_turn"}
    said = {"type": "text", "text": "Wells are deep."}
    usage = {"input_tokens": 5, "output_tokens": 5}
    found_too: Json = {"json": {**answer, "content": [result, said], "usage": usage}}
    # Later releases answer a failed search with advice in their own words, which no recorded body may hold.
    failing = found_too if era == "v4" else {"status": 500}
    script: list[Json] = [
        {"tools": [call("look", {"query": "how deep is a \u201cwell\u201d?"}), call("look", {"query": "houses"}, 2)]},
        {"text": "Deep."},
        {"to": "search", "when": "well", "json": {**answer, "content": [result, said], "usage": usage}},
        {"to": "search", "when": "houses", **failing},
    ]
    inserted = [
        {"id": "web", "name": f"{SCOPE}dsh-web"},
        {
            "id": "web-search",
            "name": f"{SCOPE}dsh-web-search-deepseek",
            "config": {"baseURL": "{loopback}/search/v1", "apiKeyEnv": "DEEPSEEK_API_KEY"},
        },
    ]
    phase = {"do": [["prompt", "How deep?"]], "insert": inserted}
    return case(era, "search", "Web search by the harness's provider.", script, phase, state={"tools": [tool]})


def migrated(first: str, second: str, compression: str) -> Json:
    """A session begun by one release and continued by a later one."""
    odd = "caf\u00e9 \U0001f600 \u2028"
    script: list[Json] = [
        {"reasoning": "Thinking.", "text": f"One {odd}", "tools": [call("echo", {"n": 1}), call("boom", {})]},
        *texts("Done one.", "Two."),
        {"text": "Cut here", "hang_after": 3},
        *texts("Three."),
        {"tools": [call("echo", {"n": 2})]},
        *texts("Four.", "Five."),
    ]
    boom = {"name": "boom", "does": "fail", "message": "kaput"}
    during = {"hanging": [["cancel"], ["sleep", 0.3]]}
    do = [["prompt", "one"], ["prompt", "two"], ["prompt", "cut", "sess-1", during], ["prompt", "three"]]
    resumed: Json = {"do": [["prompt", "four"], ["prompt", "five"]], "runtime": ERAS[second]}
    if second == "v4":
        resumed["do"].insert(0, ["resume", "sess-1"])
    else:
        resumed["resume"] = ["sess-1"]
    state = {"tools": [ECHO, boom], "system": "The village has three houses."}
    made = case(first, "x", "A session continued by a later release.", script, do, resumed, state=state)
    name = f"mig-{first}-{second}" + ("" if compression == "none" else f"-{compression}")
    return {**made, "case": name, "compression": compression}


PI_APIS = {"completions": "openai-completions", "responses": "openai-responses", "anthropic": "anthropic-messages"}


def pi(era: str, protocol: str) -> Json:
    """Turns, tools, reasoning and a retry over a route of the second adapter."""
    efforts = {"off": None, "low": "low", "high": "high"}
    think = {"id": "toy-think", "name": "Toy Think", "contextWindow": 65536, "maxTokens": 4096}
    plain = {"id": "toy-plain", "name": "Toy Plain", "contextWindow": 32768, "maxTokens": 2048}
    models = [{**think, "reasoningEfforts": efforts}, {**plain, "reasoningEfforts": False}]
    route: Json = {
        "api": PI_APIS[protocol],
        "baseURL": "{loopback}" + ("" if protocol == "anthropic" else "/v1"),
        "apiKeyEnv": "TOY_KEY",
        "models": models,
        "retryPolicy": RETRIES,
    }
    script: list[Json] = [
        {
            "reasoning": "The well first.",
            "text": "Going.",
            "tools": [call("echo", {"10": 1, "a": 1.0}), call("boom", {})],
        },
        {"text": "Back \U0001f600."},
        {"status": 500},
        {"text": "Second."},
        {"reasoning": ["Only ", "thought."], "text": "Third."},
        {"text": "Plain."},
    ]
    boom = {"name": "boom", "does": "fail", "message": "kaput"}
    do = [
        ["prompt", "one \u2028"],
        ["prompt", "two"],
        ["state", {"config": {"reasoningEffort": "high", "temperature": 0.5}}],
        ["prompt", "three"],
        ["state", {"config": {"model": "toy-plain", "reasoningEffort": None}}],
        ["prompt", "four"],
    ]
    adapter = {"id": "llm-pi-ai", "name": f"{SCOPE}dsh-llm-pi-ai", "config": {"providers": {"toy": route}}}
    phase = {"do": do, "insert": [adapter], "env": {"TOY_KEY": "sk-toy-pi"}, "provider": "toy", "model": "toy-think"}
    told = {**route, "baseURL": route["baseURL"].replace("{loopback}", "http://127.0.0.1:1")}
    known = {"adapter": "llm-pi-ai", "profile": told}
    deployment = {"harness": {"version": HARNESS[era]}, "providers": {"toy": known}}
    more = {
        "state": {"tools": [ECHO, boom], "system": "The village has three houses."},
        "leftover": True,
        "deployment": deployment,
    }
    return case(era, f"pi-{protocol}", "A route of the second adapter.", script, phase, **more)


CASES = [
    *(title(era, automatic) for era in ("v0", "v4") for automatic in ("first-prompt", "all-prompts")),
    *(search(era) for era in ("v0", "v4")),
    *(migrated("v0late", later, how) for later in ("v3", "v4") for how in ("none", "zstd")),
    migrated("v3", "v4", "none"),
    *(pi(era, protocol) for era in ERAS for protocol in PI_APIS),
]
