"""Tool definitions of an Anthropic Messages body, and the tool names of Claude Code.

Source: wire-pi-ai 6.3; pi-ai 0.82.1 and 1.3.0 api/anthropic-messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsh_audit.events import Json
from dsh_audit.wire.pi.refusal import no_request
from dsh_audit.wire.pi.settings import Settings, compat_flag

PLACEHOLDER: Json = {
    "name": "__pi_deferred_placeholder__",
    "description": "Reserved placeholder. Never available. Never call this.",
    "input_schema": {"type": "object", "properties": {}, "required": []},
    "defer_loading": True,
}
"""Follows the tools of a request whose tools may change in the history."""

_CLAUDE_TOOLS = {
    name.lower(): name
    for name in (
        *(
            "Read",
            "Write",
            "Edit",
            "Bash",
            "Grep",
            "Glob",
            "AskUserQuestion",
            "EnterPlanMode",
            "ExitPlanMode",
        ),
        *("KillShell", "NotebookEdit", "Skill", "Task", "TaskOutput", "TodoWrite", "WebFetch", "WebSearch"),
    )
}


class ToolPrinter:
    """Prints definitions for one request."""

    def __init__(self, settings: Settings) -> None:
        self._is_oauth = settings.is_oauth
        self._is_unique = settings.rules.has_transcripts
        is_eager = compat_flag(settings.compat, "supportsEagerToolInputStreaming", True)
        self._eager = {"eager_input_streaming": True} if is_eager else {}

    def name(self, name: str) -> str:
        """The name on the wire: an OAuth request takes the spelling of Claude Code."""
        return _CLAUDE_TOOLS.get(name.lower(), name) if self._is_oauth else name

    def definitions(self, tools: Sequence[dict[str, Json]], marker: dict[str, Json] | None) -> list[Json]:
        """The definitions, the marker on the last one."""
        named = [(self.name(tool["name"]), tool) for tool in tools]
        if not self._is_unique:
            # Duplicate names: the first place, the last definition.
            named = list({name: (name, tool) for name, tool in named}.values())
        printed = [self._definition(name, tool) for name, tool in named]
        if marker is not None and printed:
            printed[-1]["cache_control"] = marker
        return printed

    def _definition(self, name: str, tool: dict[str, Json]) -> dict[str, Json]:
        if not isinstance(tool.get("parameters"), dict):
            raise no_request(f"tool {name!r} has no parameters")
        described = {"description": tool["description"]} if "description" in tool else {}
        return {"name": name, **described, **self._eager, "input_schema": _schema(tool["parameters"])}


def _schema(parameters: dict[str, Json]) -> dict[str, Json]:
    """Only the properties and the required names of a schema are sent."""
    properties, required = parameters.get("properties"), parameters.get("required")
    return {
        "type": "object",
        "properties": {} if properties is None else properties,
        "required": [] if required is None else required,
    }
