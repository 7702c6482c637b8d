"""Drift over a whole log, and between two logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from dsh_audit.checks.drift import DriftScanner, compare_states, settle_growth
from dsh_audit.checks.drift_model import HeaderChange, LoggedHeader
from dsh_audit.checks.header_state import HeaderState, HeaderStates
from dsh_audit.checks.telling_events import TellingEvents
from dsh_audit.deployment import Deployment
from dsh_audit.events import Event
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.session_log import SessionLog
from dsh_audit.replay.session_replay import Rebuilt, Replay, fold_log
from dsh_audit.request.neutral import Request
from dsh_audit.wire.prompt import Prompt, PromptReader


class DriftRun:
    """Takes the requests of one replay in order and keeps its header changes.

    Args:
        evidence: observes the same replay.
    """

    def __init__(self, evidence: TellingEvents) -> None:
        self.evidence = evidence
        self._scanner = DriftScanner(evidence)
        self._prompt: Prompt | None = None
        self._header: tuple[object, int] | None = None
        self.headers: list[LoggedHeader] = []
        self.changes: list[HeaderChange] = []

    def see(self, rebuilt: Rebuilt, prompt: Prompt | None) -> HeaderChange | None:
        """Take one request; anything but a step has no effect.

        Args:
            prompt: its rendered prompt, None where no body is known.
        """
        request = rebuilt.request
        if request.purpose != "step" or request.snapshot.request_header is None:
            return None
        before, self._prompt = self._prompt, prompt
        heads = None
        if before is not None and prompt is not None:
            heads = (before.tools != prompt.tools, before.leading() != prompt.leading())
        change = self._scanner.see(rebuilt, heads)
        if change is not None:
            self.changes.append(change)
        self._note_header(rebuilt, change)
        return change

    @property
    def digests(self) -> list[dict[str, Any]]:
        """Digests of the header's parts, see DriftScanner."""
        return self._scanner.digests

    def _note_header(self, rebuilt: Rebuilt, change: HeaderChange | None) -> None:
        event = rebuilt.request.snapshot.request_header
        if event is None or (rebuilt.log, event.seq) == self._header:
            return
        self._header = (rebuilt.log, event.seq)
        parts = change.parts if change is not None else ()
        self.headers.append(LoggedHeader(rebuilt.index, event.seq, str(event.data.get("reason", "")), parts))


class DriftObserver:
    """Looks on while a session is folded, and reads the prompts of its steps."""

    def __init__(self) -> None:
        self.run = DriftRun(TellingEvents())
        self._prompts = PromptReader()

    def event(self, log: SessionLog, event: Event) -> None:
        """The next event."""
        self.run.evidence.event(log, event)

    def request(self, rebuilt: Rebuilt) -> None:
        """The next request."""
        body = rebuilt.encoded.body
        is_step = rebuilt.request.purpose == "step"
        self.run.see(rebuilt, self._prompts.read(body) if body is not None and is_step else None)


def run_drift(history: SessionHistory, deployment: Deployment, through: int | None = None) -> tuple[DriftRun, Replay]:
    """The header changes of a session, and the pass that found them."""
    observer = DriftObserver()
    replay = fold_log(history, deployment, observer, through=through)
    observer.run.changes = list(settle_growth(observer.run.changes))
    return observer.run, replay


def read_states(replay: Replay) -> list[tuple[int, Request, HeaderState]]:
    """Index, request and header state of every step request of a replay."""
    states = HeaderStates()
    return [
        (rebuilt.index, rebuilt.request, states.of(rebuilt.request))
        for rebuilt in replay
        if rebuilt.request.purpose == "step" and rebuilt.request.snapshot.request_header is not None
    ]


def compare_logs(
    one: Iterable[tuple[int, Request, HeaderState]], two: Iterable[tuple[int, Request, HeaderState]]
) -> tuple[HeaderChange, ...]:
    """Header differences between the step requests of two logs, paired by place.

    A difference is given where it first appears, and again only when it becomes another. ``request`` is the index
    in the second log, ``previous`` in the first; all parts count as unexplained.
    """
    changes: list[HeaderChange] = []
    last: HeaderChange | None = None
    for left, right in zip_longest(one, two):
        if left is None or right is None:
            break
        found = compare_states(left[2], right[2])
        same = last is not None and found is not None and _details(last) == _details(found)
        last = found
        if found is None or same:
            continue
        dispatch, header = right[1].dispatch, right[1].snapshot.request_header
        reason = str(header.data.get("reason", "")) if header is not None else ""
        changes.append(
            replace(
                found,
                request=right[0],
                previous=left[0],
                turn=dispatch.turn,
                step=dispatch.step,
                reason=reason,
                unexplained=found.parts,
            )
        )
    return tuple(changes)


def _details(change: HeaderChange) -> tuple[object, ...]:
    return change.config, change.system, change.tools
