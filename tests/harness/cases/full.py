"""Kinds that show the harness as shipped: full profile, bundled tools, prompts and titles. Never recorded."""

from __future__ import annotations

from typing import Any

from tests.harness.cases.basic import ECHO, call, case, texts
from tests.harness.cases.history import resumed

Json = Any

SCOPE = "@deepseek-ai/"


def full_profile(era: str) -> Json:
    """The full profile: bundled tools beside a toy tool, children by the bundled delegation tools, a resume."""
    script: list[Json] = [
        {"reasoning": "Look around.", "tools": [call("echo", {"n": 1}), call("todo_write", {"todos": []})]},
        {"text": "Looked."},
        {"tools": [call("subagent", {"description": "Count", "prompt": "Count the houses for me"})]},
        {"when": "Count the houses", "text": "Three houses."},
        {"tools": [call("subagent_fork", {"description": "Dig", "prompt": "Dig the well for me"})]},
        {"when": "Dig the well", "text": "Dug."},
        *texts("All done.", "Back.", "Spare.", "Spare."),
    ]
    do = [["prompt", "look around"], ["prompt", "send them"]]
    more = {"profile": "sdk", "state": {"tools": [ECHO], "system": "The village has three houses."}}
    again = resumed(era, [["prompt", "back?"]])
    return _fresh(case(era, "full-profile", "The full profile.", script, do, again, leftover=True, **more))


def bundled_title(era: str, automatic: str) -> Json:
    """Titles by the bundled plugins."""
    config = {"maxInputBytes": 4096, "maxOutputTokens": 64, "timeoutMs": 60000, "targetWords": 5}
    config["targetCjkCharacters"] = 10
    plugin = {"id": "title-llm", "name": f"{SCOPE}dsh-session-title-{automatic}-llm", "config": config}
    do = [["prompt", "Name this \u4f1a\u8bdd"], ["sleep", 0.5], ["prompt", "And this"], ["sleep", 0.5], ["title"]]
    script = [{"to": "title", "text": "A village"}, {"to": "title", "text": "Two villages"}, *texts("One.", "Two.")]
    phase = {"do": do, "insert": [plugin]}
    return _fresh(case(era, f"bundled-title-{automatic}", "Bundled titles.", script, phase, leftover=True))


def logged_upload(era: str, packages: bool) -> Json:
    """The extension fields set apart from their defaults: the log field on, the package list on or off."""
    rows = {
        "session-log-deepseek": {"config": {"enabled": True}},
        "plugin-package-inventory-deepseek": {"config": {"enabled": packages}},
    }
    script: list[Json] = [
        {"tools": [call("echo", {"n": 1})]},
        *texts("One.", "Two."),
        {"status": 500},
        *texts("Three."),
    ]
    phases = [{"do": [["prompt", "one"], ["prompt", "two"]], "rows": rows}]
    phases.append({**resumed(era, [["prompt", "three"]]), "rows": rows})
    name = "upload" if packages else "upload-alone"
    return case(era, name, "The log field in requests.", script, *phases, state={"tools": [ECHO]}, leftover=True)


def no_fields(era: str) -> Json:
    """Both extension fields off."""
    rows = {
        "session-log-deepseek": {"config": {"enabled": False}},
        "plugin-package-inventory-deepseek": {"config": {"enabled": False}},
    }
    phase = {"do": [["prompt", "one"], ["prompt", "two"]], "rows": rows}
    return case(era, "no-fields", "No extension fields.", texts("One.", "Two."), phase)


def _fresh(made: Json) -> Json:
    return {**made, "fresh_only": True}


CASES = [
    *(full_profile(era) for era in ("v0late", "v3", "v4")),
    *(bundled_title("v4", automatic) for automatic in ("first-prompt", "all-prompts")),
    *(logged_upload(era, packages) for era in ("v0late", "v3") for packages in (True, False)),
    logged_upload("v4", False),
    *(no_fields(era) for era in ("v0late", "v3", "v4")),
]
