"""The value of ``dsh_session_log``, release by release: how a session and its events are printed in a request.

The field is not a copy of the file: events are expanded, keyed anew, and carry the value the harness held in memory.
Source: spec wire-deepseek 9.3; dsh-session-log-deepseek 0.2.1-rc.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.formats import FORMATS
from dsh_audit.formats.envelope import op_value
from dsh_audit.releases import ReleaseRules
from dsh_audit.text import ecma

FIELD = "dsh_session_log"
MARKER = "session-log-deepseek/delivery-accepted"

_OLD_OP, _NEW_OP = ("start", "end"), ("startSeq", "endSeq")


def field_head(
    session_header: SessionHeader,
    rules: ReleaseRules,
    after_seq: int,
    through_seq: int,
    *,
    inherited: int | None,
    is_loaded: bool,
) -> bytes:
    """The value up to its first event.

    Args:
        after_seq: last seq the provider confirmed; −1 before the first.
        through_seq: last seq in the field.
        inherited: number of events that came from the parent; None when the session is not seeded.
        is_loaded: the session had been read from disk when the request was made (it was resumed).
    """
    value: dict[str, Json] = {"version": 1}
    if rules.names_format:
        value["sessionFormatVersion"] = session_header.version
    value["session"] = _session(session_header, inherited, is_loaded=is_loaded)
    value |= {"afterSeq": after_seq, "throughSeq": through_seq, "events": []}
    return ecma.stringify(value)[:-2]


def _session(header: SessionHeader, inherited: int | None, *, is_loaded: bool) -> dict[str, Json]:
    members: dict[str, Json] = {
        "version": header.version,
        "id": header.id,
        "createdAt": header.created_at,
        "cwd": header.cwd,
        "parentSession": header.parent_session,
        "seedLength": inherited,
        "origin": header.origin,
        "delegationDepth": header.delegation_depth if is_loaded or header.delegation_depth else None,
        "agentPreset": header.agent_preset,
    }
    return {key: value for key, value in members.items() if value is not None}


def encode_event(event: Event, version: int, rules: ReleaseRules) -> bytes:
    """One event as an element of ``events``."""
    members = _old_event if rules.event_keys == "type-first" else _new_event
    return ecma.stringify(members(event, version))


def _old_event(event: Event, version: int) -> dict[str, Json]:
    """Releases 0.1.2 and 0.1.3."""
    out: dict[str, Json] = {"type": event.type, "seq": event.seq, "time": event.time, "data": event.data}
    if event.ignorable:
        out["ignorable"] = True
    if event.type in FORMATS[version].surface_types:
        _add_sources(out, event.source_event_seqs)
        if event.surface_op is not None:
            out["surfaceOp"] = op_value(event.surface_op, _OLD_OP)
    return out


def _new_event(event: Event, version: int) -> dict[str, Json]:
    """Releases 0.1.5 and later."""
    out: dict[str, Json] = {"seq": event.seq, "time": event.time, "data": event.data}
    if event.ignorable:
        out["ignorable"] = True
    out["type"] = event.type
    form = FORMATS[version]
    if event.type in form.surface_types:
        if event.surface_op is not None:
            out["surfaceOp"] = op_value(event.surface_op, _NEW_OP)
        if event.type != "assistant/message":
            _add_sources(out, event.source_event_seqs)
    elif event.type not in form.known_types and event.ignorable:
        if event.opaque_op is not None:
            out["surfaceOp"] = event.opaque_op
        _add_sources(out, event.source_event_seqs)
    return out


def _add_sources(out: dict[str, Json], seqs: Sequence[int] | None) -> None:
    if seqs is not None:
        out["sourceEventSeqs"] = list(seqs)
