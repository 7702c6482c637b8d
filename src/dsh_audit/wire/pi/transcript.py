"""Tools and system prompt as a transcript: what pi-ai 1.3.0 makes of changes in the middle of the history.

A model either takes system messages in place (``native``), or all changes are folded into the leading prompt
and the tool list. Tool names are unique either way. Source: pi-ai 1.3.0 utils/transcript.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.pi.neutral import Context, System
from dsh_audit.wire.pi.versions import PiRules


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a protocol is told of a context.

    Args:
        system: the leading prompt.
        tools: those in force at the end.
        head_tools: the tools declared before the first message.
        is_additive: no tool was declared twice and none was removed.
        skips_first: the first message has become the prompt.
        drops_system: later system messages have been folded into the prompt and the tools.
    """

    system: str | None
    tools: tuple[dict[str, Json], ...]
    head_tools: tuple[dict[str, Json], ...]
    is_additive: bool = True
    skips_first: bool = False
    drops_system: bool = False


def resolve_transcript(context: Context, rules: PiRules, *, native: bool) -> Transcript:
    """Fold what the target does not take in place.

    Args:
        native: whether the target takes system messages in the middle.
    """
    if not rules.has_transcripts:
        return Transcript(context.system, context.tools, context.tools)
    head, changes = System(context.system or "", context.tools), context.changes
    # Without prompt and tools, a system message that comes first is the head.
    skips_first = not (context.system or context.tools) and isinstance(next(iter(context.messages), None), System)
    if skips_first:
        head, changes = System(changes[0].text, changes[0].added), changes[1:]
    tools = current_tools([head, *changes])
    if native:
        system = head.text if skips_first else context.system
        return Transcript(system, tools, head.added, _is_additive([head, *changes]), skips_first)
    texts = (message.text for message in (head, *changes) if message.text)
    return Transcript(ecma.join(["\n\n".join(texts)]), tools, tools, True, skips_first, True)


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
