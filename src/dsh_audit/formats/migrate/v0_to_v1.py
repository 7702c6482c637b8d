"""Format 0 → 1: old dialects become current, every payload is checked exactly; seqs stay. Source: spec
session-log 5; dsh-session-format-v0-to-v1 0.1.3-alpha.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.events import Event, SessionHeader
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import require_object
from dsh_audit.formats.migrate.common import ChildSession, Step, run_migration
from dsh_audit.formats.payload_events import check_payload
from dsh_audit.formats.session_headers import parse_seed_length_header
from dsh_audit.formats.v0 import KNOWN_TYPES
from dsh_audit.formats.v0_legacy import LegacyReader

_MARKER = "session-log-deepseek/delivery-accepted"


def migrate_header(header: SessionHeader) -> SessionHeader:
    """The header of format 1; members that only the reader of 0.1.1 ignored are refused."""
    parse_seed_length_header(header.raw, 0, unknown_keys=False)
    return replace(header, version=1)


class _Migration:
    def __init__(self, header: SessionHeader) -> None:
        self.header = header
        self.legacy = LegacyReader(header.id)
        self.count = 0

    def step(self, event: Event) -> Iterator[Event]:
        self.count += 1
        if event.type == "assistant/chunk":
            require_object(event.data, "assistant/chunk data")
            yield event
            return
        current = self.legacy.normalise(event)
        if current.type not in KNOWN_TYPES:
            what = f"unknown event type {current.type!r}"
            raise FormatError(f"migration refuses unknown historical events even when ignorable: {what}")
        check_payload(current.type, current.seq, current.data, 0)
        if current.type == _MARKER and not self._inherited(current):
            claimed = current.data.get("sessionFormatVersion", 0)
            if claimed == 0 and current.data["sessionId"] != self.header.id:
                raise FormatError("the delivery marker names another session")
        yield current

    def finish(self) -> Iterator[Event]:
        if (self.header.seed_length or 0) > self.count:
            raise FormatError("seedLength exceeds the number of events")
        yield from ()

    def _inherited(self, event: Event) -> bool:
        return self.header.parent_session is not None and event.seq < (self.header.seed_length or 0)


def migrate_events(
    events: Iterable[Event], header: SessionHeader, _children: Sequence[ChildSession]
) -> Iterator[Event]:
    """Events of format 1; raises MigrationRefusedError."""
    return run_migration(_Migration(header), events, 0)


STEP = Step(0, migrate_header, migrate_events)
