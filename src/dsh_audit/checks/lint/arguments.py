"""Arguments of tool calls that are no JSON, and what each protocol sends in their place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.history import HistoryObserver, calls_of
from dsh_audit.checks.lint.model import Check, Facts, Issue, Sent, names
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules

_WIRE = (("chat completions", "them verbatim"), ("Messages", "{}"), ("llm-pi-ai", "{}"))


@dataclass(slots=True)
class ArgumentsFold:
    """The calls of one history whose arguments are no JSON."""

    found: list[Issue] = field(default_factory=list)

    def node(self, seq: int, message: dict[str, Json]) -> None:
        """The next message."""
        for place, block in calls_of(message):
            problem = _problem(block.get("arguments"))
            if problem is not None:
                call_id, tool = str(block.get("id", "")), str(block.get("name", ""))
                what = f"the arguments of the call {call_id!r} of {tool} are {problem}"
                named = names(call=call_id, tool=tool)
                pointer = f"/message/content/{place}/arguments"
                self.found.append(Issue(rules.ARGUMENTS, "arguments", what, seq, pointer, named, _WIRE))

    def issues(self, sent: Sent) -> Iterable[Issue]:
        """What was found."""
        return self.found


def _problem(arguments: Json) -> str | None:
    if not isinstance(arguments, str):
        return "no text"
    if not arguments.strip(" \t\r\n"):
        return None
    try:
        json.loads(arguments, parse_int=str, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        at = f" ({error.msg} at {error.pos})" if isinstance(error, json.JSONDecodeError) else ""
        return f"no JSON{at}"
    return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _observe(facts: Facts) -> HistoryObserver:
    return HistoryObserver(facts, ArgumentsFold)


CHECK = Check("arguments", "pass", _observe)
