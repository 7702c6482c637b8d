"""Extension fields that plugins append to a DeepSeek request: ``dsh_session_log``, then ``dsh_plugin_packages``.

The first follows from the log: which events the provider had confirmed when the call was prepared, up to the last
event then. A delivery marker proves it; without one a capture tells, and the log says whether that is possible.
The second is a deployment value. Source: spec wire-deepseek 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.wire import plugin_packages, session_log_field
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.body import Body
from dsh_audit.wire.event_window import EventSource, EventWindow, Marker
from dsh_audit.wire.parts import Part, member, merged
from dsh_audit.wire.protocols import PROTOCOLS

_LOG_MEMBER = b',"' + session_log_field.FIELD.encode() + b'":'
_PACKAGES_MEMBER = b',"' + plugin_packages.FIELD.encode() + b'":'
_SEQS = re.compile(rb',"afterSeq":(-?[0-9]{1,16}),"throughSeq":([0-9]{1,16}),"events":\[')
_HEAD_BYTES = 1 << 16
_LATEST = 16
"""How many seqs before a settlement are offered as the end of a field without marker."""


@dataclass(frozen=True, slots=True)
class Span:
    """The events of one ``dsh_session_log``: after one seq (−1: from the start) up to another.

    Args:
        marker_seq: the delivery marker that proves it; None without one.
        prepared: a seq that the log had reached when the call was prepared; past ``through`` only after a cap.
    """

    after: int
    through: int
    marker_seq: int | None = None
    prepared: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Extension:
    """A body with its extension fields.

    Args:
        body: the base body where there are none.
        span: of the session log in it, None without one.
        used: values that are not in the log.
        notes: what limits or explains the fields, one phrase each.
    """

    body: Body
    span: Span | None = None
    used: tuple[Used, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """Names of the extension fields in it."""
        found = ((session_log_field.FIELD, self.span), (plugin_packages.FIELD, self.used))
        return frozenset(name for name, holds in found if holds)


class Extensions:
    """Rebuilds the extension fields of one session's requests; ask in about the order of the log.

    Args:
        log: the generation that was in force when the requests were sent.
        deployment: what the log cannot know.
    """

    def __init__(self, log: EventSource, deployment: Deployment) -> None:
        self._log = log
        self._deployment = deployment
        self._rules = deployment.release_rules(log.version)
        self._inherited = _inherited(log)
        self._window = EventWindow(log, self._rules, self._inherited)
        self.see, self.release = self._window.see, self._window.release
        self._is_off = self._look_up("session_log") == "off"
        self._packages = self._look_up("plugin_packages")

    def extend(self, request: Request, encoded: Encoded, captured: bytes | None = None) -> Extension:
        """A request's body with the extension fields that the log and the deployment give.

        Args:
            request: a request of the log.
            encoded: its base body.
            captured: the body as captured; it decides what the log leaves open.
        """
        assert encoded.body is not None
        return self.extend_rest(request, encoded, None if captured is None else _tail(captured, encoded.body))

    def extend_rest(self, request: Request, encoded: Encoded, tail: bytes | None) -> Extension:
        """The same, by what follows the base body's last member in the captured one, the closing brace included."""
        body = encoded.body
        assert body is not None
        protocol = PROTOCOLS.get(encoded.protocol)
        if protocol is None or not protocol.carries_extensions:
            return Extension(body)
        notes: list[str] = []
        span = self._choose(request, tail, notes)
        log = None if span is None else self._log_member(span)
        if span is not None and log is None:
            notes.append(f"the log lacks events of the range {span.after + 1} to {span.through}")
        packages, used = self._packages_member(0 if log is None else len(log.data), tail, notes)
        members = [part for part in (log, packages) if part is not None]
        extended = body.extended(members) if members else body
        return Extension(extended, None if log is None else span, used, tuple(notes))

    def confirm(self, request: Request, span: Span | None, rest: bytes) -> tuple[str, ...]:
        """Notes on a captured body that starts with the one that the log gives; ``rest`` follows its last member."""
        notes: list[str] = []
        if span is not None:
            self._allow(request, span, notes)
        if not isinstance(self._packages, list):
            self._packages_member(0, rest, notes)
        return tuple(notes)

    def spans(self, request: Request) -> Iterator[Span]:
        """The ranges that a request's session log can have had by the log alone, best first; none: no field."""
        if self._is_off:
            return
        limits = _limits(request)
        proven = [marker for marker in self._markers(request) if marker.counts]
        for marker in proven:
            first, last = self._prepared(request, marker, limits)
            for after in self._window.confirmations(first, last):
                if after < marker.through:
                    yield Span(after, marker.through, marker.seq, first)
        if proven or not self._may_be_unmarked(request):
            return
        last = limits[1]
        first = max(self._opening(request, last), limits[0], last - _LATEST)
        ends = range(first, last + 1) if _is_racing(request) else range(last, first - 1, -1)
        for prepared in ends:
            after = self._window.confirmed(prepared)
            through = self._capped(after, prepared)
            if through > after:
                yield Span(after, through, None, prepared)

    def is_expected(self) -> bool:
        """Whether requests without marker may have carried the field: on by default since format 4, else shown."""
        if self._is_off:
            return False
        return self._rules.sends_session_log or self._look_up("session_log") == "on" or bool(self._window.markers)

    def foreign_to(self, request: Request) -> str | None:
        """The other session that the delivery marker of a request names; None when none does."""
        foreign = self._window.foreign
        return next((foreign[seq] for seq in request.dispatch.marker_seqs if seq in foreign), None)

    def markers(self, request: Request) -> tuple[Marker, ...]:
        """The delivery markers that may be the request's, read from the log."""
        return tuple(self._markers(request))

    def explain(self, request: Request, after: int, through: int) -> Span | None:
        """The range that a captured field names, where the log allows a request to carry it; else None."""
        return self._allow(request, Span(after, through), [])

    def value(self, span: Span) -> bytes | None:
        """The value of ``dsh_session_log``; None when the log lacks some of the events."""
        part = self._log_member(span)
        return None if part is None else part.value

    def measure(self, span: Span) -> int | None:
        """Bytes of that value; None when the log lacks some of the events."""
        part = self._log_member(span)
        return None if part is None else len(part.data) - part.lead

    def _choose(self, request: Request, tail: bytes | None, notes: list[str]) -> Span | None:
        """The range to rebuild: the captured one where the log allows it, else the log's own."""
        named = None if tail is None else sent_span(tail)
        sent = None if named is None else Span(*named)
        if tail is not None and sent is None and not self._markers(request):
            return None
        if sent is not None:
            allowed = self._allow(request, sent, notes)
            if allowed is not None:
                return allowed
            notes.append(f"the log allows no afterSeq {sent.after} with throughSeq {sent.through} here")
        elif not self._markers(request):
            return self._assume(request, notes)
        return next(self.spans(request), None)

    def _assume(self, request: Request, notes: list[str]) -> Span | None:
        """The range of a request without marker: the likeliest one where the deployment says that it was sent."""
        span = next(self.spans(request), None) if self._look_up("session_log") == "on" else None
        if span is not None:
            notes.append(f"no delivery marker: that dsh_session_log ends with seq {span.through} is a guess")
        elif self._may_be_unmarked(request) and self.is_expected():
            notes.append("no delivery marker: whether dsh_session_log was sent is not logged")
        return span

    def _allow(self, request: Request, sent: Span, notes: list[str]) -> Span | None:
        """Whether a call prepared somewhere in its possible interval can have sent a range."""
        limits = _limits(request)
        for marker in self._markers(request):
            first, last = self._prepared(request, marker, limits)
            is_its = marker.counts and marker.through == sent.through
            if is_its and sent.after in self._window.confirmations(first, last):
                self._note_cap(sent, first, notes)
                return Span(sent.after, sent.through, marker.seq, first)
        if not self._may_be_unmarked(request) or self._markers(request) or sent.through > limits[1]:
            return None
        first = max(self._opening(request, limits[1]), limits[0])
        if sent.after not in self._window.confirmations(max(first, sent.through), limits[1]):
            return None
        if sent.through < first and not self._may_be_capped(sent, first, notes):
            return None
        return Span(sent.after, sent.through, None, max(first, sent.through))

    def _may_be_capped(self, sent: Span, first: int, notes: list[str]) -> bool:
        """Whether the size cap can have cut an unmarked field: any cap can where the deployment names none."""
        if self._look_up("session_log_max_bytes") is None and self._limit() is not None:
            self._note_cap(sent, first, notes)
            return True
        return self._capped(sent.after, first) == sent.through

    def _note_cap(self, sent: Span, first: int, notes: list[str]) -> None:
        if sent.through < first and self._capped(sent.after, first) != sent.through:
            notes.append(f"dsh_session_log ends before seq {first}: a smaller maxBytes than assumed")

    def _prepared(self, request: Request, marker: Marker, limits: tuple[int, int]) -> tuple[int, int]:
        """The first and last seq that may have been the log's end when a marked call was prepared."""
        last = marker.seq - 1
        return max(limits[0], min(self._opening(request, last), last), marker.through), last

    def _opening(self, request: Request, before: int) -> int:
        """The last seq up to ``before`` that the call must have seen; −1 when there is none."""
        # Steps go on while a one-shot call is out: only its own opening bounds it.
        return self._window.opening(before) if request.dispatch.kind == "step" else request.dispatch.opened_seq

    def _markers(self, request: Request) -> list[Marker]:
        seqs = request.dispatch.marker_seqs
        if seqs:
            self._window.advance(max(seqs))
        return [self._window.markers[seq] for seq in seqs if seq in self._window.markers]

    def _may_be_unmarked(self, request: Request) -> bool:
        """Whether a request without marker may still have carried the field: its answer was no 2xx, or none came."""
        dispatch = request.dispatch
        return dispatch.wire.maximum > 0 and dispatch.outcome not in ("completed", "interrupted")

    def _capped(self, after: int, prepared: int) -> int:
        """The last seq of a field prepared at a seq: what the size cap leaves."""
        limit = self._limit()
        events = None if limit is None else self._window.pieces(after, prepared)
        if limit is None or events is None:
            return prepared
        through, size = after, len(self._head(after, 0, prepared)) + 1
        for data, seq in events:
            size += len(data) + (through != after)
            if size + len(str(seq)) > limit:
                return through
            through = after + 1 if seq is None else seq
        return through

    def _look_up(self, key: str) -> Json:
        """A setting of this log's format, else of all."""
        own = self._deployment.look_up("extensions", "formats", str(self._log.version), key)
        return self._deployment.look_up("extensions", key) if own is None else own

    def _limit(self) -> int | None:
        value = self._look_up("session_log_max_bytes")
        if value is not None:
            return int(value)
        return self._rules.session_log_bytes

    def _head(self, after: int, through: int, prepared: int) -> bytes:
        self._window.advance(prepared)
        end_seed = self._window.first_end_seed
        return session_log_field.field_head(
            self._log.session_header,
            self._rules,
            after,
            through,
            inherited=self._inherited,
            is_loaded=end_seed is not None and end_seed <= prepared,
        )

    def _log_member(self, span: Span) -> Part | None:
        events = self._window.pieces(span.after, span.through)
        if events is None:
            return None
        head = self._head(span.after, span.through, max(span.through, span.prepared))
        return merged("tail", session_log_field.FIELD, (session_log_field.FIELD,), _LOG_MEMBER, head, events, b"]}")

    def _packages_member(self, at: int, tail: bytes | None, notes: list[str]) -> tuple[Part | None, tuple[Used, ...]]:
        """The deployment's packages; without them look at the captured ones, which stand at ``at`` of the tail."""
        if isinstance(self._packages, list):
            value = plugin_packages.encode_packages(self._packages)
            used = Used("extensions.plugin_packages", self._packages, "deployment")
            return member(plugin_packages.FIELD, value, None, "tail"), (used,)
        if tail is not None and tail.startswith(_PACKAGES_MEMBER, at):
            _packages, problem = plugin_packages.parse_packages(tail[at + len(_PACKAGES_MEMBER) : -1])
            if problem is not None:
                notes.append(f"{plugin_packages.FIELD}: {problem}")
        return None, ()


