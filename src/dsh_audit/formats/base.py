"""What a log format is: errors, and the record that registers one.

A format decodes in two steps, as the harness does. ``decode_storage_record`` is the row scanner: a row that
it calls *undecodable* starts a suffix that is dropped, unless a later row decodes as ``turn/end``. A
``Restorer`` is the restore step: what it refuses makes the harness refuse the log there, so only the prefix
before it is sound.
Source: spec session-log 2.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from dsh_audit.errors import LogError, RefusedError
from dsh_audit.events import Event, Json, SessionHeader

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
            but the harness refuses the log on reaching it. ``inadmissible``: refused at once, even in a
            dropped suffix.
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


class DecodeStorageRecord(Protocol):
    """Signature of the ``decode_storage_record`` of a format."""

    def __call__(self, row: Json, *, line: int = 0) -> tuple[Event, ...]:
        """Decode one row; raises RowRejectedError."""


class Restorer(Protocol):
    """Stateful restore step of one log; takes its events in order of seq."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of old dialects met so far, in order of first sight, e.g. ``compact/*``."""

    def read(self, event: Event) -> Event:
        """The event in the current vocabulary of its format; raises RowRejectedError (``refused``)."""


@dataclass(slots=True)
class CheckingRestorer:
    """Restorer of a format without dialects: checks and passes on.

    Args:
        check: raises FormatError.
    """

    check: Callable[[Event], None]
    dialects: tuple[str, ...] = ()

    def read(self, event: Event) -> Event:
        """The event itself."""
        try:
            self.check(event)
        except FormatError as error:
            raise refused(error, event.seq, event.type) from None
        except RecursionError:
            raise refused(FormatError("nested too deeply"), event.seq, event.type) from None
        return event


def refused(error: FormatError, seq: int | None, row_type: str | None) -> RowRejectedError:
    """The error as a rejection by the restore step."""
    return RowRejectedError(error.reason, kind="refused", seq=seq, row_type=row_type)


@dataclass(slots=True)
class LogReader:
    """Both steps for one log."""

    decode_storage_record: DecodeStorageRecord
    restorer: Restorer

    def decode(self, row: Json, line: int = 0) -> tuple[Event, ...]:
        """Events of the next row, in the current vocabulary of the format.

        Raises:
            RowRejectedError: see its ``kind``; a refused row's seq is to be compared with the next one first.
        """
        return tuple([self.restorer.read(event) for event in self.decode_storage_record(row, line=line)])

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of old dialects met so far."""
        return self.restorer.dialects


@dataclass(frozen=True, slots=True)
class Format:
    """One log format; registered once in ``formats.FORMATS``.

    Args:
        version: number in the session header.
        parse_session_header: first row → SessionHeader; raises RowRejectedError.
        decode_storage_record: ``(row, line=0)`` → events; raises RowRejectedError.
        new_restorer: session header → Restorer.
        encode_row: event → plain row as the harness writes it, unpacked.
        known_types: event types that a reader of this format understands.
        surface_types: of these, the types that are nodes of the surface.
    """

    version: int
    parse_session_header: Callable[[Json], SessionHeader]
    decode_storage_record: DecodeStorageRecord
    new_restorer: Callable[[SessionHeader], Restorer]
    encode_row: Callable[[Event], dict[str, Json]]
    known_types: frozenset[str]
    surface_types: frozenset[str]

    def reader(self, session_header: SessionHeader) -> LogReader:
        """A fresh reader for one log of this format."""
        return LogReader(self.decode_storage_record, self.new_restorer(session_header))

    def classify(self, event: Event) -> Classification:
        """Whether the type is known; if not, whether it may be skipped. Source: spec session-log 10."""
        if event.type in self.known_types:
            return "known"
        return "ignorable" if event.ignorable else "required-unknown"
