"""The neutral context of pi-ai: what the adapter makes of harness messages before any protocol sees them.

Plain values, no behaviour. ``seq`` names the log event a value comes from; None where there is none.
Source: wire-pi-ai 4.
"""

from __future__ import annotations

from typing import TypeAlias

from dsh_audit.events import Json
from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A text; the signature exists only on assistant texts."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it is sent: base64 text and media type."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A reasoning block."""

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; the arguments are the parsed object, in JavaScript key order."""

    id: str
    name: str
    arguments: dict[str, Json]
    signature: str | None = None
    namespace: str | None = None


Part: TypeAlias = Text | Image
Block: TypeAlias = Text | Thinking | Call


@dataclass(frozen=True, slots=True)
class System:
    """A change of instructions and tools in the middle of the history (pi-ai 1.3.0)."""

    text: str
    added: tuple[dict[str, Json], ...] = ()
    removed: tuple[str, ...] = ()
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A user message: one string, or parts when it holds an image."""

    content: str | tuple[Part, ...]
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Assistant:
    """An assistant message, the model it claims to come from and, if known, the effort behind it."""

    blocks: tuple[Block, ...]
    api: str
    provider: str
    model: str
    stop_reason: str
    seq: int | None = None
    level: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call; ``is_error`` is printed as logged."""

    call_id: str
    name: str
    content: tuple[Part, ...]
    is_error: Json
    seq: int | None = None


Message: TypeAlias = System | User | Assistant | ToolResult


@dataclass(frozen=True, slots=True)
class Context:
    """One request without its settings.

    Args:
        system: the system prompt; None and "" both mean that there is none.
        messages: the history; a later request that extends it has the same list, grown.
        tools: {name, description, parameters} each, in logged order.
        changes: the messages that change instructions and tools; a list like ``messages``.
        tokens: the estimate of all of it.
        has_tool_history: whether a message calls a tool or brings a result.
    """

    system: str | None
    messages: list[Message]
    tools: tuple[dict[str, Json], ...]
    changes: list[System]
    tokens: int
    has_tool_history: bool
