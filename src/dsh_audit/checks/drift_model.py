"""Results of the drift check: header changes and their report."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import Any, ClassVar, Literal

from dsh_audit.checks.prompt_diff import TextChange
from dsh_audit.checks.tool_diff import ToolsChange
from dsh_audit.checks.volatile import Kind
from dsh_audit.events import Json
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import SessionLog
from dsh_audit.record import dataclass

Part = Literal["config", "system", "tools"]
Placement = Literal["head", "in-history"]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting that changed; None where it is absent.

    Args:
        name: as in ``header.config``, or ``adapterDefaults.<name>``.
    """

    name: str
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class HeaderChange:
    """The differences between the request headers of two step requests.

    Args:
        request: index of the later request.
        previous: index of the earlier one.
        turn, step: of the later request.
        seq: the event that brought the change: the ``request/header``, or the ``system/message`` where only the
            prompt changed.
        seqs: that event for each changed part.
        reason: as logged (``initial``, ``resume``, ``change``, ``series``); ``change`` without a header event.
        parts: what changed, in the order config, system, tools.
        what: what was done, in the words of every command.
        config, system, tools: the details of each part; empty or None where it did not change.
        placements: where each changed part reaches the model.
        declared_by: what in the log explains the change, in log order.
        unexplained: parts that nothing explains.
        log: the generation that ``seq`` numbers.
    """

    request: int
    previous: int
    turn: int | None
    step: int | None
    seq: int | None
    seqs: dict[Part, int | None]
    reason: str
    parts: tuple[Part, ...]
    what: tuple[str, ...] = ()
    config: tuple[ConfigChange, ...] = ()
    system: TextChange | None = None
    tools: ToolsChange = field(default_factory=ToolsChange)
    placements: dict[Part, Placement] = field(default_factory=dict)
    declared_by: tuple[str, ...] = ()
    unexplained: tuple[Part, ...] = ()
    log: SessionLog | None = field(default=None, repr=False, compare=False)

    JSON: ClassVar = (
        "request previous turn step seq seqs reason declared declared_by unexplained parts what placement placements "
        "config system tools volatile"
    )

    def words_of(self, part: str | None) -> str:
        """What was done to one part."""
        start, end = len(self.config), len(self.config) + (self.system is not None)
        told = {"config": self.what[:start], "system": self.what[start:end], "tools": self.what[end:]}
        return "; ".join(told.get(part or "", ()))

    @property
    def declared(self) -> bool:
        """Whether the log explains every part."""
        return not self.unexplained

    @property
    def placement(self) -> Placement:
        """``in-history`` when nothing at the head of the prompt changed."""
        found = set(self.placements.values())
        return "in-history" if found == {"in-history"} else "head"

    @property
    def volatile(self) -> tuple[Kind, ...]:
        """Kinds of self-changing content in the prompt or in tool definitions."""
        system = self.system.volatile if self.system else ()
        return tuple(dict.fromkeys((*system, *self.tools.volatile)))


@dataclass(frozen=True, slots=True)
class LoggedHeader:
    """One ``request/header`` event that a step request was the first to use.

    Args:
        request: index of that request.
        changed: parts that differ from the request before.
    """

    request: int
    seq: int
    reason: str
    changed: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class DriftReport:
    """All header changes of one log.

    Args:
        log: the log.
        log_json: its identity, the ``log`` member of reports.
        headers: every request header in force, in order.
        changes: in order of requests.
        findings: sorted.
        against: the log it was compared with; None for a log on its own.
    """

    log: SessionLog
    log_json: dict[str, Any]
    headers: tuple[LoggedHeader, ...]
    changes: tuple[HeaderChange, ...]
    findings: tuple[Finding, ...]
    against: dict[str, Any] | None = None

    SCHEMA: ClassVar = "dsh-audit/drift/1"
    JSON: ClassVar = "schema=SCHEMA log=log_json against headers changes summary findings"

    @property
    def summary(self) -> dict[str, Any]:
        """Counts: changes, unexplained ones, in-history ones, by part, by kind of volatile content."""
        listed = self.changes
        return {
            "changes": len(listed),
            "unexplained": sum(not change.declared for change in listed),
            "in_history": sum(change.placement == "in-history" for change in listed),
            "parts": dict(sorted(Counter(part for change in listed for part in change.parts).items())),
            "volatile": dict(sorted(Counter(kind for change in listed for kind in change.volatile).items())),
        }
