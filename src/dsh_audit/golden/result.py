"""What a check of golden cases has found, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal

from dsh_audit.finding import Finding, Where, sort_findings
from dsh_audit.golden.change import Change
from dsh_audit.golden.normalise import Normaliser
from dsh_audit.record import dataclass
from dsh_audit.rules import golden as rules
from dsh_audit.text.to_json import to_json

State = Literal["matched", "changed", "missing", "new", "unused"]
Unused = Literal["fail", "warn", "ignore"]

STATES: tuple[State, ...] = ("matched", "changed", "missing", "new", "unused")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The state of one golden case.

    Args:
        name: of the case.
        state: ``matched``; ``changed``; ``missing``: there is no case for the log, and none was written, or no log for
            the case; ``new``: there was no case for the log, one was written and waits; ``unused``: no log of this
            run belongs to the case.
        path: of the golden file, as the user named its directory.
        log: the log as it was named; None where there is none.
        reason: why, where no changes say it.
        changes: in order.
        requests: how many were compared or recorded.
        normalisers: declared in the case.
        replaced: normaliser → texts it replaced in this run.
        is_written: a pending file was written beside the golden one.
    """

    name: str
    state: State
    path: str
    log: str | None = None
    reason: str = ""
    changes: tuple[Change, ...] = ()
    requests: int = 0
    normalisers: tuple[Normaliser, ...] = ()
    replaced: Mapping[str, int] = field(default_factory=dict)
    is_written: bool = False

    JSON: ClassVar = "name state path log reason requests normalisers=counts written=is_written changes"

    @property
    def counts(self) -> list[dict[str, Any]]:
        """The normalisers with how many texts each replaced."""
        return [{**to_json(item), "replaced": self.replaced.get(item.name, 0)} for item in self.normalisers]

    def findings(self) -> list[Finding]:
        """The state as findings: golden/changed (one a change), golden/missing, golden/new, golden/unused."""
        if self.state == "changed":
            return [self._changed(change) for change in self.changes]
        rule = {"missing": rules.MISSING, "new": rules.NEW, "unused": rules.UNUSED}.get(self.state)
        return [] if rule is None else [Finding(rule, f"{self.name}: {self.reason}", Where(source=self.path))]

    def _changed(self, change: Change) -> Finding:
        request = change.requests[0] if change.requests else None
        where = Where(source=self.log or self.path, request=request, seq=change.seq, pointer=change.pointer)
        details: dict[str, Any] = {"case": self.name, **to_json(change)}
        return Finding(rules.CHANGED, f"{self.name}: {describe_change(change)}", where, details)


@dataclass(frozen=True, slots=True)
class GoldenReport:
    """The result of one check.

    Args:
        cases: by name.
        unused: what an unused case means for the verdict.
    """

    cases: tuple[CaseResult, ...]
    unused: Unused = "fail"

    SCHEMA: ClassVar = "dsh-audit/golden-check/1"
    JSON: ClassVar = "schema=SCHEMA summary cases findings"

    @property
    def findings(self) -> list[Finding]:
        """Of all cases, sorted."""
        shown = (case for case in self.cases if case.state != "unused" or self.unused != "ignore")
        return sort_findings(finding for case in shown for finding in case.findings())

    @property
    def summary(self) -> dict[State, int]:
        """Number of cases in each state."""
        states = [case.state for case in self.cases]
        return {state: states.count(state) for state in STATES}

    def is_failed(self, case: CaseResult) -> bool:
        """Whether a case fails the run."""
        return case.state in ("changed", "missing", "new") or (case.state == "unused" and self.unused == "fail")

    @property
    def failed(self) -> bool:
        """Whether the exit status is 1."""
        return any(map(self.is_failed, self.cases))


def describe_change(change: Change) -> str:
    """A change with the requests it reaches, in one line."""
    reach = describe_requests(change.requests)
    return f"{change.message} ({reach})" if reach else change.message


def describe_requests(indexes: Sequence[int]) -> str:
    """``request 3``, ``requests 0–4, 7``."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    if not runs:
        return ""
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    shown = ", ".join(texts[:6]) + (", …" if len(texts) > 6 else "")
    return f"request{'s' if len(indexes) > 1 else ''} {shown}"
