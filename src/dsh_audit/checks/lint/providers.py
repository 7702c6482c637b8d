"""What providers refuse, in their own words, with where that is known from.

The key is a family: ``chat`` (DeepSeek chat completions and what is compatible with it), ``messages`` (Anthropic
Messages, also DeepSeek's), ``moonshot``. Adapter llm-pi-ai closes open calls itself and sends ``{}`` for arguments
that are no object, so nothing of that reaches a provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dsh_audit.record import dataclass
from dsh_audit.releases import rules_of


@dataclass(frozen=True, slots=True)
class Known:
    """One provider's refusal.

    Args:
        error: what it answers; status first.
        source: report or document that shows it.
    """

    error: str
    source: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """All that is known about one kind of defect.

    Args:
        pattern: what a logged failure says that is about it.
        advice: what a person can do.
        by: family → its refusal.
    """

    pattern: str
    advice: str
    by: Mapping[str, Known] = field(default_factory=dict)


_PAIRS = "400 an assistant message with tool_calls must be followed by tool messages for each tool_call_id"
_BLOCKS = "400 tool_use ids were found without tool_result blocks immediately after"
_FORK = "fork the session from a turn before the named event, or compact past it"

REFUSALS: Mapping[str, Refusal] = {
    "open-call": Refusal(
        "tool_call|tool_use|tool_result|tool message",
        _FORK,
        {"chat": Known(_PAIRS, "dsh#1544"), "messages": Known(_BLOCKS, "dsh#3524")},
    ),
    "stray-result": Refusal(
        "tool_call|tool_use|tool_result|role 'tool'|tool message",
        _FORK,
        {
            "chat": Known("400 messages with role tool must follow a message with tool_calls", "dsh#1841"),
            "messages": Known("400 unexpected tool_use_id found in tool_result blocks", "dsh#3415"),
        },
    ),
    "repeated-call": Refusal(
        "unique|duplicate|repeats|tool_use|tool_call",
        _FORK,
        {"messages": Known("400 tool_use ids must be unique", "dsh#4843")},
    ),
    "interposed": Refusal("tool_call|tool message", _FORK, {"chat": Known(_PAIRS, "dsh#1544")}),
    "empty-call": Refusal(
        "tool_call|tool_use|name|id",
        _FORK,
        {
            "chat": Known("400 tool call without an id or a function name", "dsh#1544"),
            "messages": Known("400 tool_use.id and name must not be empty", "dsh#3415"),
        },
    ),
    "arguments": Refusal("argument|json|input", "nothing while the route accepts it; another route may not", {}),
    "tool-schema": Refusal(
        "schema|parameters|tools?[.\\[]",
        "give the tool parameters of type object, or switch the plugin off that registers it",
        {
            "chat": Known(
                "400 invalid schema for function: schema must be a JSON Schema of type object",
                "Vizards/deepseek-v4-for-copilot#280",
            ),
            "messages": Known("400 tools.N.input_schema: field required", "Vizards/deepseek-v4-for-copilot#280"),
        },
    ),
    "reasoning-missing": Refusal(
        "reasoning|thinking",
        "switch thinking off for this session, or start a new series (compact) on the thinking route",
        {"chat": Known("400 the reasoning_content of a tool turn must be passed back", "anomalyco/opencode#24722")},
    ),
    "reasoning-only": Refusal(
        "empty|content|reasoning|thinking",
        "before a change of provider, fork from before the interrupted answer",
        {"moonshot": Known("400 the assistant message must not be empty", "MoonshotAI/kimi-code#1404, #2804")},
    ),
    "image": Refusal(
        "image|vision|modalit|multimodal",
        "go back to a model that sees images, or fork from before the image",
        {},
    ),
    "tool-change": Refusal(
        "tool", "fork from before the tool change, or start a new session with the tools that are needed", {}
    ),
}


def family_of(route: str | None, release: str, protocol: str) -> str:
    """The family that answers.

    Args:
        route: the asked one; None for that of the log.
        release: that would send to it; it decides what is spoken to DeepSeek.
        protocol: of the requests in the log.
    """
    name = (route or "").lower()
    if "moonshot" in name or "kimi" in name:
        return "moonshot"
    if "anthropic" in name or "claude" in name:
        return "messages"
    if "deepseek" in name and (rules := rules_of(release)) is not None:
        return {"chat-completions": "chat"}.get(rules.protocols[0], rules.protocols[0])
    return {"deepseek-chat-completions": "chat", "deepseek-messages": "messages"}.get(protocol, protocol)
