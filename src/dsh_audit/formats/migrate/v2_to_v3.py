"""Format 2 → 3: the system prompt leaves the request header and becomes a message at the head of the surface.
Source: spec session-log 7; dsh-session-format-v2-to-v3 0.1.5-alpha.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.events import APPEND, SURFACE_TYPES, Event, Json, SessionHeader, SurfaceOp
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.migrate import v2_admission
from dsh_audit.formats.migrate.common import (
    SYSTEM_ORDER,
    ChildSession,
    References,
    Step,
    is_inherited_mark,
    run_migration,
)
from dsh_audit.formats.v3 import SYSTEM_MESSAGE, WRITTEN
from dsh_audit.text import ecma

_MARKER = "session-log-deepseek/delivery-accepted"
_RENAMED = {"tool/code-dispatch": "tool/ptc-dispatch", "tool/code-dispatch-start": "tool/ptc-dispatch-start"}


def migrate_header(header: SessionHeader) -> SessionHeader:
    """The header of format 3; the agent preset ``code`` is now ``ptc``."""
    return replace(header, version=3, agent_preset=_preset(header.agent_preset))


def _preset(name: Json) -> Json:
    return "ptc" if name == "code" else name


class _Migration:
    def __init__(self, header: SessionHeader) -> None:
        self.header = header
        self.references = References()
        self.original_ids: set[str] = set()
        self.generated_ids: set[str] = set()
        self.next_seq = 0
        self.cut: int | None = None if header.is_seeded else 0
        self.foreign_marker: int | None = None
        self.open_step: dict[str, Json] | None = None
        self.head: int | None = None
        self.prompt = ""

    def step(self, event: Event) -> Iterator[Event]:
        if event.seq != len(self.references):
            raise FormatError("source events must be dense")
        v2_admission.check_admission(event)
        data = event.data
        self._note_ids(event.type, data)
        source = event
        if event.type == "request/header":
            header = dict(data["header"])
            prompt = header.pop("system", "")
            if prompt != self.prompt:
                yield self._system(prompt, event)
            source = event.changed(data={**data, "header": header})
        if event.type in SURFACE_TYPES and self.head is None:
            raise FormatError("a surface event before the first step cannot come after a system head")
        self._note(event)
        target = self.references.event(source, self.next_seq)
        self.references.place(event.seq, self.next_seq)
        self.next_seq += 1
        yield _canonical(_renamed(target))
        if event.type == "step/start":
            self.open_step = {"turn": data["turn"], "step": data["step"]}
            if self.head is None:
                yield self._system("", event)
        elif event.type in ("step/end", "turn/end"):
            self.open_step = None

    def finish(self) -> Iterator[Event]:
        if self.cut is None:
            raise FormatError("a seeded session lacks its inherited end-seed marker")
        inherited = self.header.parent_session is not None
        if self.foreign_marker is not None and (not inherited or self.foreign_marker >= self.cut):
            raise FormatError("the delivery marker names another session")
        yield from ()

    def _note(self, event: Event) -> None:
        if is_inherited_mark(event):
            if not self.header.is_seeded:
                raise FormatError("an unseeded session contains an inherited end-seed marker")
            self.cut = event.seq
        if event.type == _MARKER:
            claimed = event.data.get("sessionFormatVersion")
            if claimed == 3:
                raise FormatError("the delivery marker claims format 3")
            if claimed == 2 and event.data["sessionId"] != self.header.id:
                self.foreign_marker = event.seq

    def _note_ids(self, event_type: str, data: dict[str, Json]) -> None:
        for message in v2_admission.messages_of(event_type, data):
            if message["id"] in self.generated_ids:
                raise FormatError("a message id collides with that of a generated system message")
            self.original_ids.add(message["id"])

    def _system(self, prompt: str, anchor: Event) -> Event:
        if self.open_step is None:
            raise FormatError("a changed prompt outside an open step cannot keep its place")
        identity = ["session-format-v2-to-v3", self.header.id, anchor.seq, anchor.type]
        message_id = "v2-to-v3-system-" + hashlib.sha256(ecma.stringify(identity)).hexdigest()
        if message_id in self.original_ids or message_id in self.generated_ids:
            raise FormatError("the id of a generated system message collides")
        self.generated_ids.add(message_id)
        message = {
            "id": message_id,
            "role": "system",
            "source": {"kind": "plugin", "plugin": "@deepseek-ai/dsh-system-prompt"},
            "content": [{"type": "text", "text": prompt}] if prompt else [],
        }
        data = {**self.open_step, "message": message}
        SYSTEM_MESSAGE.check(data, "generated system/message")
        head, self.head, self.prompt = self.head, self.next_seq, prompt
        self.next_seq += 1
        return Event(
            type="system/message",
            seq=self.head,
            time=anchor.time,
            data=data,
            source_event_seqs=None if head is None else (head,),
            surface_op=APPEND if head is None else SurfaceOp("replace", head, head),
            order=None if head is None else SYSTEM_ORDER,
        )


def _canonical(event: Event) -> Event:
    if event.type == "request/header":
        empty = [key for key in ("tools", "adapterDefaults") if event.data["header"].get(key) in ([], {})]
        if empty:
            header = {key: value for key, value in event.data["header"].items() if key not in empty}
            event = event.changed(data={**event.data, "header": header})
    if event.type in WRITTEN:
        WRITTEN[event.type](event.data)
    return event


def _renamed(event: Event) -> Event:
    data = event.data
    match event.type:
        case "agent-preset/selected":
            return event.changed(data={**data, "agentPreset": _preset(data["agentPreset"])})
        case "tool/code-dispatch" | "tool/code-dispatch-start":
            return event.changed(type=_RENAMED[event.type])
        case "user/message":
            return event.changed(data=_renamed_source(data))
        case "agent/inbox/spliced" | "session/title-llm-request":
            key = "inserted" if event.type == "agent/inbox/spliced" else "messages"
            return event.changed(data={**data, key: [_renamed_source(each) for each in data[key]]})
        case _:
            return event


def _renamed_source(message: dict[str, Json]) -> dict[str, Json]:
    source = message["source"]
    if source["kind"] != "plugin" or source["plugin"] != "tools-code-mode":
        return message
    return {**message, "source": {**source, "plugin": "tools-ptc"}}


def migrate_events(
    events: Iterable[Event], header: SessionHeader, _children: Sequence[ChildSession]
) -> Iterator[Event]:
    """Events of format 3; raises MigrationRefusedError."""
    return run_migration(_Migration(header), events, 2)


STEP = Step(2, migrate_header, migrate_events)
