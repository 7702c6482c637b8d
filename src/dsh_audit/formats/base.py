"""What a log format is: errors, and the record that registers one.

A format reads a row in three steps. *Decoding* asks what the running harness asks of what it appends: a row that fails
it was written by no harness, and nothing from it on can be used. *Admission* and *restoring* are what a later
re-loading (restore, migration, resume) asks on top. The live writer does not ask it, so what fails there was written,
and sent, all the same: a forensic reader goes on and says from which row on the log does not open again.
Source: spec session-log 2.4; dsh-session 0.1.1-rc.2 and 0.2.1-rc.2 (append against restore).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from dsh_audit.errors import LogError, RefusedError
from dsh_audit.events import Event, Json, SessionHeader
from dsh_audit.record import dataclass

RejectionKind: TypeAlias = Literal["undecodable", "refused", "inadmissible"]
Classification: TypeAlias = Literal["known", "ignorable", "required-unknown"]


class FormatError(RefusedError):
    """A value breaks a rule of its format.

    Args:
        reason: one line that names the rule; quotes no payload text.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RowRejectedError(FormatError):
    """A row, or the event in it, is one that the harness does not accept.

    Args:
        reason: one line.
        kind: ``undecodable``: the scanner cannot decode the row; from it on everything is a dropped suffix,
            unless a later row decodes as ``turn/end``. ``refused``: the row decodes, so its seq counts first,
            but the harness refuses the log on reaching it. ``inadmissible``: re-loading refuses it at once, even
            in a dropped suffix.
        seq: seq of the row, where it has a usable one.
        row_type: type of the row where the scanner decodes it, for the ``turn/end`` rule; else None.
    """

    def __init__(
        self,
        reason: str,
        *,
        kind: RejectionKind = "undecodable",
        seq: int | None = None,
        row_type: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.kind: RejectionKind = kind
        self.seq = seq
        self.row_type = row_type


class UnsupportedVersionError(LogError):
    """The log has a format version that dsh-audit does not read."""


class DecodeRow(Protocol):
    """Signature of the ``decode_row_vN`` of a format."""

    def __call__(self, row: Json, *, line: int = 0) -> tuple[Event, ...]:
        """Decode one row; raises RowRejectedError."""


class Dialects(Protocol):
    """Reads the old dialects of one log; takes its events in order of seq."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of old dialects met so far, in order of first sight, e.g. ``compact/*``."""

    def normalise(self, event: Event) -> Event:
        """The event in the current vocabulary of its format; raises FormatError."""


def refused(error: FormatError, seq: int | None, row_type: str | None) -> RowRejectedError:
    """The error as a rejection on reaching the row."""
    return RowRejectedError(error.reason, kind="refused", seq=seq, row_type=row_type)


@dataclass(slots=True)
class LogReader:
    """Reads the rows of one log as re-loading does: what any step refuses, it refuses."""

    format: Format
    old: Dialects | None

    def decode(self, row: Json, line: int = 0) -> tuple[Event, ...]:
        """Events of the next row, in the current vocabulary of the format.

        Raises:
            RowRejectedError: see its ``kind``; a refused row's seq is to be compared with the next one first.
        """
        return tuple([self._restore(event) for event in self.format.scan_row(row, line=line)])

    def _restore(self, event: Event) -> Event:
        try:
            event = event if self.old is None else self.old.normalise(event)
            self.format.check_restored(event)
        except FormatError as error:
            raise refused(error, event.seq, event.type) from None
        return event

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of old dialects met so far."""
        return () if self.old is None else self.old.dialects


@dataclass(frozen=True, slots=True)
class Format:
    """One log format; registered once in ``formats.FORMATS``.

    Args:
        version: number in the session header.
        parse_session_header: first row → SessionHeader; raises RowRejectedError.
        decode_row: ``(row, line=0)`` → events, as the running harness admits them; raises RowRejectedError.
        encode_row: event → plain row as the harness writes it, unpacked.
        known_types: event types that a reader of this format understands.
        surface_types: of these, the types that are nodes of the surface.
        restored: what re-loading asks of an event beyond that, by type; each raises FormatError.
        packs_chunks: runs of ``assistant/chunk`` may be stored as one row.
        written: what ``decode_row`` asks of a payload beyond the envelope, by type; each raises FormatError.
        admitted: what re-loading asks of a row even inside a suffix that it drops; raises FormatError.
        admitted_types: the types it looks at.
        replays_inbox: re-loading replays the splices of the inboxes.
        new_dialects: session header → reader of old dialects; None where the format has none.
    """

    version: int
    parse_session_header: Callable[[Json], SessionHeader]
    decode_row: DecodeRow
    encode_row: Callable[[Event], dict[str, Json]]
    known_types: frozenset[str]
    surface_types: frozenset[str]
    restored: Mapping[str, Callable[[Event], None]]
    packs_chunks: bool = False
    written: Mapping[str, Callable[[Json], None]] = field(default_factory=dict)
    admitted: Callable[[dict[str, Json]], None] | None = None
    admitted_types: frozenset[str] = frozenset()
    replays_inbox: bool = False
    new_dialects: Callable[[SessionHeader], Dialects] | None = None

    def reader(self, session_header: SessionHeader) -> LogReader:
        """A fresh reader for one log of this format."""
        return LogReader(self, None if self.new_dialects is None else self.new_dialects(session_header))

    def scan_row(self, row: Json, *, line: int = 0) -> tuple[Event, ...]:
        """Decode a row as a re-loading scanner does, admission first; raises RowRejectedError."""
        row_type = row.get("type") if isinstance(row, dict) else None
        if self.admitted is not None and isinstance(row_type, str) and row_type in self.admitted_types:
            try:
                self.admitted(row)
            except FormatError as error:
                raise RowRejectedError(error.reason, kind="inadmissible") from None
            except RecursionError:
                raise RowRejectedError("nested too deeply", kind="inadmissible") from None
        return self.decode_row(row, line=line)

    def check_restored(self, event: Event) -> None:
        """What restoring asks of an event; raises FormatError."""
        check = self.restored.get(event.type)
        if check is None:
            return
        try:
            check(event)
        except RecursionError:
            raise FormatError("nested too deeply") from None

    def check_reloaded(self, event: Event) -> None:
        """What re-loading asks of an event that was written; raises FormatError."""
        if self.admitted is not None and event.type in self.admitted_types:
            try:
                self.admitted(self.encode_row(event))
            except RecursionError:
                raise FormatError("nested too deeply") from None
        self.check_restored(event)

    def classify(self, event: Event) -> Classification:
        """Whether the type is known; if not, whether it may be skipped. Source: spec session-log 10."""
        if event.type in self.known_types:
            return "known"
        return "ignorable" if event.ignorable else "required-unknown"
