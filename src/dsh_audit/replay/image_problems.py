"""Damaged attachments of a session, each with the requests that it affects."""

from __future__ import annotations

from dataclasses import field

from dsh_audit.attachments.checks import Problem
from dsh_audit.finding import Finding
from dsh_audit.log.session_log import SessionLog
from dsh_audit.record import dataclass
from dsh_audit.wire.adapter import Encoded


@dataclass(slots=True)
class ImageProblems:
    """Takes the requests of a session in order."""

    _affected: dict[str, tuple[Problem, list[int]]] = field(default_factory=dict)

    def see(self, index: int, encoded: Encoded) -> None:
        """One request."""
        for digest, problem in encoded.problems:
            self._affected.setdefault(digest, (problem, []))[1].append(index)

    def findings(self, log: SessionLog) -> list[Finding]:
        """One finding a damaged file."""
        found = []
        for digest, (problem, requests) in self._affected.items():
            shown = ", ".join(map(str, requests[:10])) + (", …" if len(requests) > 10 else "")
            verb = f"request {shown} shows it" if len(requests) == 1 else f"requests {shown} show it"
            where = log.where(request=requests[0])
            details = {"attachment": digest, "requests": requests}
            found.append(Finding(problem.rule, f"{problem.what}; {verb}", where, details))
        return found
