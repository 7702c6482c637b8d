"""Native and foreign assistant messages: which signatures of the log reach pi-ai again.

Source: wire-pi-ai 4.2; dsh-llm-pi-ai 0.1.0-rc.8 replay.
"""

from __future__ import annotations

from collections.abc import Callable

from dsh_audit.events import Json, as_object
from dsh_audit.text import ecma
from dsh_audit.wire.pi.neutral import Assistant, Block, Call, Text, Thinking
from dsh_audit.wire.pi.versions import PiRules

FOREIGN = "dsh-foreign"
_STOP_REASONS = ("stop", "length", "toolUse", "error", "aborted")
_TYPES = ("text", "reasoning", "tool-call")
_SIGNATURES = ("textSignature", "thinkingSignature", "thoughtSignature")
_RESPONSE_TEXTS = ("responseModel", "responseId")


def parse_arguments(text: str) -> dict[str, Json]:
    """The arguments of a call; anything but a JSON object counts as an empty one."""
    try:
        value = ecma.parse(text)
    except ecma.EcmaSyntaxError:
        return {}
    return value if isinstance(value, dict) else {}


def neutral_assistant(
    message: dict[str, Json], seq: int | None, owns: Callable[[str], bool], rules: PiRules
) -> Assistant:
    """Convert one assistant message: with its replay state when that can be used, else as a foreign one."""
    source = as_object(message.get("source"))
    content = message["content"]
    if _is_of_model(source, rules) and owns(source["provider"]):
        state = as_object(source.get("replayState"))
        if _is_usable(state, source, content, rules):
            return _native(content, state, seq, rules)
    return _foreign(content, source, seq, rules)


def _native(content: list[dict[str, Json]], state: dict[str, Json], seq: int | None, rules: PiRules) -> Assistant:
    response = state["response"]
    model = response["model"]
    if rules.names_response_model and response["api"] == "anthropic-messages":
        model = response.get("responseModel", model)
    level = response.get("providerThinkingLevel") if rules.managed_effort != "no" else None
    blocks = tuple(_block(block, replay) for block, replay in zip(content, state["blocks"], strict=True))
    return Assistant(blocks, response["api"], response["provider"], model, response["stopReason"], seq, level)


def _is_of_model(source: dict[str, Json], rules: PiRules) -> bool:
    """Whether the source names a provider and a model; the adapter over 1.3.0 no longer looks at its kind."""
    return source.get("kind") == "model" or (rules.has_transcripts and {"provider", "model"} <= source.keys())


def _foreign(
    content: list[dict[str, Json]], source: dict[str, Json], seq: int | None, rules: PiRules
) -> Assistant:
    blocks = tuple(_block(block, {}) for block in content if block.get("type") in _TYPES)
    is_model = _is_of_model(source, rules)
    provider = source["provider"] if is_model else FOREIGN
    model = source["model"] if is_model else FOREIGN
    return Assistant(blocks, FOREIGN, provider, model, "stop", seq)


def _block(block: dict[str, Json], replay: dict[str, Json]) -> Block:
    match block["type"]:
        case "text":
            return Text(block["text"], replay.get("textSignature"))
        case "reasoning":
            return Thinking(block["text"], replay.get("thinkingSignature"), replay.get("redacted") is True)
        case _:
            arguments = parse_arguments(block["arguments"])
            signature, namespace = replay.get("thoughtSignature"), replay.get("namespace")
            return Call(block["id"], block["name"], arguments, signature, namespace)


def _is_usable(state: dict[str, Json], source: dict[str, Json], content: list[dict[str, Json]], rules: PiRules) -> bool:
    if not _is_response(state.get("response"), source, rules):
        return False
    blocks = state.get("blocks")
    return (
        isinstance(blocks, list)
        and all(_is_replay_block(block, rules) for block in blocks)
        and len(blocks) == len(content)
        and all(replay["type"] == block.get("type") for replay, block in zip(blocks, content, strict=True))
    )


def _is_response(response: Json, source: dict[str, Json], rules: PiRules) -> bool:
    if not isinstance(response, dict):
        return False
    version = response.get("version")
    level = () if rules.managed_effort == "no" else ("providerThinkingLevel",)
    return (
        response.get("kind") == "pi-ai"
        and version == 2
        and not isinstance(version, bool)
        and all(isinstance(response.get(key), str) and response[key] for key in ("api", "provider", "model"))
        and response.get("stopReason") in _STOP_REASONS
        and all(isinstance(response.get(key, ""), str) for key in (*_RESPONSE_TEXTS, *level))
        and response["provider"] == source["provider"]
        and response["model"] == source["model"]
    )


def _is_replay_block(block: Json, rules: PiRules) -> bool:
    namespace = ("namespace",) if rules.has_transcripts else ()
    return (
        isinstance(block, dict)
        and block.get("type") in _TYPES
        and all(isinstance(block.get(key, ""), str) for key in (*_SIGNATURES, *namespace))
        and isinstance(block.get("redacted", False), bool)
    )
