"""Thinking signatures of an assistant message, from the replay state that the adapter stored with it.

Source: spec wire-deepseek 5.3; dsh-llm-deepseek 0.2.1-rc.2, replay.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsh_audit.events import Json

REPLAY_KIND = "deepseek-messages"
_BLOCK_TYPES = ("text", "reasoning", "tool-call")


def replay_kind(message: Json) -> str | None:
    """``response.kind`` of an assistant message's replay state: which adapter and protocol wrote it."""
    source = message.get("source") if isinstance(message, dict) else None
    state = source.get("replayState") if isinstance(source, dict) else None
    response = state.get("response") if isinstance(state, dict) else None
    kind = response.get("kind") if isinstance(response, dict) else None
    return kind if isinstance(kind, str) else None


def read_signatures(message: dict[str, Json], model: str) -> Sequence[str | None]:
    """The signature of each content block, None where it has none; empty when the state is unusable.

    Any defect of the state discards all signatures of the message. An empty string is a signature.

    Args:
        message: of role assistant.
        model: the model that is called now; signatures of another model are not sent.
    """
    if replay_kind(message) != REPLAY_KIND:
        return ()
    source = message["source"]
    state, response = source["replayState"], source["replayState"]["response"]
    blocks, content = state.get("blocks"), message["content"]
    if source.get("kind") != "model" or response.get("version") != 1 or isinstance(response["version"], bool):
        return ()
    if response.get("model") != source.get("model") or not isinstance(blocks, list):
        return ()
    if len(blocks) != len(content) or not all(map(_fits, blocks, content)):
        return ()
    return [block.get("signature") for block in blocks] if response.get("model") == model else ()


def _fits(block: Json, logged: Json) -> bool:
    if not isinstance(block, dict) or not isinstance(logged, dict):
        return False
    if block.get("type") != logged.get("type") or block.get("type") not in _BLOCK_TYPES:
        return False
    if "signature" not in block:
        return True
    return block["type"] == "reasoning" and isinstance(block["signature"], str)
