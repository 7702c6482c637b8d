"""Extension fields: the session log rebuilt from the log alone or as a capture names it; plugin packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_audit.deployment import Deployment, Used
from dsh_audit.dispatch.model import Dispatch, WireCount
from dsh_audit.events import APPEND, Event, Json, SessionHeader, SurfaceOp
from dsh_audit.projection.state import SessionState
from dsh_audit.releases import rules_of_format
from dsh_audit.request.neutral import Request
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.event_window import EventWindow
from dsh_audit.wire.extensions import Extensions, Span
from dsh_audit.wire.plugin_packages import encode_packages, parse_packages
from dsh_audit.wire.session_log_field import MARKER, encode_event, field_head

BASE = b'{"model":"m"}'


def session_header(version: int = 4, **more: Any) -> SessionHeader:
    """A session header; keyword arguments replace members."""
    seeded = None if version < 2 else False
    return replace(SessionHeader(version, "s", 5, "/w", None, None, seeded, None, 0, None, {}), **more)


@dataclass
class ToyLog:
    """A log in memory that counts its passes."""

    session_header: SessionHeader = field(default_factory=session_header)
    items: list[Event] = field(default_factory=list)
    inherited: int = 0
    passes: int = 0

    @property
    def version(self) -> int:
        return self.session_header.version

    @property
    def session_id(self) -> str:
        return self.session_header.id

    def events(self) -> Iterable[Event]:
        self.passes += 1
        return iter(list(self.items))

    def own_from(self) -> int:
        return self.inherited

    def add(self, kind: str, data: Json = None, **more: Any) -> int:
        """Append an event; returns its seq."""
        self.items.append(Event(kind, len(self.items), 7, {} if data is None else data, **more))
        return len(self.items) - 1

    def mark(self, through: int, session: str = "s", version: int | None = 4) -> int:
        """Append a delivery marker."""
        data: dict[str, Json] = {"sessionId": session, "throughSeq": through}
        if version is not None:
            data["sessionFormatVersion"] = version
        return self.add(MARKER, data)


def request(
    log: ToyLog, prefix_seq: int, *markers: int, outcome: Any = "completed", kind: Any = "step", **more: Any
) -> Request:
    """A request of a toy log."""
    opened = more.pop("opened", prefix_seq + 1)
    settled = more.pop("settled", prefix_seq + 1)
    wire = WireCount(1, 1, "test")
    dispatch = Dispatch(kind, 1, 1, 1, prefix_seq, opened, settled, wire, outcome, marker_seqs=markers)
    snapshot = SessionState(log.version).snapshot()
    return Request(dispatch, log.session_header, "step", "p", "m", {}, None, None, None, None, snapshot)


def encoded(protocol: str = "deepseek-messages") -> Encoded:
    """A base body."""
    return Encoded(protocol, "bytes", parse_parts(BASE))


def field_bytes(log: ToyLog, after: int, through: int, **more: Any) -> bytes:
    """The value as the rules say, printed in one go."""
    form = log.version
    rules = rules_of_format(form)
    inherited, is_loaded = more.pop("inherited", None), more.pop("is_loaded", False)
    data = field_head(log.session_header, rules, after, through, inherited=inherited, is_loaded=is_loaded)
    head = ecma.parse(data + b"]}")
    head["events"] = [ecma.parse(encode_event(event, form, rules)) for event in log.items[after + 1 : through + 1]]
    return ecma.stringify(head)


def with_log(value: bytes, packages: bytes | None = None) -> bytes:
    """The base body with extension members."""
    tail = b"" if packages is None else b',"dsh_plugin_packages":' + packages
    return BASE[:-1] + b',"dsh_session_log":' + value + tail + b"}"


_UNCAPPED = Deployment({"extensions": {"session_log_max_bytes": 1 << 20}})


def toy_log() -> tuple[ToyLog, list[Request]]:
    """Two answered steps: seqs 0-2 and marker 3, settlement 4; 5-6 and marker 7, settlement 8."""
    log = ToyLog()
    log.add("turn/start", {"turn": 1})
    log.add("step/start", {"turn": 1, "step": 1})
    log.add("user/message", {"content": []}, surface_op=APPEND)
    log.mark(2)
    log.add("assistant/message", {"x": 1}, surface_op=APPEND)
    log.add("step/end")
    log.add("step/start", {"turn": 1, "step": 2})
    log.mark(6)
    log.add("assistant/message", {"x": 2}, surface_op=APPEND)
    return log, [request(log, 3, 3), request(log, 7, 7)]


EVENT = Event("user/message", 3, 9, {"a": 1}, surface_op=APPEND)


@pytest.mark.parametrize(
    ("version", "event", "expected"),
    [
        (0, EVENT, '{"type":"user/message","seq":3,"time":9,"data":{"a":1},"surfaceOp":"append"}'),
        (4, EVENT, '{"seq":3,"time":9,"data":{"a":1},"type":"user/message","surfaceOp":"append"}'),
        (
            0,
            EVENT.changed(source_event_seqs=(1, 2), surface_op=SurfaceOp("replace", 1, 2), order=("type",)),
            '{"type":"user/message","seq":3,"time":9,"data":{"a":1},"sourceEventSeqs":[1,2],'
            '"surfaceOp":{"op":"replace","start":1,"end":2}}',
        ),
        (
            3,
            EVENT.changed(source_event_seqs=(1, 2), surface_op=SurfaceOp("replace", 2, 1)),
            '{"seq":3,"time":9,"data":{"a":1},"type":"user/message",'
            '"surfaceOp":{"op":"replace","startSeq":2,"endSeq":1},"sourceEventSeqs":[1,2]}',
        ),
        (
            0,
            EVENT.changed(type="assistant/message", source_event_seqs=()),
            '{"type":"assistant/message","seq":3,"time":9,"data":{"a":1},"sourceEventSeqs":[],"surfaceOp":"append"}',
        ),
        (
            3,
            EVENT.changed(type="assistant/message", source_event_seqs=(1,)),
            '{"seq":3,"time":9,"data":{"a":1},"type":"assistant/message","surfaceOp":"append"}',
        ),
        (
            4,
            Event("x/odd", 3, 9, None, ignorable=True, source_event_seqs=(2, 1), opaque_op={"op": "?"}),
            '{"seq":3,"time":9,"data":null,"ignorable":true,"type":"x/odd","surfaceOp":{"op":"?"},'
            '"sourceEventSeqs":[2,1]}',
        ),
        (
            4,
            Event("turn/start", 3, 9, {}, ignorable=True, source_event_seqs=(1,)),
            '{"seq":3,"time":9,"data":{},"ignorable":true,"type":"turn/start"}',
        ),
        (
            2,
            Event("x/odd", 3, 9, {}, ignorable=True, source_event_seqs=(1,)),
            '{"type":"x/odd","seq":3,"time":9,"data":{},"ignorable":true}',
        ),
    ],
)
def test_events(version: int, event: Event, expected: str) -> None:
    assert encode_event(event, version, rules_of_format(version)).decode() == expected


@pytest.mark.parametrize(
    ("header", "inherited", "is_loaded", "expected"),
    [
        (
            session_header(0),
            None,
            False,
            '{"version":1,"session":{"version":0,"id":"s","createdAt":5,"cwd":"/w"},"afterSeq":-1,"throughSeq":2,"events":[',
        ),
        (
            session_header(3, cwd=None),
            None,
            True,
            '{"version":1,"sessionFormatVersion":3,"session":{"version":3,"id":"s","createdAt":5,'
            '"delegationDepth":0},"afterSeq":-1,"throughSeq":2,"events":[',
        ),
        (
            session_header(
                4, parent_session="p", is_seeded=True, origin="subagent", delegation_depth=1, agent_preset="a"
            ),
            7,
            False,
            '{"version":1,"sessionFormatVersion":4,"session":{"version":4,"id":"s","createdAt":5,"cwd":"/w",'
            '"parentSession":"p","seedLength":7,"origin":"subagent","delegationDepth":1,"agentPreset":"a"},'
            '"afterSeq":-1,"throughSeq":2,"events":[',
        ),
    ],
)
def test_head(header: SessionHeader, inherited: int | None, is_loaded: bool, expected: str) -> None:
    rules = rules_of_format(header.version)
    assert field_head(header, rules, -1, 2, inherited=inherited, is_loaded=is_loaded).decode() == expected


def test_markers_prove_the_fields() -> None:
    log, requests = toy_log()
    extensions = Extensions(log, Deployment())
    for item, span in zip(requests, (Span(-1, 2, 3), Span(2, 6, 7)), strict=True):
        extension = extensions.extend(item, encoded())
        assert extension.span == span
        value = field_bytes(log, span.after, span.through)
        assert extension.body.to_bytes() == with_log(value)
        assert extensions.measure(span) == len(value)
    assert log.passes == 1


def test_fragments_name_their_events() -> None:
    log, requests = toy_log()
    body = Extensions(log, Deployment()).extend(requests[1], encoded()).body
    data = body.to_bytes()
    assert body.seq_at(data.index(b'"step":2')) == 6
    assert body.seq_at(data.index(b'"afterSeq"')) is None


def test_a_capture_that_agrees_is_identical() -> None:
    log, requests = toy_log()
    extensions = Extensions(log, Deployment())
    captured = with_log(field_bytes(log, 2, 6))
    extension = extensions.extend(requests[1], encoded(), captured)
    assert extension.body.to_bytes() == captured
    assert extension.notes == ()


@pytest.mark.parametrize(("after", "through"), [(-1, 6), (2, 5), (1, 6), (2, 7), (6, 6)])
def test_a_range_the_log_does_not_allow_is_not_taken(after: int, through: int) -> None:
    log, requests = toy_log()
    captured = with_log(field_bytes(log, after, through))
    extension = Extensions(log, Deployment()).extend(requests[1], encoded(), captured)
    assert extension.span == Span(2, 6, 7)
    assert "the log allows no" in extension.notes[0]
    assert extension.body.to_bytes() != captured


def test_the_highest_confirmation_counts_not_the_last() -> None:
    log = ToyLog()
    for _ in range(6):
        log.add("turn/start")
    log.mark(5)
    log.mark(2)
    log.add("step/start")
    marker = log.mark(8)
    assert Extensions(log, Deployment()).extend(request(log, 9, marker), encoded()).span == Span(5, 8, 9)


@pytest.mark.parametrize(
    ("version", "marker", "after"),
    [
        (4, {"session": "other"}, -1),
        (4, {"version": 3}, -1),
        (4, {"version": None}, -1),
        (3, {"version": 3}, 0),
        (0, {"version": None}, 0),
    ],
)
def test_only_markers_of_this_session_and_format_count(version: int, marker: dict[str, Any], after: int) -> None:
    log = ToyLog(session_header(version))
    log.add("turn/start")
    log.mark(0, **marker)
    log.add("step/start")
    own = log.mark(2, version=None if version == 0 else version)
    assert Extensions(log, Deployment()).extend(request(log, 3, own), encoded()).span == Span(after, 2, 3)


def _unmarked(outcome: str) -> tuple[ToyLog, Request]:
    log, _ = toy_log()
    log.add("step/start")
    log.add("request/header")
    log.add("session/title")
    log.add("assistant/attempt")
    return log, request(log, 11, outcome=outcome)


def test_a_failed_attempt_offers_the_last_events() -> None:
    log, failed = _unmarked("failed")
    extensions = Extensions(log, Deployment())
    assert list(extensions.spans(failed)) == [Span(6, 11), Span(6, 10)]
    extension = extensions.extend(failed, encoded())
    assert extension.body.to_bytes() == BASE
    assert "not logged" in extension.notes[0]
    exact = Extensions(log, _UNCAPPED)
    for through, is_allowed in ((11, True), (10, True), (9, False), (12, False)):
        captured = with_log(field_bytes(log, 6, through))
        extension = exact.extend(failed, encoded(), captured)
        assert (extension.body.to_bytes() == captured) is is_allowed
    capped = with_log(field_bytes(log, 6, 8))
    extension = extensions.extend(failed, encoded(), capped)
    assert extension.body.to_bytes() == capped and "a smaller maxBytes" in extension.notes[0]


def test_an_answer_without_marker_had_no_field() -> None:
    log, answered = _unmarked("completed")
    extensions = Extensions(log, Deployment())
    assert list(extensions.spans(answered)) == []
    assert extensions.extend(answered, encoded()).notes == ()
    captured = with_log(field_bytes(log, 6, 11))
    extension = extensions.extend(answered, encoded(), captured)
    assert extension.body.to_bytes() == BASE
    assert "the log allows no" in extension.notes[0]


def test_a_captured_request_without_the_field_stays_without() -> None:
    log, failed = _unmarked("failed")
    extension = Extensions(log, Deployment()).extend(failed, encoded(), BASE)
    assert (extension.body.to_bytes(), extension.notes) == (BASE, ())


def test_switched_off() -> None:
    log, failed = _unmarked("failed")
    extensions = Extensions(log, Deployment({"extensions": {"session_log": "off"}}))
    assert list(extensions.spans(failed)) == []
    assert extensions.extend(failed, encoded()).notes == ()


def test_a_base_body_that_differs_is_left_alone() -> None:
    log, failed = _unmarked("failed")
    captured = b'{"model":"other","dsh_session_log":{}}'
    assert Extensions(log, Deployment()).extend(failed, encoded(), captured).body.to_bytes() == BASE


def test_one_shot_calls_see_their_own_opening() -> None:
    log, _ = toy_log()
    title = log.add("session/title-llm-request")
    log.add("agent/inbox/spliced")
    captured = with_log(field_bytes(log, 6, 10))
    call = request(log, title, kind="title", outcome="open", opened=title, settled=None)
    assert Extensions(log, Deployment()).extend(call, encoded(), captured).body.to_bytes() == captured
    early = with_log(field_bytes(log, 6, 8))
    assert Extensions(log, _UNCAPPED).extend(call, encoded(), early).body.to_bytes() != early


def test_two_titles_with_equal_ends() -> None:
    log, _ = toy_log()
    title = log.add("session/title-llm-request")
    first, second = log.mark(9), log.mark(9)
    call = request(log, title, first, second, kind="title", opened=title, settled=None)
    assert next(Extensions(log, Deployment()).spans(call)) == Span(6, 9, 10)


def test_a_marker_that_lands_between_preparation_and_acceptance() -> None:
    log = ToyLog()
    log.add("step/start")
    log.add("session/title-llm-request")
    title, step = log.mark(1), log.mark(0)
    extensions = Extensions(log, Deployment())
    assert extensions.extend(request(log, 3, step), encoded()).span == Span(-1, 0, 3)
    late = ToyLog()
    late.add("step/start")
    late.add("session/title-llm-request")
    late.mark(1)
    late.add("step/start")
    second = late.mark(3)
    assert Extensions(late, Deployment()).extend(request(late, 4, second), encoded()).span == Span(1, 3, 4)
    assert title == 2


def test_a_title_that_is_accepted_after_the_loop_went_on() -> None:
    log = ToyLog()
    log.add("step/start")
    opened = log.add("session/title-llm-request")
    log.mark(1)
    log.add("assistant/message")
    late = log.mark(1)
    title = request(log, opened, late, kind="title", opened=opened, settled=None)
    extensions = Extensions(log, Deployment())
    assert next(extensions.spans(title)) == Span(-1, 1, late)
    assert extensions.explain(title, -1, 1) == Span(-1, 1, late)
    refused = request(log, opened, kind="title", opened=opened, settled=None, outcome="open")
    assert next(extensions.spans(refused)) == Span(-1, 1, None)


def test_a_field_without_marker_is_a_guess_that_the_deployment_may_ask_for() -> None:
    log, failed = _unmarked("failed")
    silent = Extensions(log, Deployment()).extend(failed, encoded())
    assert (silent.body.to_bytes(), silent.span) == (BASE, None)
    extensions = Extensions(log, Deployment({"extensions": {"session_log": "on"}}))
    assumed = extensions.extend(failed, encoded())
    assert assumed.span == next(extensions.spans(failed)) and assumed.span is not None
    assert assumed.body.to_bytes() == with_log(field_bytes(log, assumed.span.after, assumed.span.through))
    assert "guess" in assumed.notes[0]
    assert extensions.extend(failed, encoded(), BASE).span is None


class TestCap:
    """The longest prefix whose printed value is at most ``maxBytes``."""

    def capped(self, limit: int) -> tuple[ToyLog, Extensions]:
        log, _ = toy_log()
        log.add("step/start")
        log.add("assistant/attempt")
        return log, Extensions(log, Deployment({"extensions": {"session_log_max_bytes": limit}}))

    @pytest.mark.parametrize("through", [7, 8, 9])
    def test_exactly_fitting(self, through: int) -> None:
        log, _ = self.capped(1)
        size = len(field_bytes(log, 6, through))
        for limit, expected in ((size, through), (size - 1, through - 1)):
            log, extensions = self.capped(limit)
            spans = list(extensions.spans(request(log, 9, outcome="failed")))
            assert [span.through for span in spans] == ([expected] if expected > 6 else [])

    def test_nothing_fits(self) -> None:
        log, extensions = self.capped(10)
        assert list(extensions.spans(request(log, 9, outcome="failed"))) == []

    def test_a_lagging_marker_belongs_to_a_later_call(self) -> None:
        log, _ = toy_log()
        log.add("step/start")
        log.add("user/message")
        marker = log.mark(8)
        log.add("assistant/message")
        late = request(log, 11, marker)
        size = len(field_bytes(log, 6, 8))
        captured = with_log(field_bytes(log, 6, 8))
        for limit, noted in ((size, False), (None, True)):
            raw = {} if limit is None else {"extensions": {"session_log_max_bytes": limit}}
            extension = Extensions(log, Deployment(raw)).extend(late, encoded(), captured)
            assert extension.body.to_bytes() == captured
            assert bool(extension.notes) is noted


def test_seeded_and_resumed_sessions() -> None:
    log = ToyLog(session_header(4, is_seeded=True, parent_session="p"), inherited=2)
    log.add("turn/start")
    log.mark(0, session="p")
    log.add("session/end-seed", {"inherited": True})
    log.add("step/start")
    marker = log.mark(3)
    body = Extensions(log, Deployment()).extend(request(log, 4, marker), encoded()).body
    assert body.to_bytes() == with_log(field_bytes(log, -1, 3, inherited=2, is_loaded=False))  # as captured: v4-fork
    log.add("session/end-seed", {})
    log.add("step/start")
    resumed = log.mark(6)
    body = Extensions(log, Deployment()).extend(request(log, 7, resumed), encoded()).body
    assert body.to_bytes() == with_log(field_bytes(log, 3, 6, inherited=2, is_loaded=True))


def test_a_resume_after_the_request_does_not_count() -> None:
    log, requests = toy_log()
    log.add("session/end-seed", {"inherited": False})
    log.add("step/start")
    marker = log.mark(10)
    extensions = Extensions(log, Deployment())
    last = extensions.extend(request(log, 11, marker), encoded()).body.to_bytes()
    assert b'"delegationDepth":0' in last
    assert b"delegationDepth" not in extensions.extend(requests[1], encoded()).body.to_bytes()


def test_a_resume_past_the_end_of_a_capped_field_counts() -> None:
    log, _ = toy_log()
    log.add("session/end-seed", {"inherited": False})
    log.add("step/start")
    marker = log.mark(8)
    body = Extensions(log, Deployment()).extend(request(log, 11, marker), encoded()).body
    assert body.to_bytes() == with_log(field_bytes(log, 6, 8, is_loaded=True))


def test_other_adapters_carry_no_fields() -> None:
    log, requests = toy_log()
    packages = Deployment({"extensions": {"plugin_packages": [{"name": "a"}]}})
    assert Extensions(log, packages).extend(requests[0], encoded("openai-completions")).body.to_bytes() == BASE


def test_markers_that_name_no_earlier_event() -> None:
    log, requests = toy_log()
    log.items = log.items[:3]
    extension = Extensions(log, Deployment()).extend(requests[0], encoded())
    assert extension.body.to_bytes() == BASE
    log, requests = toy_log()
    marker = log.mark(30)
    extension = Extensions(log, Deployment()).extend(request(log, 9, marker), encoded())
    assert (extension.body.to_bytes(), extension.span) == (BASE, None)


class TestPackages:
    """``dsh_plugin_packages``."""

    PACKAGES: tuple[Json, ...] = (
        {"name": "\U0001f600"},
        {"name": "\uff5e"},
        {"name": "a", "version": "2"},
        {"name": "a"},
    )
    VALUE = '{"version":1,"packages":[{"name":"a"},{"name":"a","version":"2"},{"name":"😀"},{"name":"～"}]}'.encode()

    def test_order_is_by_utf16_units(self) -> None:
        assert encode_packages(self.PACKAGES) == self.VALUE
        assert encode_packages([*self.PACKAGES, {"name": "a"}]) == self.VALUE

    def test_supplied_by_the_deployment(self) -> None:
        log, requests = toy_log()
        raw = {"extensions": {"plugin_packages": list(self.PACKAGES)}}
        extension = Extensions(log, Deployment(raw)).extend(requests[0], encoded())
        assert extension.body.to_bytes() == with_log(field_bytes(log, -1, 2), self.VALUE)
        assert extension.used == (Used("extensions.plugin_packages", list(self.PACKAGES), "deployment"),)

    def test_by_format(self) -> None:
        log, requests = toy_log()
        raw = {"extensions": {"plugin_packages": "off", "formats": {"4": {"plugin_packages": [{"name": "n"}]}}}}
        body = Extensions(log, Deployment(raw)).extend(requests[0], encoded()).body.to_bytes()
        assert body.endswith(b',"dsh_plugin_packages":{"version":1,"packages":[{"name":"n"}]}}')

    def test_unlogged_without_deployment(self) -> None:
        log, requests = toy_log()
        value = field_bytes(log, -1, 2)
        captured = with_log(value, self.VALUE)
        extension = Extensions(log, Deployment()).extend(requests[0], encoded(), captured)
        assert extension.body.to_bytes() == with_log(value)
        assert extension.notes == ()
        captured = with_log(value, b'{"version":1,"packages":[{"name":"b"},{"name":"a"}]}')
        extension = Extensions(log, Deployment()).extend(requests[0], encoded(), captured)
        assert "not sorted" in extension.notes[0]

    def test_alone(self) -> None:
        log, failed = _unmarked("failed")
        captured = BASE[:-1] + b',"dsh_plugin_packages":' + self.VALUE + b"}"
        raw = {"extensions": {"plugin_packages": list(self.PACKAGES)}}
        assert Extensions(log, Deployment(raw)).extend(failed, encoded(), captured).body.to_bytes() == captured

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            (VALUE, None),
            (b'{"version":1,"packages":[]}', None),
            (b"{", "not JSON at byte 1"),
            (b"[]", "not an object"),
            (b'{"version":1}', "not an object"),
            (b'{"version":2,"packages":[]}', "not version 1"),
            (b'{"packages":[],"version":1}', "not version 1"),
            (b'{"version":1,"packages":[1]}', "an entry is not"),
            (b'{"version":1,"packages":[{"version":"1"}]}', "an entry is not"),
            (b'{"version":1,"packages":[{"name":"a","version":1}]}', "an entry is not"),
            (b'{"version":1,"packages":[{"name":"a","x":1}]}', "an entry is not"),
            (b'{"version":1,"packages":[{"name":"a"},{"name":"a"}]}', "not sorted"),
            (b'{"version":1, "packages":[]}', "not sorted"),
        ],
    )
    def test_parse(self, value: bytes, problem: str | None) -> None:
        found = parse_packages(value)[1]
        assert found == problem if problem is None else found is not None and found.startswith(problem)


@dataclass
class Simulation:
    """A harness that keeps its log in memory and sends the field as the rules say."""

    limit: int
    log: ToyLog = field(default_factory=ToyLog)
    sent: list[tuple[Request, bytes | None]] = field(default_factory=list)

    def prepare(self) -> bytes | None:
        after = max((e.data["throughSeq"] for e in self.log.items if e.type == MARKER), default=-1)
        for through in range(len(self.log.items) - 1, after, -1):
            value = field_bytes(self.log, after, through)
            if len(value) <= self.limit:
                return value
        return None

    def accept(self, value: bytes | None) -> tuple[int, ...]:
        return () if value is None else (self.log.mark(ecma.parse(value)["throughSeq"]),)

    def step(self, size: int, *, accepted: bool, title: bool, late: int) -> None:
        self.log.add("step/start")
        self.log.add("user/message", {"text": "x" * size})
        racing = None
        if title:
            opened = self.log.add("session/title-llm-request")
            racing = (opened, self.prepare())
        value = self.prepare()
        for _ in range(late):
            self.log.add("session/title", {"text": "fallback"})
        if racing is not None:
            opened, field_value = racing
            markers = self.accept(field_value)
            call = request(self.log, opened, *markers, kind="title", opened=opened, settled=None)
            self.sent.append((call, field_value))
        markers = self.accept(value) if accepted else ()
        settled = self.log.add("assistant/message" if accepted else "assistant/attempt")
        outcome = "completed" if accepted else "failed"
        self.sent.append((request(self.log, settled - 1, *markers, outcome=outcome), value))


_STEPS = st.lists(st.tuples(st.integers(0, 60), st.booleans(), st.booleans(), st.integers(0, 2)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(_STEPS, st.sampled_from((400, 700, 100_000)), st.randoms(use_true_random=False))
def test_every_simulated_field_is_rebuilt(steps: Any, limit: int, random: Any) -> None:
    simulation = Simulation(limit)
    for size, accepted, title, late in steps:
        simulation.step(size, accepted=accepted, title=title, late=late)
    extensions = Extensions(simulation.log, Deployment({"extensions": {"session_log_max_bytes": limit}}))
    for item, value in simulation.sent:
        captured = BASE if value is None else with_log(value)
        extension = extensions.extend(item, encoded(), captured)
        assert extension.body.to_bytes() == captured
        assert not extension.notes
        if item.dispatch.marker_seqs:
            assert extensions.extend(item, encoded()).body.to_bytes() == captured
    shuffled = list(simulation.sent)
    random.shuffle(shuffled)
    for item, value in shuffled:
        captured = BASE if value is None else with_log(value)
        assert extensions.extend(item, encoded(), captured).body.to_bytes() == captured


def test_memory_follows_the_unconfirmed_range() -> None:
    class Endless(ToyLog):
        def events(self) -> Iterator[Event]:
            for number in range(0, 40_000, 4):
                yield Event("step/start", number, 7, {})
                yield Event("user/message", number + 1, 7, {})
                data = {"sessionId": "s", "sessionFormatVersion": 4, "throughSeq": number + 1}
                yield Event(MARKER, number + 2, 7, data)
                yield Event("assistant/message", number + 3, 7, {})

    window = EventWindow(Endless(), rules_of_format(4))
    for number in range(0, 40_000, 4):
        assert window.confirmed(number + 1) == number - 3 or number == 0
        pieces = window.pieces(max(number - 3, -1), number + 1)
        assert pieces is not None and [seq for _, seq in pieces] == list(range(max(number - 2, 0), number + 2))
        assert len(window._held) < 64
