"""Migrations between adjacent formats, as the released harness makes them in memory and on disk.

A step is one module with a ``STEP`` and one entry below. Source: spec session-log 5 to 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.events import Event, SessionHeader
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.migrate import v0_to_v1, v1_to_v2, v2_to_v3, v3_to_v4
from dsh_audit.formats.migrate.children import child_session
from dsh_audit.formats.migrate.common import ChildSession, MigrationRefusedError, Step
from dsh_audit.formats.session_headers import encode_session_header
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

STEPS: dict[int, Step] = {module.STEP.from_version: module.STEP for module in (v0_to_v1, v1_to_v2, v2_to_v3, v3_to_v4)}

__all__ = [
    "STEPS",
    "ChildSession",
    "MigrationRefusedError",
    "MigrationResult",
    "child_session",
    "migrate",
    "same_event",
]


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """A migrated log.

    Args:
        header: session header of the target format.
        events: single pass; raises MigrationRefusedError where the harness refuses. ``line`` is that of the source
            event, 0 for events that the migration inserts.
    """

    header: SessionHeader
    events: Iterator[Event]


def migrate(
    events: Iterable[Event], session_header: SessionHeader, to: int, children: Sequence[ChildSession] = ()
) -> MigrationResult:
    """Run the adjacent migrations from the header's version up to ``to``, in one streaming pass.

    Args:
        events: all events of the log, as its format's reader gives them.
        to: target version; not below the header's.
        children: child sessions of the log's session, for the step to format 4.

    Raises:
        MigrationRefusedError: the session header cannot be migrated; for events, see MigrationResult.
        ValueError: there is no chain of steps from the header's version to ``to``.
    """
    header, stream = session_header, iter(events)
    steps = [STEPS.get(version) for version in range(header.version, to)]
    if to < header.version or None in steps:
        raise ValueError(f"no migration from format {header.version} to {to}")
    for step in steps:
        assert step is not None
        try:
            target = step.migrate_header(header)
        except FormatError as error:
            raise MigrationRefusedError(error.reason, from_version=step.from_version) from None
        stream = step.migrate_events(stream, header, children)
        header = replace(target, raw=encode_session_header(target))
    return MigrationResult(header, stream)


def same_event(one: Event, other: Event) -> bool:
    """Whether two events are the same event, wherever their rows stand and however the envelope is ordered."""
    if (one.type, one.seq, one.time, one.ignorable) != (other.type, other.seq, other.time, other.ignorable):
        return False
    if (one.source_event_seqs, one.surface_op) != (other.source_event_seqs, other.surface_op):
        return False
    return ecma.same_json([one.data, one.opaque_op], [other.data, other.opaque_op])
