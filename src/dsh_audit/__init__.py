"""dsh-audit: offline, read-only replay and audit of DeepSeek Harness session logs.

The names in ``__all__`` are the public API; the values inside its results are in :mod:`dsh_audit.types`, assertions for
tests of one's own in :mod:`dsh_audit.testing`. What could not be done is an :class:`AuditError`, what is wrong with the
data a :class:`Finding`::

    from dsh_audit import audit_cache, open_session, verify

    session = open_session("golden/v0-tools/sessions")
    for request in session.requests():
        print(request.index, request.claim, request.body and request.body.sha256())
    print(verify(session, "golden/v0-tools/captures").summary)
    print(audit_cache(session).summary.hit_rate)

Events are plain values and every fold is pure; a prefix is "all events up to and including seq ``through``". Names are
imported when they are first used, so that ``import dsh_audit`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "AuditError",
    "CacheReport",
    "Deployment",
    "DriftReport",
    "Event",
    "Finding",
    "SentRequest",
    "Session",
    "SessionState",
    "VerifyReport",
    "audit_cache",
    "audit_drift",
    "decode_row_v0",
    "derive_messages",
    "fold_request_header",
    "fold_surface",
    "interrupted_turn_closers",
    "load_deployment",
    "migrate",
    "open_session",
    "pack_chunk_runs_v0",
    "read_capture",
    "verify",
]

if TYPE_CHECKING:
    from dsh_audit.capture import read_capture
    from dsh_audit.checks.cache_sum import CacheReport
    from dsh_audit.checks.drift_model import DriftReport
    from dsh_audit.deployment import Deployment
    from dsh_audit.errors import AuditError
    from dsh_audit.events import Event
    from dsh_audit.finding import Finding
    from dsh_audit.formats.migrate import migrate
    from dsh_audit.formats.v0 import decode_row_v0, pack_chunk_runs_v0
    from dsh_audit.projection.messages import derive_messages
    from dsh_audit.projection.repair import interrupted_turn_closers
    from dsh_audit.projection.request_header import fold_request_header
    from dsh_audit.projection.state import SessionState
    from dsh_audit.projection.surface import fold_surface
    from dsh_audit.replay.sent import SentRequest
    from dsh_audit.replay.verification import VerifyReport
    from dsh_audit.session import Session, audit_cache, audit_drift, load_deployment, open_session, verify
else:
    # Hidden from type checkers, which would otherwise believe in every name.
    _TABLE = """
    AuditError=errors CacheReport=checks.cache_sum Deployment=deployment DriftReport=checks.drift_model Event=events
    Finding=finding SentRequest=replay.sent Session=session SessionState=projection.state
    VerifyReport=replay.verification audit_cache=session audit_drift=session
    decode_row_v0=formats.v0 derive_messages=projection.messages
    fold_request_header=projection.request_header fold_surface=projection.surface
    interrupted_turn_closers=projection.repair load_deployment=session migrate=formats.migrate open_session=session
    pack_chunk_runs_v0=formats.v0 read_capture=capture verify=session
    """
    _HOMES = dict(item.split("=") for item in _TABLE.split())

    def __getattr__(name):
        home, _, own = _HOMES.get(name, "").partition(":")
        if not home:
            raise AttributeError(f"module 'dsh_audit' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"dsh_audit.{home}"), own or name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
