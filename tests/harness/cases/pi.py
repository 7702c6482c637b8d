"""Routes of the adapter llm-pi-ai: one session that goes from protocol to protocol."""

from __future__ import annotations

from typing import Any

from tests.harness.cases.basic import BOOM, ECHO, ERAS, call, case
from tests.harness.cases.history import resumed

Json = Any

EFFORTS = {"off": None, "low": "low", "high": "high"}
ROUTES = {
    "toy-chat": ("openai-completions", "{loopback}/v1"),
    "toy-responses": ("openai-responses", "{loopback}/v1"),
    "toy-claude": ("anthropic-messages", "{loopback}"),
}


def routes(api_window: int = 60000) -> Json:
    """The adapter with one hand-declared route a protocol."""
    models = [
        {"id": "toy-think", "contextWindow": api_window, "maxTokens": 4096, "reasoningEfforts": EFFORTS},
        {"id": "toy-plain", "contextWindow": api_window, "maxTokens": 2048},
    ]
    providers = {
        name: {"api": api, "baseURL": url, "apiKeyEnv": "TOY_KEY", "models": models}
        for name, (api, url) in ROUTES.items()
    }
    providers["toy-claude"]["cacheRetention"] = "long"
    return {"id": "llm-pi-ai", "name": "@deepseek-ai/dsh-llm-pi-ai", "config": {"providers": providers}}


def protocols(era: str) -> Json:
    """Chat completions, Responses, Messages and the DeepSeek adapter in turn, on the same history."""
    script: list[Json] = [
        {
            "reasoning": "Two errands.",
            "text": "On my way.",
            "tools": [call("echo", {"10": 1, "b": 1.0}), call("boom", {})],
        },
        {"text": "Done with the first."},
        {"reasoning": "Another way.", "tools": [call("echo", {"again": True}, 2)]},
        {"text": "Done with the second."},
        {"reasoning": "A third way.", "text": "Hm.", "tools": [call("echo", {"last": None}, 3)]},
        {"text": "Done with the third."},
        {"text": "All is done."},
    ]
    shared = {"insert": [routes()], "env": {"TOY_KEY": "sk-toy"}}
    phases = [
        {**shared, "provider": "toy-chat", "model": "toy-think", "effort": "high", "do": [["prompt", "First errand"]]},
        {
            **shared,
            "provider": "toy-responses",
            "model": "toy-think",
            **resumed(era, [["prompt", "Second errand"]]),
        },
        {
            **shared,
            "provider": "toy-claude",
            "model": "toy-think",
            **resumed(era, [["prompt", "Third errand"]]),
        },
        {**shared, "provider": "toy-chat", "model": "toy-plain", **resumed(era, [["prompt", "Last errand"]])},
    ]
    state = {"tools": [ECHO, BOOM], "system": "The village has three houses."}
    shows = "One session over every protocol of llm-pi-ai."
    profiles = routes()["config"]["providers"]
    known = {name: {"adapter": "llm-pi-ai", "profile": profile} for name, profile in profiles.items()}
    deployment = {"providers": known}
    return case(era, "pi-protocols", shows, script, *phases, state=state, deployment=deployment)


CASES = [protocols(era) for era in ERAS]
