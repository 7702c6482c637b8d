"""Format 3 → 4: tool results become messages of role tool, sources name their producer, children are listed.
Source: spec session-log 8; dsh-session-format-v3-to-v4 in the runtime of 0.2.1-rc.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.events import Event, Json, SessionHeader, as_list, as_object
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import require_count, require_object
from dsh_audit.formats.migrate import v3_payloads
from dsh_audit.formats.migrate.children import catalog_entry, check_catalog, known_entry
from dsh_audit.formats.migrate.common import (
    ChildSession,
    References,
    RestartWatch,
    Step,
    interrupted_end,
    is_inherited_mark,
    run_migration,
)
from dsh_audit.formats.v3 import KNOWN_TYPES
from dsh_audit.text import ecma

_MARKER = "session-log-deepseek/delivery-accepted"


def migrate_header(header: SessionHeader) -> SessionHeader:
    """The header of format 4."""
    return replace(header, version=4)


class _Migration:
    def __init__(self, header: SessionHeader, children: Sequence[ChildSession]) -> None:
        self.header = header
        self.children = sorted(children, key=lambda each: (each.created_at, ecma.utf16_key(each.child_id)))
        self.references = References()
        self.restarts = RestartWatch(turns_close_steps=False)
        self.catalogs: list[Json] = []
        self.next_seq = 0
        self.cut: int | None = None if header.is_seeded else 0
        self.foreign_marker: int | None = None
        self.time: int | float = header.created_at

    def step(self, event: Event) -> Iterator[Event]:
        if event.seq != len(self.references):
            raise FormatError("source events must be dense")
        interrupted = self.restarts.see(event)
        if interrupted is not None:
            yield self._take(interrupted_end(interrupted, event, self.next_seq))
        self.time = event.time
        self._note(event)
        if event.type not in KNOWN_TYPES:
            if not event.ignorable:
                raise FormatError(f"unknown event type {event.type!r}")
            target = event.changed(type=f"plugin:{event.type}", seq=self.next_seq)
        else:
            # Upstream looks at references only where something was inserted before.
            moved = event if event.seq == self.next_seq else self.references.event(event, self.next_seq)
            target = v3_payloads.current(moved, event.seq)
        self.references.place(event.seq, self.next_seq)
        yield self._take(target)

    def finish(self) -> Iterator[Event]:
        if self.cut is None:
            raise FormatError("a seeded session lacks its inherited end-seed marker")
        existing: dict[str, dict[str, Json]] = {}
        for data in self.catalogs:
            fact = check_catalog(data)
            if fact["childId"] in existing:
                raise FormatError(f"duplicate catalog child {fact['childId']}")
            existing[fact["childId"]] = fact
        inherited = self.header.parent_session is not None
        if self.foreign_marker is not None and (not inherited or self.foreign_marker >= self.cut):
            raise FormatError("the delivery marker names another session")
        for child in self.children:
            if child.child_id in existing:
                _check_same_child(child, existing[child.child_id])
                continue
            entry = existing[child.child_id] = catalog_entry(child)
            yield self._take(Event("subagent/catalog", self.next_seq, self.time, entry))

    def _take(self, event: Event) -> Event:
        self.next_seq += 1
        return event

    def _note(self, event: Event) -> None:
        if is_inherited_mark(event):
            if not self.header.is_seeded:
                raise FormatError("an unseeded session contains an inherited end-seed marker")
            self.cut = event.seq
            self.catalogs.clear()
        elif event.type == "subagent/catalog":
            self.catalogs.append(event.data)
        elif event.type == "assistant/message":
            _check_call_ids(event)
        elif event.type == _MARKER:
            self._note_marker(event)

    def _note_marker(self, event: Event) -> None:
        data = require_object(event.data, "delivery marker data")
        claimed = require_count(data.get("sessionFormatVersion", 0), "delivery marker sessionFormatVersion")
        if claimed == 4:
            raise FormatError("the delivery marker claims format 4")
        if claimed != 3:
            return
        if require_count(data.get("throughSeq"), "delivery marker throughSeq") >= event.seq:
            raise FormatError("delivery marker throughSeq must precede the marker")
        if not isinstance(data.get("sessionId"), str) or not data["sessionId"]:
            raise FormatError("the delivery marker requires a session id")
        if data["sessionId"] != self.header.id:
            self.foreign_marker = event.seq


def _check_call_ids(event: Event) -> None:
    """No answer has two calls of one id."""
    seen: set[str] = set()
    message = as_object(as_object(event.data).get("message"))
    for block in map(as_object, as_list(message.get("content"))):
        call_id = block.get("id")
        if block.get("type") == "tool-call" and isinstance(call_id, str):
            if call_id in seen:
                raise FormatError(f"assistant/message repeats advertised tool call {call_id}")
            seen.add(call_id)


def _check_same_child(child: ChildSession, listed: dict[str, Json]) -> None:
    fact = known_entry(child)
    same = listed["childCreatedAt"] == child.created_at
    if fact is not None:
        same = same and all(listed.get(key) == fact.get(key) for key in ("mode", "label"))
    if not same:
        raise FormatError(f"session {child.child_id} conflicts with its parent's catalog")


def migrate_events(events: Iterable[Event], header: SessionHeader, children: Sequence[ChildSession]) -> Iterator[Event]:
    """Events of format 4; raises MigrationRefusedError."""
    return run_migration(_Migration(header, children), events, 3)


STEP = Step(3, migrate_header, migrate_events)