def _limits(request: Request) -> tuple[int, int]:
    """The first and last seq that the log can have ended with when the call was prepared, by its dispatch."""
    dispatch = request.dispatch
    if dispatch.kind == "step":
        return 0, dispatch.prefix_seq
    last = dispatch.opened_seq + _LATEST
    if dispatch.settled_seq is not None:
        last = min(last, dispatch.settled_seq - 1)
    return dispatch.opened_seq, last


def _is_racing(request: Request) -> bool:
    return request.dispatch.kind == "title"


def _inherited(log: EventSource) -> int | None:
    header = log.session_header
    if header.version < 2:
        return header.seed_length
    return log.own_from() if header.is_seeded else None


def _tail(captured: bytes, body: Body) -> bytes | None:
    """What follows the base body's last member, the closing brace included; None when the base body differs."""
    at = body.size_bytes - 1
    if captured[at : at + 1] not in (b",", b"}"):
        return None
    return captured[at:]


def sent_span(tail: bytes) -> tuple[int, int] | None:
    """The range that a captured field right behind the base body names: after one seq, up to another."""
    if not tail.startswith(_LOG_MEMBER):
        return None
    found = _SEQS.search(tail, 0, _HEAD_BYTES)
    return None if found is None else (int(found[1]), int(found[2]))
