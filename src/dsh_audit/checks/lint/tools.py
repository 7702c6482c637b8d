"""Tool definitions without an object schema, and tool changes that a route refuses for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from dsh_audit.checks.lint.model import Carried, Check, Facts, Issue, Sent, describe_failure, is_refusal, names
from dsh_audit.events import Event, Json, as_list, as_object
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import EventReader
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules
from dsh_audit.text import ecma

_CHANGES = ("tool-addition", "tool-removal")


@dataclass(slots=True)
class ToolObserver:
    """The tools of each request; equal ones are looked at once."""

    facts: Facts
    types: frozenset[str] = frozenset({"developer/message"})
    carried: Carried = field(init=False)
    _change: Issue | None = None
    _tools: Json = None
    _known: list[Issue] = field(default_factory=list)
    _first: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.carried = Carried(self.facts)

    def event(self, event: Event) -> None:
        """A change of tools inside the history."""
        blocks = as_list(as_object(as_object(event.data).get("message")).get("content"))
        changed = [str(block.get("toolName", "")) for block in map(as_object, blocks) if block.get("type") in _CHANGES]
        if changed and self._change is None:
            what = f"the history adds or removes the tool {changed[0]}"
            self._change = Issue(
                rules.TOOL_CHANGE, "tool-change", what, event.seq, "/message/content", names(tool=changed[0])
            )

    def request(self, sent: Sent) -> None:
        """The tools that it offers."""
        request = sent.request
        if request.dispatch.kind != "step" or request.tools is None or request.tools_seq is None:
            return
        if request.tools is not self._tools:
            self._tools, self._known = request.tools, list(self._issues(request.tools, request.tools_seq))
        for issue in self._known:
            self.carried.add(issue, sent)
        failure = request.dispatch.failure
        said = describe_failure(failure).lower()
        is_known = any("schema" in said or "parameters" in said for _ in self._known)
        if self._change is not None and is_refusal(failure) and "tool" in said and not is_known:
            self.carried.add(self._change, sent)

    def _issues(self, tools: list[Json], seq: int) -> Iterator[Issue]:
        for place, tool in enumerate(map(as_object, tools)):
            problem, rest = _problem(tool)
            if problem is not None:
                name = str(tool.get("name", ""))
                first = self._first.setdefault((name, problem), seq)
                pointer = f"/header/tools/{place}{rest}"
                what = f"the tool {name} has no object schema ({problem})"
                yield Issue(rules.TOOL_SCHEMA, "tool-schema", what, first, pointer, names(tool=name))

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """One finding a tool."""
        return self.carried.findings()


def _problem(tool: dict[str, Json]) -> tuple[str | None, str]:
    """What is wrong with the parameters, and where it stands below the tool."""
    if "parameters" not in tool:
        return "parameters are missing", ""
    schema = tool["parameters"]
    if not isinstance(schema, dict):
        return f"parameters are {ecma.stringify_text(schema)}", "/parameters"
    kind = schema.get("type", "object")
    return (None, "") if kind == "object" else (f"its type is {ecma.stringify_text(kind)}", "/parameters/type")


CHECK = Check("tools", "pass", ToolObserver)
