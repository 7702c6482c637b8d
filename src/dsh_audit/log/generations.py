"""A session across its generations: which log holds each request *as it was sent*.

A log of a newer format that continues an older one holds the old history migrated, and nothing in it marks the
border. Requests made before the migration were sent by the old adapter from the old log. So each generation is asked
only for what was native to it: the border is where the log stops being equal to the migrated predecessor.
Source: spec session-log 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dsh_audit.events import Json, as_object
from dsh_audit.finding import Finding
from dsh_audit.formats.migrate import MigrationRefusedError, migrate, same_event
from dsh_audit.log.session_log import END_SEED, SessionLog
from dsh_audit.record import dataclass
from dsh_audit.rules import log as rules

if TYPE_CHECKING:
    from dsh_audit.attachments.store import AttachmentStore

_MARKER = "session-log-deepseek/delivery-accepted"


@dataclass(frozen=True, slots=True)
class Generation:
    """One log and the part of the session that it holds as it was sent.

    Args:
        log: the log.
        native_from: seq of its first event that was not migrated from an older generation.
        migrated_until: first seq that is not known to be migrated, where no predecessor can be asked: requests
            before it are "as migrated, not as sent". 0 when nothing suggests a migration.
    """

    log: SessionLog
    native_from: int = 0
    migrated_until: int = 0


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """The generations of one session, oldest first; the last one is current.

    Args:
        attachments: of the home that the session lies in; None where it lies in none.
    """

    generations: tuple[Generation, ...]
    findings: tuple[Finding, ...] = ()
    attachments: AttachmentStore | None = None

    @property
    def current(self) -> SessionLog:
        """The log that was asked for."""
        return self.generations[-1].log


def build_history(log: SessionLog, predecessors: Sequence[SessionLog] = ()) -> SessionHistory:
    """Find out which generation holds which part of a session.

    Args:
        log: the generation asked for.
        predecessors: older generations of the same session, newest first.
    """
    chain: list[Generation] = []
    findings: list[Finding] = []
    for older in predecessors:
        border, problem, is_damaged = _compare(log, older)
        if problem is not None:
            message = f"not a continuation of {older.source.label}: {problem}"
            findings.append(Finding(rules.PREDECESSOR_MISMATCH, message, log.where()))
            continue
        # The harness migrates no damaged log, so it migrated more than what is left to compare.
        chain.append(Generation(log, border, max(border, find_migrated_end(log)) if is_damaged else 0))
        log = older
    chain.append(Generation(log, 0, find_migrated_end(log)))
    if chain[-1].migrated_until:
        message = f"events before seq {chain[-1].migrated_until} were migrated, and the older log is not here"
        findings.append(Finding(rules.AS_MIGRATED, message, log.where()))
    return SessionHistory(tuple(reversed(chain)), tuple(findings))


def find_border(log: SessionLog, older: SessionLog) -> tuple[int, str | None]:
    """Where a log stops being its predecessor.

    Returns:
        the seq of the first native event, and None; or 0 and what differs.
    """
    border, problem, _ = _compare(log, older)
    return border, problem


def _compare(log: SessionLog, older: SessionLog) -> tuple[int, str | None, bool]:
    """As ``find_border``; and whether the predecessor is damaged, so that the border may lie further on."""
    if log.session_id != older.session_id:
        return 0, f"session {older.session_id} is another session", False
    if older.version >= log.version:
        return 0, f"it holds format {older.version}", False
    border = 0
    events = iter(log.events())
    reader = older.events()
    # Child catalogs count as native.
    migrated = migrate(reader, older.session_header, log.version).events
    try:
        for expected in migrated:
            actual = next(events, None)
            if actual is None or not same_event(expected, actual):
                return 0, f"seq {expected.seq} is not what the migration gives", False
            border = expected.seq + 1
    except MigrationRefusedError as error:
        return 0, f"the harness would not migrate it ({error})", False
    return border, None, any(finding.rule in (rules.DAMAGED, rules.REFUSED) for finding in reader.findings)


def find_migrated_end(log: SessionLog) -> int:
    """A lower bound of the migrated part of a log whose predecessor is missing.

    The evidence is markers that name an older format, system messages with ids that only the migration makes, and in
    format 4 finished answers without a replay state, which every adapter of its releases logs (334 of 334 in runs);
    the migrated part then ends at the next ``session/end-seed``, which every resume writes.
    """
    # Most logs were never resumed: one search over their text ends it.
    if log.version < 2 or next(log.rows_with(END_SEED), None) is None:
        return 0
    needles = [END_SEED, b'"' + _MARKER.encode() + b'"', b'"v2-to-v3-system-']
    if log.version >= 4:
        needles.append(b'"assistant/message"')
    suspect, end = False, 0
    for row in log.rows_with(*needles, but=b'"replayState"'):
        if row["type"] == "session/end-seed":
            end, suspect = (row["seq"], False) if suspect else (end, False)
        else:
            suspect = suspect or _is_of_migration(row, log.version)
    return end


def _is_of_migration(row: dict[str, Json], version: int) -> bool:
    """Whether a row says that it was written for an older format."""
    data = as_object(row.get("data"))
    message = as_object(data.get("message"))
    if row["type"] == _MARKER:
        return bool(data.get("sessionFormatVersion", 0) != version)
    if row["type"] == "system/message":
        ident = message.get("id")
        return isinstance(ident, str) and ident.startswith("v2-to-v3-system-")
    source = message.get("source")
    is_answer = row["type"] == "assistant/message" and version >= 4 and data.get("interrupted") is not True
    return is_answer and isinstance(source, dict) and "replayState" not in source
