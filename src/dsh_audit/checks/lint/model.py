"""What a lint check is, and how its verdict is worded.

A finding rests on one of three things. *refused in this log*: the failure is logged. *refused by* a release or a
provider: its rule is known, with a source. *accepted here*: the log shows that it passed; a note, unless the asked
release or route refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any, Literal, Protocol

from dsh_audit.checks.lint.providers import REFUSALS, family_of
from dsh_audit.checks.lint.releases import judged_releases
from dsh_audit.deployment import Deployment
from dsh_audit.events import Event, as_object
from dsh_audit.finding import Finding, Rule, Severity
from dsh_audit.log.session_log import EventReader, SessionLog
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request

Need = Literal["pass", "bodies", "captures", "sessions"]
Basis = Literal["refused-in-log", "refused-by", "accepted", "log"]

_TRANSIENT = re.compile("AUTH|RATE|SERVER|TRANSPORT|TIMEOUT|STREAM|ABORT|EMPTY|MALFORMED|CONTEXT_WINDOW|OFFLOAD")


@dataclass(frozen=True, slots=True)
class Facts:
    """What every check of one log is told.

    Args:
        log: the log.
        deployment: what it cannot know.
        release: the only release to judge for, None for the log's own and all later ones.
        route: provider of the only route to judge for.
    """

    log: SessionLog
    deployment: Deployment = field(default_factory=Deployment)
    release: str | None = None
    route: str | None = None

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases to judge for."""
        return judged_releases(self.log.version, self.release)


class Observer(Protocol):
    """One check over one log; an instance sees one pass."""

    types: frozenset[str]
    """Event types that it wants to see."""

    def event(self, event: Event) -> None:
        """The next event of one of the types."""

    def request(self, sent: Sent) -> None:
        """The next request, before the events behind its prefix; at the end the one that would come next."""

    def finish(self, reader: EventReader) -> Iterable[Finding]:
        """What was found."""


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of the table.

    Args:
        name: of the module.
        needs: what it looks at beyond the log's own events.
        observe: a fresh observer of one log.
    """

    name: str
    needs: Need
    observe: Callable[[Facts], Observer]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as the checks see it.

    Args:
        index: in its session; None for the one that would come next.
        request: with the folds over its prefix.
        protocol: that it was sent in.
        is_turn_open: the log ends inside a turn, which a resume closes first.
    """

    index: int | None
    request: Request
    protocol: str
    is_turn_open: bool = False


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in the history that requests carry.

    Args:
        rule: its code.
        kind: key of ``REFUSALS``.
        what: the fact, one phrase.
        seq: event that brings it.
        pointer: inside the event's data.
        names: call, tool and so on, as fields of their own.
        wire: protocol → what it sends for it.
    """

    rule: Rule
    kind: str
    what: str
    seq: int
    pointer: str
    names: tuple[tuple[str, str], ...] = ()
    wire: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Carried:
    """The issues of one log with the requests that carried each."""

    facts: Facts
    carried: dict[Issue, list[Sent]] = field(default_factory=dict)

    def add(self, issue: Issue, sent: Sent) -> None:
        """The request carries the issue."""
        self.carried.setdefault(issue, []).append(sent)

    def findings(self) -> Iterator[Finding]:
        """One an issue."""
        for issue, carriers in self.carried.items():
            yield judge(issue, carriers, self.facts)


def is_refusal(failure: Any) -> bool:
    """Whether a failure says that the request itself was not accepted, so that the same one fails again."""
    found = as_object(failure)
    status, code = found.get("status"), str(found.get("code", ""))
    if isinstance(status, int) and 400 <= status < 500:
        return status not in (401, 402, 403, 407, 408, 409, 425, 429)
    return bool(code) and _TRANSIENT.search(code) is None


def describe_failure(failure: Any) -> str:
    """Status, code and message."""
    found = as_object(failure)
    parts = [str(found[key]) for key in ("status", "code") if found.get(key) is not None]
    return f"{' '.join(parts)}: {found.get('message', '')}" if parts else str(found.get("message", ""))


def judge(issue: Issue, carriers: list[Sent], facts: Facts) -> Finding:
    """The finding about an issue: what it rests on decides how much it weighs."""
    sent = [one for one in carriers if one.index is not None]
    answered = [one for one in sent if one.request.dispatch.outcome in ("completed", "interrupted")]
    failed = [one for one in sent if one.request.dispatch.outcome == "failed" and is_refusal(_failure(one))]
    pattern = re.compile(REFUSALS[issue.kind].pattern, re.IGNORECASE)
    named = [one for one in failed if pattern.search(describe_failure(_failure(one)))]
    writer = str(facts.deployment.harness_version(facts.log.version).value)
    family = family_of(facts.route, facts.release or writer, carriers[-1].protocol)
    known = REFUSALS[issue.kind].by.get(family)
    refused = named or (failed if known is not None and not answered else [])
    first = carriers[0].index
    details: dict[str, Any] = {**dict(issue.names), "first_request": first, "requests": [one.index for one in sent]}
    details |= {"event": issue.seq, "protocol": carriers[-1].protocol, "release": writer, "wire": dict(issue.wire)}
    wire = "".join(f"; {name} sends {text}" for name, text in issue.wire)
    is_next = carriers[-1].index is None
    where = facts.log.where(seq=issue.seq, request=first, pointer=issue.pointer or None)

    def made(basis: Basis, text: str, level: Severity, **more: Any) -> Finding:
        message = f"{issue.what}: {text}{wire}"
        advice = {"advice": REFUSALS[issue.kind].advice}
        return Finding(issue.rule, message, where, {"basis": basis, **details, **more, **advice}, level)

    if refused:
        error = describe_failure(_failure(refused[-1]))
        also = f"; answered {_requests(answered)}" if answered else ""
        text = f"{_requests(refused)} refused in this log with {error}{also}"
        return made("refused-in-log", text, Severity.ERROR, error=error, refused=[one.index for one in refused])
    if known is not None and (facts.route is not None or not answered):
        at = "the next request carries it" if not sent else f"from request {first} on"
        text = f"{family} refuses it ({at}): {known.error}"
        if answered:
            text += f"; {_requests(answered)} accepted here"
        return made("refused-by", text, Severity.ERROR, provider=family, error=known.error, source=known.source)
    others = ", ".join(sorted(name for name in REFUSALS[issue.kind].by if name != family or answered))
    more = f"; {others} would refuse it" if others else ""
    if answered:
        return made("accepted", f"{_requests(answered)} carried it and this route accepted it{more}", Severity.INFO)
    text = "the next request carries it" if is_next and not sent else f"{_requests(sent)} carried it, without an answer"
    return made("accepted", f"{text}; this route is not known to refuse it{more}", Severity.INFO)


def _failure(sent: Sent) -> Any:
    return sent.request.dispatch.failure


def _requests(sent: list[Sent]) -> str:
    """``request 4``, ``requests 4 to 6``, ``requests 1, 4 and 7 more``."""
    numbers = sorted({one.index for one in sent if one.index is not None})
    if len(numbers) == 1:
        return f"request {numbers[0]}"
    if len(numbers) == 2:
        return f"requests {numbers[0]} and {numbers[1]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"requests {numbers[0]} to {numbers[-1]}"
    shown = ", ".join(map(str, numbers[:5]))
    return f"requests {shown}" + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")


def names(**given: str | None) -> tuple[tuple[str, str], ...]:
    """Fields of an issue; those that are None are left out."""
    return tuple((key, value) for key, value in given.items() if value is not None)
