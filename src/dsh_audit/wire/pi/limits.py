"""The output limit, which pi-ai always sends, and the estimate that lowers it.

Source: wire-pi-ai 4.4, 6.3; pi-ai 0.82.1 utils/estimate, api/simple-options.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.neutral import Assistant, Call, Context, Message, Part, System, Text, ToolResult, User
from dsh_audit.wire.pi.versions import PiRules

SAFETY_TOKENS = 4096
IMAGE_UNITS = 4800
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384}


def message_tokens(message: Message, rules: PiRules) -> int:
    """The estimate of one message, before the history transform."""
    if not isinstance(message, System):
        return tokens_of(message_units(message), rules)
    removed = [{"name": name} for name in message.removed]
    sizes = (ecma.length(message.text), json_units(message.added), json_units(removed))
    return sum(tokens_of(size, rules) for size in sizes)


def tokens_of(units: int, rules: PiRules) -> int:
    """Tokens in some UTF-16 code units, rounded up."""
    return ceil(units / rules.units_per_token)


def json_units(tools: Sequence[Json]) -> int:
    """UTF-16 code units of the JSON text of a list of tools; 0 when it is empty."""
    return ecma.length(ecma.stringify_text(list(tools))) if tools else 0


def message_units(message: User | Assistant | ToolResult) -> int:
    """The UTF-16 code units that the estimate counts for one message."""
    if not isinstance(message, Assistant):
        content = message.content
        return ecma.length(content) if isinstance(content, str) else _parts_units(content)
    units = 0
    for block in message.blocks:
        if isinstance(block, Call):
            units += ecma.length(block.name) + ecma.length(ecma.stringify_text(block.arguments))
        else:
            units += ecma.length(block.text)
    return units


def _parts_units(parts: tuple[Part, ...]) -> int:
    return sum(ecma.length(part.text) if isinstance(part, Text) else IMAGE_UNITS for part in parts)


class OutputLimit:
    """The limits of one request."""

    def __init__(self, model: dict[str, Json], context: Context) -> None:
        self._declared: int = model["maxTokens"]
        self._room: int = max(1, model["contextWindow"] - context.tokens - SAFETY_TOKENS)

    def plain(self, logged: int | None) -> int:
        """The limit without a thinking budget (M of the spec)."""
        wanted = self._declared if logged is None else logged
        return min(wanted, self._room)

    def with_budget(self, logged: int | None, effort: str, budgets: dict[str, Json]) -> tuple[int, int]:
        """(max_tokens, thinking budget) of a budget-based thinking request."""
        budget = thinking_budget(effort, budgets)
        wanted = min(self.plain(logged) + budget, self._declared)
        if wanted <= budget:
            budget = max(0, wanted - 1024)
        limit = min(wanted, self._room)
        return limit, min(budget, max(0, limit - 1024)) or 1024


def thinking_budget(effort: str, budgets: dict[str, Json]) -> int:
    """The budget of a level: configured, else pi-ai's own; the two highest count as high."""
    level = "high" if effort in ("xhigh", "max") else effort
    budget: int = {**_BUDGETS, **budgets}[level]
    return budget


def answer_budget(effort: str, budgets: dict[str, Json], ceiling: int) -> int | None:
    """The budget that leaves 1024 tokens under a shared limit for the answer; None when nothing is left."""
    budget = min(thinking_budget(effort, budgets), max(0, ceiling - 1024))
    return budget if budget > 0 else None
