"""Where sessions lie: under the wrong key, under two keys, beside copies that go on, without their parent.

It needs other sessions, and what was found on disk beside them, as values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from dsh_audit.errors import LogError
from dsh_audit.finding import Finding, Severity, Where
from dsh_audit.log.session_log import LogSource, open_log
from dsh_audit.log.strays import Stray, project_key, session_segment
from dsh_audit.record import dataclass
from dsh_audit.replay.inspection import Inspection
from dsh_audit.rules import lint as rules
from dsh_audit.rules.wire import DUPLICATE_SESSION


@dataclass(frozen=True, slots=True)
class Placed:
    """A session with its place.

    Args:
        source: of its log.
        session_id: that the log names.
        cwd: that it names.
        inspection: None where the log cannot be read on.
    """

    source: str
    session_id: str
    cwd: str | None
    inspection: Inspection | None = None

    @property
    def folder(self) -> PurePosixPath:
        """Of the session."""
        return PurePosixPath(self.source.replace("!", "/")).parent

    @property
    def is_in_home(self) -> bool:
        """Whether the folder above is one of a project."""
        name = self.folder.parent.name
        return name == "_no-cwd" or (len(name) > 4 and name.startswith("--") and name.endswith("--"))


def check_placement(
    inspections: Sequence[Inspection], strays: Sequence[Stray], is_here: Callable[[str, str], bool]
) -> list[Finding]:
    """What is wrong with the places of the sessions that were named.

    Args:
        strays: what lies beside them.
        is_here: (source of a log, session id): whether a log of that session lies in the home of the log.
    """
    placed = [
        Placed(one.log.source.label, one.log.session_id, one.log.session_header.cwd, one)
        for one in inspections
        if one.log.session_header.raw
    ]
    found = [finding for one in placed if one.is_in_home for finding in _misplaced(one)]
    return [*found, *check_marked(strays), *_duplicates(placed), *_copies(placed, strays), *_parents(placed, is_here)]


def check_marked(strays: Iterable[Stray]) -> list[Finding]:
    """The places of files that cannot be read as logs but name a session."""
    marked = [Placed(*each) for stray in strays for each in stray.marked]
    return [finding for one in marked if one.is_in_home for finding in _misplaced(one)]


def _misplaced(one: Placed) -> Iterator[Finding]:
    key, segment = project_key(one.cwd), session_segment(one.session_id)
    is_key, is_segment = one.folder.parent.name == key, one.folder.name == segment
    if is_key and is_segment:
        return
    what = [] if is_key else [f"its cwd {one.cwd} has the key {key}, it lies under {one.folder.parent.name}"]
    what += [] if is_segment else [f"its id {one.session_id} has the folder {segment}, it lies in {one.folder.name}"]
    details = {"basis": "refused-by", "expected": f"{key}/{segment}", "cwd": one.cwd}
    message = f"misplaced: {'; '.join(what)}: the harness refuses it there"
    yield Finding(rules.MISPLACED, message, Where(one.source, one.session_id), details)


def _duplicates(placed: Iterable[Placed]) -> Iterator[Finding]:
    """One id twice below one root; the copy in the right place, else the first, is the one that the others repeat."""
    groups: dict[tuple[str, str], list[Placed]] = defaultdict(list)
    for one in placed:
        if one.is_in_home:
            groups[str(one.folder.parent.parent), one.session_id].append(one)
    for group in groups.values():
        right = next((one for one in group if not list(_misplaced(one))), group[0])
        for other in group:
            if other is not right and right.inspection is not None and other.inspection is not None:
                more = _relation(right.inspection, other.inspection)
                message = f"duplicate: session {right.session_id} lies in {right.folder}, too; this copy {more[0]}"
                details = {"basis": "refused-by", "other": right.source, "more_events": more[1]}
                yield Finding(DUPLICATE_SESSION, message, Where(other.source, other.session_id), details)


def _relation(log: Inspection, copy: Inspection) -> tuple[str, int]:
    return describe_copy(log, copy.stats.last_seq, lambda: _time_at(copy.log.source, log.stats.last_seq))


def describe_copy(log: Inspection, last_seq: int, time_at_end: Callable[[], float | None]) -> tuple[str, int]:
    """How a copy relates to the log, and how many events more it has.

    Args:
        last_seq: of the copy.
        time_at_end: time of the event in the copy that stands where the log ends.
    """
    more = last_seq - log.stats.last_seq
    if more <= 0:
        return "holds nothing more" if not more else f"ends {-more} events before it", max(0, more)
    if time_at_end() != log.stats.last_time_ms:
        return f"is another history, of {last_seq + 1} events", 0
    return f"goes on for {more} more {'event' if more == 1 else 'events'}, through seq {last_seq}", more


def _time_at(source: LogSource, seq: int) -> float | None:
    return next((event.time for event in open_log(source).events() if event.seq == seq), None)


def _copies(placed: Iterable[Placed], strays: Iterable[Stray]) -> Iterator[Finding]:
    in_order = sorted(placed, key=lambda one: not (one.is_in_home and any(_misplaced(one))))
    logs = {one.session_id: one.inspection for one in in_order if one.inspection is not None}
    for stray in strays:
        if not stray.has_log and (stray.copies or stray.has_lock):
            names = ", ".join(PurePosixPath(copy.label).name for copy in stray.copies) or "only a lock"
            message = f"no log lies here: {names}"
            yield Finding(rules.NO_LOG, message, Where(stray.folder), {"basis": "log", "has_lock": stray.has_lock})
        for copy in stray.copies:
            yield _copy(copy, logs)


def _copy(copy: LogSource, logs: dict[str, Inspection]) -> Finding:
    name = PurePosixPath(copy.label).name
    try:
        other = open_log(copy)
        reader = other.events()
        for _ in reader.runs():
            pass
    except LogError as error:
        why = error.message.removeprefix(f"{copy.label}: ").removeprefix("not a session log: ")
        message = f"{name} is no log: {why}"
        return Finding(rules.COPY, message, Where(copy.label), {"basis": "log"}, Severity.INFO)
    log = logs.get(other.session_id)
    where = Where(copy.label, other.session_id)
    details = {"basis": "log", "events": reader.stats.events, "last_seq": reader.stats.last_seq}
    if log is None:
        message = f"{name}: a copy of session {other.session_id} with {reader.stats.events} events; its log is not here"
        return Finding(rules.COPY, message, where, details)
    text, more = describe_copy(log, reader.stats.last_seq, lambda: _time_at(copy, log.stats.last_seq))
    message = f"{name}: a copy of session {other.session_id} {text}"
    level = Severity.WARNING if more or "another" in text else Severity.INFO
    return Finding(rules.COPY, message, where, {**details, "log": log.log.source.label, "more_events": more}, level)


def _parents(placed: Sequence[Placed], is_here: Callable[[str, str], bool]) -> Iterator[Finding]:
    known = {one.session_id for one in placed}
    for one in placed:
        header = one.inspection.log.session_header if one.inspection is not None else None
        parent = header.parent_session if header is not None else None
        if parent is None or parent in known or is_here(one.source, parent):
            continue
        message = f"the parent {parent} is not here" + (f"; origin {header.origin}" if header and header.origin else "")
        yield Finding(rules.NO_PARENT, message, Where(one.source, one.session_id), {"basis": "log", "parent": parent})
