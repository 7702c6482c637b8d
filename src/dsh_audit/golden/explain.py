"""Changes of a golden case, with their place in the new body and what the new log says about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.checks.drift_run import run_drift
from dsh_audit.checks.layout import LayoutScanner
from dsh_audit.deployment import Deployment
from dsh_audit.generations import SessionHistory
from dsh_audit.golden.change import Change
from dsh_audit.replay import Rebuilt, Replay
from dsh_audit.wire.body import Body

_PARTS = {"settings": "config", "system": "system", "tools": "tools"}
_NAME = re.compile(rb'"')


def explain_changes(
    changes: Iterable[Change], rebuilts: Sequence[Rebuilt], history: SessionHistory, deployment: Deployment
) -> list[Change]:
    """The changes with pointers and hints; the log is read once more where its header changed."""
    placed = [_place(change, rebuilts) for change in changes]
    if not any(change.layer in _PARTS for change in placed):
        return placed
    drift = {change.request: change for change in run_drift(Replay(history, deployment)).changes}
    return [_hint(change, drift) for change in placed]


def _place(change: Change, rebuilts: Sequence[Rebuilt]) -> Change:
    """The change with a pointer into the body of the first request it reaches."""
    is_here = bool(change.requests) and change.requests[0] < len(rebuilts)
    body = rebuilts[change.requests[0]].encoded.body if is_here else None
    if change.layer == "requests" or body is None:
        return replace(change, pointer=None)
    if change.pointer is not None or change.cause.endswith("-removed"):
        return change
    if change.layer == "system":
        return replace(change, pointer=_system_pointer(body, change.seq))
    if change.layer == "messages" and change.seq is not None:
        return replace(change, pointer=_message_pointer(body, change.seq))
    return change


def _system_pointer(body: Body, seq: int | None) -> str | None:
    spans = LayoutScanner().scan(body).spans
    for name in ("system", "instructions"):
        if name in spans:
            return f"/{name}"
    first = next((f.data for f in body.fragments() if b'"role":"' in f.data), b"")
    if b'"role":"system"' in first or b'"role":"developer"' in first:
        return "/messages/0/content" if "messages" in spans else "/input/0/content"
    return None if seq is None else _message_pointer(body, seq)


def _message_pointer(body: Body, seq: int) -> str | None:
    """The message or block that the first bytes of an event print."""
    at = 0
    for fragment in body.fragments():
        name = _NAME.search(fragment.data)
        if fragment.seq == seq and name is not None:
            pointer = LayoutScanner().pointer_at(body, at + name.start())
            return pointer.rpartition("/")[0]
        at += len(fragment.data)
    return None


def _hint(change: Change, drift: dict[int, HeaderChange]) -> Change:
    """The change with what the new log says about a header that changed at that request."""
    part = _PARTS.get(change.layer)
    found = drift.get(change.requests[0]) if change.requests and part else None
    if found is None or part not in found.parts:
        return change
    if found.declared_by and part not in found.unexplained:
        hint = f"the log declares it: {', '.join(found.declared_by)}"
    else:
        hint = "nothing in the log asked for it"
    return replace(change, hints=(*change.hints, hint))
