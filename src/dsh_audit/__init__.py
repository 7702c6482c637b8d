"""dsh-audit: offline, read-only replay and audit of DeepSeek Harness session logs.

The names below are the public API. Events are plain values (:mod:`dsh_audit.events`), every fold is pure, and a prefix
is always "all events up to and including seq ``through``"::

    from dsh_audit import Deployment, Replay, build_history, open_log, read_sessions

    log = open_log(read_sessions("golden/v0-tools/sessions")[0].choose())
    for request in Replay(build_history(log), Deployment()):
        print(request.index, request.encoded.claim, request.encoded.body.sha256())

Names are imported when they are first used, so that ``import dsh_audit`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsh_audit.capture import read_capture as read_capture
    from dsh_audit.deployment import Deployment as Deployment
    from dsh_audit.errors import AuditError as AuditError
    from dsh_audit.events import Event as Event
    from dsh_audit.finding import Finding as Finding
    from dsh_audit.formats.migrate import migrate as migrate
    from dsh_audit.formats.v0 import decode_storage_record as decode_storage_record
    from dsh_audit.formats.v0 import pack_chunk_runs as pack_chunk_runs
    from dsh_audit.log.generations import build_history as build_history
    from dsh_audit.log.locate import read_sessions as read_sessions
    from dsh_audit.log.session_log import open_log as open_log
    from dsh_audit.projection.messages import derive_event_message as derive_event_message
    from dsh_audit.projection.messages import derive_messages as derive_messages
    from dsh_audit.projection.repair import interrupted_turn_closers as interrupted_turn_closers
    from dsh_audit.projection.request_header import canonical_header as canonical_header
    from dsh_audit.projection.request_header import fold_request_header as fold_request_header
    from dsh_audit.projection.request_header import header_equals as header_equals
    from dsh_audit.projection.state import SessionState as SessionState
    from dsh_audit.projection.surface import fold_surface as fold_surface
    from dsh_audit.projection.surface import is_surface_event as is_surface_event
    from dsh_audit.replay.session_replay import Replay as Replay
    from dsh_audit.replay.verification import verify as verify

_HOMES = {
    "AuditError": "errors",
    "Deployment": "deployment",
    "Event": "events",
    "Finding": "finding",
    "Replay": "replay.session_replay",
    "SessionState": "projection.state",
    "build_history": "log.generations",
    "canonical_header": "projection.request_header",
    "decode_storage_record": "formats.v0",
    "derive_event_message": "projection.messages",
    "derive_messages": "projection.messages",
    "fold_request_header": "projection.request_header",
    "fold_surface": "projection.surface",
    "header_equals": "projection.request_header",
    "interrupted_turn_closers": "projection.repair",
    "is_surface_event": "projection.surface",
    "migrate": "formats.migrate",
    "open_log": "log.session_log",
    "pack_chunk_runs": "formats.v0",
    "read_capture": "capture",
    "read_sessions": "log.locate",
    "verify": "replay.verification",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dsh_audit' has no attribute {name!r}")
    return getattr(import_module(f"dsh_audit.{home}"), name)
