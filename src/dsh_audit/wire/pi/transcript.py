"""Tools and system prompt as a transcript: what pi-ai 1.3.0 makes of changes in the middle of the history.

A model either takes system messages in place (``native``), or all changes are folded into the leading prompt
and the tool list. Tool names are unique either way. Source: pi-ai 1.3.0 utils/transcript.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.pi.neutral import Context, Message, System
from dsh_audit.wire.pi.versions import PiRules


@dataclass(frozen=True, slots=True)
class Transcript:
    """A context ready for a protocol.

    Args:
        context: its tools are those in force at the end; later system messages only where the model takes
            them.
        head_tools: the tools declared before the first message.
        is_additive: no tool was declared twice and none was removed.
    """

    context: Context
    head_tools: tuple[dict[str, Json], ...]
    is_additive: bool


def resolve_transcript(context: Context, rules: PiRules, *, native: bool) -> Transcript:
    """Fold what the target does not take in place.

    Args:
        native: whether the target takes system messages in the middle.
    """
    if not rules.has_transcripts:
        return Transcript(context, context.tools, True)
    promoted = _promote(context)
    changes = [message for message in promoted.messages if isinstance(message, System)]
    head = System(promoted.system or "", promoted.tools)
    tools = current_tools([head, *changes])
    if native:
        folded = Context(promoted.system, promoted.messages, tools)
        return Transcript(folded, promoted.tools, _is_additive([head, *changes]))
    texts = (message.text for message in (head, *changes) if message.text)
    rest: tuple[Message, ...] = tuple(m for m in promoted.messages if not isinstance(m, System))
    return Transcript(Context(ecma.join(["\n\n".join(texts)]), rest, tools), tools, True)


def _promote(context: Context) -> Context:
    """Without prompt and tools, a system message that comes first is the head."""
    first = context.messages[0] if context.messages else None
    if context.system or context.tools or not isinstance(first, System):
        return context
    return Context(first.text, context.messages[1:], first.added)


def current_tools(changes: Iterable[System]) -> tuple[dict[str, Json], ...]:
    """The tools after all changes: the first place, the last definition of a name."""
    tools: dict[str, dict[str, Json]] = {}
    for change in changes:
        for name in change.removed:
            tools.pop(name, None)
        tools |= {tool["name"]: tool for tool in change.added}
    return tuple(tools.values())


def _is_additive(changes: Iterable[System]) -> bool:
    names: set[str] = set()
    for change in changes:
        if change.removed:
            return False
        for tool in change.added:
            if tool["name"] in names:
                return False
            names.add(tool["name"])
    return True
