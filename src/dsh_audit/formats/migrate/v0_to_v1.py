"""Format 0 → 1: old dialects become current, every payload is checked exactly; seqs stay. Source: spec
session-log 5; dsh-session-format-v0-to-v1 0.1.3-alpha.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.events import Event, SessionHeader
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import require_count, require_object
from dsh_audit.formats.migrate.common import ChildSession, MigrationRefusedError, Step
from dsh_audit.formats.payload_events import check_payload
from dsh_audit.formats.session_headers import parse_seed_length_header
from dsh_audit.formats.v0 import KNOWN_TYPES
from dsh_audit.formats.v0_legacy import LegacyReader

_MARKER = "session-log-deepseek/delivery-accepted"


def migrate_header(header: SessionHeader) -> SessionHeader:
    """The header of format 1; members that only the reader of 0.1.1 ignored are refused."""
    parse_seed_length_header(header.raw, 0, unknown_keys=False)
    return replace(header, version=1)


def migrate_events(
    events: Iterable[Event], header: SessionHeader, _children: Sequence[ChildSession]
) -> Iterator[Event]:
    """Events of format 1; raises MigrationRefusedError."""
    legacy = LegacyReader(header.id)
    count = 0
    for event in events:
        try:
            current = _step(event, header, legacy)
        except FormatError as error:
            raise MigrationRefusedError(error.reason, from_version=0, seq=event.seq) from None
        except RecursionError:
            raise MigrationRefusedError("nested too deeply", from_version=0, seq=event.seq) from None
        count += 1
        yield current
    if (header.seed_length or 0) > count:
        raise MigrationRefusedError("seedLength exceeds the number of events", from_version=0)


def _step(event: Event, header: SessionHeader, legacy: LegacyReader) -> Event:
    if event.type == "assistant/chunk":
        check_coordinates(event)
        return event
    current = legacy.normalise(event)
    if current.type not in KNOWN_TYPES:
        raise FormatError(f"unknown event type {current.type!r}; migration refuses it even when ignorable")
    check_payload(current.type, current.seq, current.data, 0)
    if current.type == _MARKER and not _inherited(current, header):
        claimed = current.data.get("sessionFormatVersion", 0)
        if claimed == 0 and current.data["sessionId"] != header.id:
            raise FormatError("the delivery marker names another session")
    return current


def check_coordinates(event: Event) -> None:
    """A chunk names its turn and step by counts; raises FormatError."""
    data = require_object(event.data, "assistant/chunk data")
    require_count(data.get("turn"), "assistant/chunk turn")
    require_count(data.get("step"), "assistant/chunk step")


def _inherited(event: Event, header: SessionHeader) -> bool:
    return header.parent_session is not None and event.seq < (header.seed_length or 0)


STEP = Step(0, migrate_header, migrate_events)
