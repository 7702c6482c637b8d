"""What a provider answered: usage, request id and cache diagnostics, from one JSON value or a stream of events.

Source: spec caching; the streams of Chat Completions, Anthropic Messages and Responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, ClassVar, TypeAlias

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

MAX_RESPONSE_BYTES = 1 << 26

_REQUEST_IDS = ("request-id", "x-request-id", "x-ds-trace-id", "x-amzn-requestid", "cf-ray")
_DIAGNOSTICS = ("diagnostics", "prompt_cache_diagnostics", "cache_diagnostics")
_LAST_EVENTS = ("message_stop", "response.completed", "response.failed", "response.incomplete")
HttpHeaders: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Response:
    """One captured answer.

    Args:
        http_headers: secret values replaced.
        load_body: content coding undone; None when it was not kept.
        load_value: of an archive that keeps parsed values.
    """

    status: int | None
    http_headers: HttpHeaders = ()
    load_body: Callable[[], bytes | None] = field(default=lambda: None, repr=False, compare=False)
    load_value: Callable[[], Json] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ResponseFacts:
    """What an answer says about itself.

    Args:
        usage: as the provider reports it, in its own words; streams: the last value of each member.
        id: of the answer, in its body.
        request_id: in its HTTP headers.
        diagnostics: what it says of the prompt cache, such as ``{"cache_miss_reason": …}``.
        is_streamed: server-sent events; None when no body was kept.
        is_complete: a stream that reached its end.
    """

    usage: dict[str, Any] | None = None
    id: str | None = None
    request_id: str | None = None
    diagnostics: Json = None
    is_streamed: bool | None = None
    is_complete: bool | None = None

    JSON: ClassVar = "usage id request_id diagnostics streamed=is_streamed complete=is_complete"


def read_facts(response: Response) -> ResponseFacts:
    """What one answer says; reads its body."""
    headers = {name.lower(): value for name, value in reversed(response.http_headers)}
    facts = ResponseFacts(request_id=next((headers[name] for name in _REQUEST_IDS if name in headers), None))
    if response.load_value is not None:
        value = response.load_value()
        data = value.encode("utf-8", "replace") if isinstance(value, str) else b""
        if not data:
            events = value if isinstance(value, list) else [value]
            return _gather(facts, events, is_streamed=isinstance(value, list)) if value is not None else facts
    else:
        data = response.load_body() or b""
    if not data or len(data) > MAX_RESPONSE_BYTES:
        return facts
    if data.lstrip()[:1] == b"{":
        parsed = _parse(data)
        return facts if parsed is None else _gather(facts, [parsed], is_streamed=False)
    return _gather(facts, list(_events(data)), is_streamed=True, is_done=b"data: [DONE]" in data[-4096:])


def _events(data: bytes) -> Iterator[Json]:
    """The JSON of each ``data:`` line."""
    for line in data.split(b"\n"):
        if line.startswith(b"data:") and (text := line[5:].strip())[:1] == b"{":
            value = _parse(text)
            if value is not None:
                yield value


def _parse(text: bytes) -> Json:
    try:
        return ecma.parse(text)
    except ecma.EcmaSyntaxError:
        return None


def _gather(facts: ResponseFacts, events: list[Json], *, is_streamed: bool, is_done: bool = False) -> ResponseFacts:
    usage: dict[str, Any] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        nested = next((event[name] for name in ("message", "response") if isinstance(event.get(name), dict)), event)
        for holder in (nested, event):
            if isinstance(holder.get("usage"), dict):
                usage.update({name: value for name, value in holder["usage"].items() if value is not None})
        told = next((nested[name] for name in _DIAGNOSTICS if nested.get(name) is not None), None)
        ident = nested.get("id")
        facts = replace(
            facts,
            id=facts.id or (ident if isinstance(ident, str) else None),
            diagnostics=told if told is not None else facts.diagnostics,
        )
        is_done = is_done or event.get("type") in _LAST_EVENTS
    return replace(
        facts, usage=usage or None, is_streamed=is_streamed, is_complete=is_done if is_streamed else bool(events)
    )
