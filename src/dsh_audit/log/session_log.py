"""One log file → session header and a single-pass stream of events, with findings.

The reader gives the longest sound prefix. It stops at the first row that does not decode or whose seq is not the
next, and then tells a dropped tail (what the harness would cut on resume) from damage in committed data (a later
``turn/end`` shows that the harness had gone on). An unknown required event does not stop it but sets a *fence*:
nothing after it can be reconstructed. Source: spec session-log 2.4, 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import chain, islice
from typing import BinaryIO

from dsh_audit.errors import LogError
from dsh_audit.events import ChunkRun, Event, Json, SessionHeader, as_object
from dsh_audit.finding import Finding, Severity, Where
from dsh_audit.formats import FORMATS, SUPPORTED_VERSIONS
from dsh_audit.formats.base import Format, RowRejectedError
from dsh_audit.formats.rows import ReloadRefusal, RowDecoder, is_projected
from dsh_audit.log.container import Batch, ContainerIssue, ContainerStats, Encoding, iter_batches, iter_rows
from dsh_audit.log.damage import Suffix, describe_head, find_sound_frames, split_at_blanks
from dsh_audit.record import dataclass
from dsh_audit.rules import log as rules
from dsh_audit.text import ecma
from dsh_audit.text.budget import BudgetError

END_SEED = b'"session/end-seed"'
_ANY = 2**63
_CONTAINER_RULES = {
    "torn": rules.TORN_TAIL,
    "bad-frame": rules.BAD_FRAME,
    "open-row": rules.OPEN_ROW,
    "first-frame": rules.FIRST_FRAME,
    "zeros": rules.ZERO_TAIL,
    "no-newline": rules.NO_NEWLINE,
    "row-too-large": rules.ROW_TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class LogSource:
    """Where the bytes of one log come from.

    Args:
        label: the log as the user named it, used in every report.
        file_name: canonical name of the generation, or any other name.
        size: bytes that count; what is appended later is not read.
        open: gives a fresh stream at the start.
    """

    label: str
    file_name: str
    size: int
    open: Callable[[], BinaryIO]


@dataclass(slots=True)
class LogStats:
    """What a complete pass over the events has seen."""

    encoding: Encoding = "plain"
    size_bytes: int = 0
    decoded_bytes: int = 0
    rows: int = 0
    frames: int = 0
    events: int = 0
    last_seq: int = -1
    last_time_ms: int | float | None = None
    sha256: str = ""
    dialects: tuple[str, ...] = ()


class SessionLog:
    """A log whose session header has been read; ``events()`` reads the rest."""

    def __init__(self, source: LogSource, session_header: SessionHeader, findings: list[Finding]) -> None:
        self.source = source
        self.session_header = session_header
        self.format: Format = FORMATS[session_header.version]
        self.open_findings = tuple(findings)
        self._own_from: int | None = None
        self._summaries: tuple[Event, ...] | None = None

    @property
    def session_id(self) -> str:
        """Id of the session; empty for a projected fixture without a session header."""
        return self.session_header.id

    @property
    def version(self) -> int:
        """Format version of the log."""
        return self.session_header.version

    def where(self, **place: int | str | None) -> Where:
        """A place in this log."""
        return Where(source=self.source.label, session=self.session_id or None, **place)  # type: ignore[arg-type]

    def events(self, through: int | None = None) -> EventReader:
        """A fresh pass over the events, up to and including seq ``through``."""
        return EventReader(self, through)

    def summaries(self) -> tuple[Event, ...]:
        """Every ``compaction/summary`` of the session, found by a search over the text when first asked for."""
        if self._summaries is None:
            own_from = self.own_from()
            rows = (row for row in self.rows_with(b'"compaction/summary"') if row["type"] == "compaction/summary")
            events = (Event(row["type"], row["seq"], row.get("time", 0), row.get("data")) for row in rows)
            self._summaries = tuple(event for event in events if event.seq >= own_from)
        return self._summaries

    def own_from(self) -> int:
        """Seq of the first event that is this session's own: its parent's come before. Spec dispatch 1."""
        header = self.session_header
        if self.version < 2:
            return header.seed_length or 0
        if not header.is_seeded:
            return 0
        if self._own_from is None:
            ends = [row for row in self.rows_with(END_SEED) if as_object(row.get("data")).get("inherited") is True]
            self._own_from = max((row["seq"] for row in ends if row["type"] == "session/end-seed"), default=0)
        return self._own_from

    def rows_with(self, *needles: bytes, but: bytes = b"\n") -> Iterator[dict[str, Json]]:
        """Numbered rows of some types, found by a search over the text; no other row is parsed or checked.

        Args:
            needles: one of them is in each row that is looked at, e.g. a type.
            but: what is in no such row.
        """
        with self.source.open() as stream:
            for batch in iter_batches(stream, self.source.size, ContainerStats()):
                if not any(needle in batch.text for needle in needles):
                    continue
                for line in batch.text.split(b"\n"):
                    if any(needle in line for needle in needles) and but not in line:
                        try:
                            row = ecma.parse(line)
                        except ecma.EcmaSyntaxError:
                            continue
                        if isinstance(row, dict) and isinstance(row.get("seq"), int) and "type" in row:
                            yield row


@dataclass(slots=True)
class EventReader:
    """One pass over the events of a log; findings and stats are complete when it has been exhausted.

    Attributes:
        findings: what is wrong with the rows, in order.
        stats: counts, digest and encoding.
        fence_seq: first unknown required event; nothing from it on can be reconstructed.
        stopped_at: seq that would have come next where the sound prefix ends, None when the log was read whole.
        reload_refusal: the first event that was written and sent but that re-loading refuses; it changes no verdict.
    """

    log: SessionLog
    through: int | None = None
    findings: list[Finding] = field(default_factory=list)
    stats: LogStats = field(default_factory=LogStats)
    fence_seq: int | None = None
    stopped_at: int | None = None
    reload_refusal: ReloadRefusal | None = None
    _known: frozenset[str] = field(init=False)
    _blanks: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = self.log.format.known_types

    def __iter__(self) -> Iterator[Event]:
        """Every event, one by one."""
        for event in self.runs():
            if isinstance(event, ChunkRun):
                yield from event.expand()
            else:
                yield event

    def runs(self, split_at: int = 0) -> Iterator[Event]:
        """The events, chunks of an answer as one ChunkRun where nobody needs to look at them one by one.

        Args:
            split_at: a seq; no run stands for events on both sides of it.
        """
        container = ContainerStats()
        with self.log.source.open() as stream:
            batches = iter_batches(stream, self.log.source.size, container)
            yield from self._read(batches, split_at)
            for _ in batches:
                pass
        self._finish(container)

    def _read(self, batches: Iterator[Batch], split_at: int) -> Iterator[Event]:
        decoder = RowDecoder(self.log.format, self.log.session_header, split_at)
        through = _ANY if self.through is None else self.through
        for batch in batches:
            text, line = batch.text, batch.line
            if line == 1 and self.log.session_header.raw:
                text, line = text[text.index(b"\n") + 1 :], 2
            try:
                for event in self._decode(decoder, text, line):
                    if event.last_seq > through:
                        yield from self._cut(event, through, batch)
                        return
                    self._see(event, batch)
                    yield event
            except (RowRejectedError, ecma.EcmaSyntaxError) as error:
                self._damage(batch, decoder.line, error, batches)
                break
        self._tell(decoder)

    def _decode(self, decoder: RowDecoder, text: bytes, line: int) -> Iterator[Event]:
        """The events of complete lines; blank ones, which no event is in, are told and skipped."""
        if not text.startswith((b"\n", b"\r")) and b"\n\n" not in text and b"\n\r" not in text and not self._blanks:
            yield from decoder.decode(text, line)
            return
        for rows, number in split_at_blanks(text, line):
            if rows and self._blanks:
                self._tell_blanks(is_last=False)
            if rows:
                yield from decoder.decode(rows, number)
            else:
                self._blanks.append(number)

    def _tell_blanks(self, is_last: bool) -> None:
        lines = f"line {self._blanks[0]} is" if len(self._blanks) == 1 else f"{len(self._blanks)} lines are"
        what = "at the end" if is_last else "the harness refuses the log there"
        message = f"{lines} blank, {what}; no event is lost"
        level = Severity.WARNING if is_last else None
        where = self.log.where(line=self._blanks[0])
        self.findings.append(Finding(rules.BLANK_LINE, message, where, level=level))
        self._blanks.clear()

    def _cut(self, event: Event, through: int, batch: Batch) -> Iterator[Event]:
        for one in event.expand() if isinstance(event, ChunkRun) else ():
            if one.seq <= through:
                self._see(one, batch)
                yield one

    def _tell(self, decoder: RowDecoder) -> None:
        """The findings about the rows as a whole."""
        if self._blanks:
            self._tell_blanks(is_last=True)
        self.stats.dialects = decoder.dialects
        if decoder.projected:
            message = "rows carry neither seq nor time; both were numbered here"
            self.findings.append(Finding(rules.PROJECTED, message, self.log.where()))
        refusal = self.reload_refusal = decoder.refusal
        if refusal is not None:
            message = f"re-loading refuses the log from this row on: {refusal.reason}"
            where = self.log.where(line=refusal.line, seq=refusal.seq)
            details = {"basis": "refused-by", "event": refusal.seq, "error": refusal.reason}
            self.findings.append(Finding(rules.RELOAD_REFUSED, message, where, details))

    def _see(self, event: Event, batch: Batch) -> None:
        stats = self.stats
        stats.events += event.last_seq - stats.last_seq
        stats.last_seq = event.last_seq
        stats.last_time_ms = event.last_time if isinstance(event, ChunkRun) else event.time
        if event.type in self._known:
            return
        kind = self.log.format.classify(event)
        row = batch.row(event.line - batch.line)
        where = self.log.where(frame=row.frame, line=row.line, seq=event.seq)
        if kind == "ignorable":
            self.findings.append(Finding(rules.IGNORED_EVENT, f"unknown ignorable event {event.type!r}", where))
            return
        self.findings.append(Finding(rules.UNKNOWN_EVENT, f"unknown required event {event.type!r}", where))
        if self.fence_seq is None:
            self.fence_seq = event.seq

    def _damage(
        self, batch: Batch, line: int, error: RowRejectedError | ecma.EcmaSyntaxError, batches: Iterator[Batch]
    ) -> None:
        """Classify the suffix that starts at a line: dropped tail, or damage in committed data."""
        expected = self.stopped_at = self.stats.last_seq + 1
        suffix, place = Suffix(), batch.row(line - batch.line)
        for row in chain(islice(batch, line - batch.line, None), *batches):
            suffix.see(row.data)
        where = self.log.where(frame=place.frame, at=place.at, line=line, seq=expected)
        refused = isinstance(error, RowRejectedError) and (
            error.kind == "inadmissible" or (error.kind == "refused" and error.seq == expected)
        )
        rule = rules.REFUSED if refused else rules.DAMAGED if suffix.is_committed else rules.DROPPED_TAIL
        if isinstance(error, BudgetError):
            rule = rules.ROW_TOO_LARGE
        details = suffix.details(expected)
        found = suffix.first_seq
        if not refused and found is not None and found != expected and not suffix.tail:
            row_number = line - (2 if self.log.session_header.raw else 1)
            details["harness"] = f"row {row_number} has seq gap (expected {expected}, got {found})"
        text = suffix.describe(expected, line)
        message = f"{error}; {suffix.rows} rows from line {line} on are not used" if refused else f"{error}; {text}"
        if suffix.is_committed and "harness" in details:
            message += f'; the harness refuses the log ("{details["harness"]}")'
        self.findings.append(Finding(rule, message, where, details))

    def _finish(self, container: ContainerStats) -> None:
        stats = self.stats
        stats.encoding, stats.size_bytes, stats.decoded_bytes = (
            container.encoding,
            container.size_bytes,
            container.decoded_bytes,
        )
        stats.rows, stats.frames, stats.sha256 = container.rows, container.frames, container.sha256
        seed = self.log.session_header.seed_length
        if seed is not None and seed > stats.events and self.through is None and self.stopped_at is None:
            message = f"seedLength is {seed}, the log has {stats.events} events"
            self.findings.append(Finding(rules.SEED_LENGTH, message, self.log.where(line=1)))
        for issue in container.issues:
            self.findings.append(self._container_finding(issue))
            if issue.kind in ("bad-frame", "row-too-large") and self.stopped_at is None:
                self.stopped_at = stats.last_seq + 1

    def _container_finding(self, issue: ContainerIssue) -> Finding:
        """A container issue, with what is readable behind it."""
        where = self.log.where(frame=issue.frame, at=issue.at, line=issue.line)
        if issue.kind != "bad-frame":
            lost = "; no event is lost" if issue.kind in ("zeros", "no-newline") else ""
            return Finding(_CONTAINER_RULES[issue.kind], issue.message + lost, where)
        with self.log.source.open() as stream:
            behind = find_sound_frames(stream, issue.at)
        if behind is None:
            return Finding(rules.BAD_FRAME, f"{issue.message}; no sound frame is behind it", where)
        expected = self.stats.last_seq + 1
        details = {"sound_frames": behind.frames, "at": behind.at, **behind.suffix.details(expected)}
        return Finding(rules.BAD_FRAME, f"{issue.message}; {behind.describe(expected)}", where, details)


def open_log(source: LogSource) -> SessionLog:
    """Read the session header of a log.

    Raises:
        LogError: empty, not a session log, or a format version that this release does not read.
    """
    stats = ContainerStats()
    with source.open() as stream:
        row = next(iter_rows(stream, source.size, stats), None)
    if row is None and source.size == 0:
        raise LogError(f"{source.label}: not a session log: the file is empty")
    try:
        value = None if row is None else ecma.parse(row.data)
    except BudgetError as error:
        raise LogError(f"{source.label}: line 1: {error}") from None
    except ecma.EcmaSyntaxError as error:
        raise _no_log(source, f"line 1 is not JSON ({error})") from None
    if row is None:
        why = f": {stats.issues[0].message}" if stats.issues else ""
        raise _no_log(source, f"it holds no complete row{why}")
    return SessionLog(source, *_session_header(source, value))


def _no_log(source: LogSource, problem: str) -> LogError:
    with source.open() as stream:
        what = describe_head(stream, source.size, source.file_name.endswith(".zstd"), problem)
    return LogError(f"{source.label}: not a session log: {what}")


def _session_header(source: LogSource, value: Json) -> tuple[SessionHeader, list[Finding]]:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise LogError(f"{source.label}: not a session log: line 1 is no session header")
    if value["type"] != "session":
        if not is_projected(value):
            raise LogError(f"{source.label}: line 1 is a {value['type']!r} event, not the session header")
        header = SessionHeader(0, "", 0, None, None, None, None, None, 0, None, {})
        return header, [Finding(rules.NO_SESSION_HEADER, "no session header; format 0 assumed", Where(source.label))]
    version = value.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise LogError(f"{source.label}: the session header has no valid format version")
    if version not in FORMATS:
        known = ", ".join(str(v) for v in SUPPORTED_VERSIONS)
        hint = f"this release reads formats {known}; an upgrade may read it"
        raise LogError(f"{source.label}: format {version} is not supported", hint=hint)
    try:
        return FORMATS[version].parse_session_header(value), []
    except RowRejectedError as error:
        raise LogError(f"{source.label}: the session header is not valid: {error}") from None
