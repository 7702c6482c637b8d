"""Changes of a golden case, with their place in the new body and what the new log says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.checks.drift_run import run_drift
from dsh_audit.checks.telling_events import TellingEvents
from dsh_audit.deployment import Deployment
from dsh_audit.golden.change import Change
from dsh_audit.log.generations import SessionHistory
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.wire.body import Body

_PARTS = {"settings": "config", "system": "system", "tools": "tools"}


def explain_changes(
    changes: Iterable[Change], rebuilts: Sequence[Rebuilt], history: SessionHistory, deployment: Deployment
) -> list[Change]:
    """The changes with pointers and hints; the log is read once more where its header changed."""
    places = _Places(rebuilts)
    placed = [places.place(change) for change in changes]
    if not any(change.layer in _PARTS or change.layer == "messages" for change in placed):
        return placed
    run, _ = run_drift(history, deployment)
    drift = {change.request: change for change in run.changes}
    return [_hint(change, drift, run.evidence) for change in placed]


class _Places:
    """Finds pointers into the bodies of one session."""

    def __init__(self, rebuilts: Sequence[Rebuilt]) -> None:
        self._rebuilts = rebuilts
        self._offsets: dict[int, dict[int, int]] = {}

    def place(self, change: Change) -> Change:
        """The change with a pointer into the body of the first request it reaches."""
        index = change.requests[0] if change.requests else len(self._rebuilts)
        body = self._rebuilts[index].encoded.body if index < len(self._rebuilts) else None
        if change.layer == "requests" or body is None:
            return replace(change, pointer=None)
        if change.pointer is not None or change.cause.endswith("-removed"):
            return change
        if change.layer == "system":
            return replace(change, pointer=self._system_pointer(index, body, change.seq))
        if change.layer == "messages" and change.seq is not None:
            return replace(change, pointer=self._message_pointer(index, body, change.seq))
        return change

    def _system_pointer(self, index: int, body: Body, seq: int | None) -> str | None:
        for part in body.parts():
            if part.kind == "system":
                return part.pointer if len(part.path) == 1 else f"{part.pointer}/content"
        return None if seq is None else self._message_pointer(index, body, seq)

    def _message_pointer(self, index: int, body: Body, seq: int) -> str | None:
        """The message or block that the first bytes of an event print."""
        if index not in self._offsets:
            self._offsets[index] = _first_offsets(body)
        at = self._offsets[index].get(seq)
        return None if at is None else body.pointer_at(at).rpartition("/")[0]


def _first_offsets(body: Body) -> dict[int, int]:
    """Event → offset of the first name that it prints."""
    offsets: dict[int, int] = {}
    at = 0
    for data, seq in body.pieces():
        if seq is not None and seq not in offsets:
            name = data.find(b'"')
            if name >= 0:
                offsets[seq] = at + name
        at += len(data)
    return offsets


def _hint(change: Change, drift: dict[int, HeaderChange], evidence: TellingEvents) -> Change:
    """The change with what the new log says about what brought it."""
    part = _PARTS.get(change.layer)
    cause = None if change.seq is None or change.cause.endswith("-removed") else evidence.cause_of(change.seq)
    if change.layer == "messages" and cause is not None:
        return replace(change, hints=(*change.hints, f"the log declares it: {cause}"))
    found = drift.get(change.requests[0]) if change.requests and part else None
    if found is None or part not in found.parts:
        return change
    if found.declared_by and part not in found.unexplained:
        hint = f"the log declares it: {', '.join(found.declared_by)}"
    else:
        hint = "nothing in the log asked for it"
    return replace(change, hints=(*change.hints, hint))
