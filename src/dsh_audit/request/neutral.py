"""Dispatch + folds → the neutral request: what the harness hands to its adapter, before any bytes.

Source: spec wire-deepseek 2, 7, 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dsh_audit.dispatch.model import Dispatch, Prepared
from dsh_audit.events import Event, Json, SessionHeader, ShapeError, as_object
from dsh_audit.projection.messages import DerivedMessage, derive_event_message
from dsh_audit.projection.rejection import ProjectionError
from dsh_audit.projection.state import Snapshot
from dsh_audit.record import dataclass
from dsh_audit.releases import rules_of_format

Purpose = Literal["step", "session-title", "compaction", "web-search"]

COMPACTION_INSTRUCTION = "compaction-instruction"
MALFORMED_CALL = "the events that describe the call are malformed"
_PURPOSES: dict[str, Purpose] = {
    "step": "step",
    "title": "session-title",
    "compaction": "compaction",
    "web-search": "web-search",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One neutral request.

    Args:
        dispatch: where in the log it was sent.
        session_header: of the log.
        purpose: why the call was made.
        provider: provider route.
        model: model id.
        config: settings of the call: any of maxTokens, reasoningEffort, temperature, stop.
        system: the call's own system text; None when there is none (v3 and later keep it in the messages).
        system_seq: the event it comes from.
        tools: tool definitions in order, None when absent.
        tools_seq: the event they come from.
        snapshot: folds over the prefix; ``snapshot.surface`` holds the messages of a step.
        messages: the messages of a one-shot call in order; None for a step.
        constant: name of the fixed text sent as the last user message, None when there is none.
        literal: the logged body of a web search.
        why_not: reasons why no body follows from the log; empty when one does.
    """

    dispatch: Dispatch
    session_header: SessionHeader
    purpose: Purpose
    provider: str
    model: str
    config: dict[str, Json]
    system: str | None
    system_seq: int | None
    tools: list[Json] | None
    tools_seq: int | None
    snapshot: Snapshot
    messages: tuple[DerivedMessage, ...] | None = None
    constant: str | None = None
    literal: Json = None
    why_not: tuple[str, ...] = ()

    @property
    def format_version(self) -> int:
        """Format version of the log the request was found in."""
        return self.session_header.version


def build_requests(prepared: Prepared, session_header: SessionHeader) -> tuple[Request, ...]:
    """The request of a dispatch; several, best first, where the log leaves a choice (failed compaction)."""
    try:
        requests = _build(prepared, session_header)
    except ShapeError as error:
        purpose = _PURPOSES[prepared.dispatch.kind]
        requests = (replace(_blank(prepared, session_header, purpose), why_not=(error.reason,)),)
    if prepared.why_not is not None:
        return tuple(replace(one, why_not=(prepared.why_not, *one.why_not)) for one in requests)
    return requests


def _build(prepared: Prepared, session_header: SessionHeader) -> tuple[Request, ...]:
    kind = prepared.dispatch.kind
    if kind == "step":
        return (_step(prepared, session_header),)
    if kind == "title":
        return (_title(prepared, session_header),)
    if kind == "web-search":
        return (_search(prepared, session_header),)
    return _compactions(prepared, session_header)


def _blank(prepared: Prepared, session_header: SessionHeader, purpose: Purpose) -> Request:
    return Request(
        dispatch=prepared.dispatch,
        session_header=session_header,
        purpose=purpose,
        provider="",
        model="",
        config={},
        system=None,
        system_seq=None,
        tools=None,
        tools_seq=None,
        snapshot=prepared.snapshot,
    )


def _step(prepared: Prepared, session_header: SessionHeader) -> Request:
    blank = _blank(prepared, session_header, "step")
    event = prepared.snapshot.request_header
    if event is None:
        return replace(blank, why_not=("no request header precedes the dispatch",))
    header, config = _settings(event)
    return replace(
        blank,
        provider=config["provider"],
        model=config["model"],
        config={name: value for name, value in config.items() if name not in ("provider", "model")},
        system=header.get("system"),
        system_seq=event.seq if header.get("system") is not None else None,
        tools=header.get("tools"),
        tools_seq=event.seq,
    )


def _settings(event: Event) -> tuple[dict[str, Json], dict[str, Json]]:
    """The header of a ``request/header`` event and its configuration, with a route.

    Raises:
        ShapeError: there is none, or its tools are no list.
    """
    header = as_object(as_object(event.data).get("header"))
    config = as_object(header.get("config"))
    if not _is_route(config) or not isinstance(header.get("tools"), list | None):
        raise ShapeError(MALFORMED_CALL)
    return header, config


def _title(prepared: Prepared, session_header: SessionHeader) -> Request:
    event = prepared.event
    assert event is not None
    data = event.data if isinstance(event.data, dict) else {}
    messages = data.get("messages")
    if not _is_route(data.get("route")) or not isinstance(messages, list) or not all(map(_is_message, messages)):
        blank = _blank(prepared, session_header, "session-title")
        return replace(blank, why_not=("the title request lacks its route or messages",))
    config = {"maxTokens": data["maxTokens"]} if "maxTokens" in data else {}
    if "reasoningEffort" in data:
        config["reasoningEffort"] = data["reasoningEffort"]
    return replace(
        _blank(prepared, session_header, "session-title"),
        provider=data["route"]["provider"],
        model=data["route"]["model"],
        config=config,
        system=data.get("system"),
        system_seq=event.seq,
        messages=tuple(DerivedMessage(event.seq, message) for message in messages),
    )


def _is_route(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("provider"), str) and isinstance(value.get("model"), str)


def _is_message(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), list)


def _search(prepared: Prepared, session_header: SessionHeader) -> Request:
    event = prepared.event
    assert event is not None
    body = as_object(event.data).get("body")
    model = as_object(body).get("model", "")
    if not isinstance(body, dict) or not isinstance(model, str):
        raise ShapeError(MALFORMED_CALL)
    return replace(
        _blank(prepared, session_header, "web-search"), provider="deepseek-search", model=model, literal=body
    )


def _compactions(prepared: Prepared, session_header: SessionHeader) -> tuple[Request, ...]:
    base = _with_header_tools(_blank(prepared, session_header, "compaction"))
    summary = prepared.event
    if summary is not None and not _is_own_call(summary.data):
        return (replace(base, why_not=("another summariser made this compaction; its call is not logged",)),)
    if summary is not None and not _is_summary(summary.data):
        return (replace(base, why_not=("the compaction summary lacks its route or range",)),)
    if summary is not None:
        return (_compaction_over(_with_summary_route(base, summary), tuple(summary.data["shadowedSeqs"])),)
    if not prepared.candidates:
        return (replace(base, why_not=("the range of the failed compaction cannot be computed",)),)
    limits = _limits(prepared, base)
    return tuple(_compaction_over(one, candidate) for candidate in prepared.candidates for one in limits)


def _limits(prepared: Prepared, base: Request) -> list[Request]:
    """A failed compaction with each route and output limit that it may have had: as told, as logged, by default."""
    if prepared.output_limit is not None:
        base = replace(base, config={"maxTokens": prepared.output_limit})
    logged = [_with_summary_route(base, summary) for summary in prepared.summaries if _is_summary(summary.data)]
    if prepared.output_limit is not None:
        logged = [base, *(replace(one, config=base.config) for one in logged)]
    elif logged:
        logged = [request for one in logged for request in (one, replace(base, config=one.config))]
    return list({(one.provider, one.model, one.config.get("maxTokens")): one for one in logged or [base]}.values())


def _is_own_call(data: Json) -> bool:
    return isinstance(data, dict) and data.get("llmStreamCall") is True


def _is_summary(data: Json) -> bool:
    seqs = data.get("shadowedSeqs") if isinstance(data, dict) else None
    return _is_route(data) and isinstance(seqs, list) and all(isinstance(seq, int) for seq in seqs)


def _with_summary_route(base: Request, summary: Event) -> Request:
    data = summary.data
    config = {"maxTokens": data["maxTokens"]} if "maxTokens" in data else {}
    return replace(base, provider=data["provider"], model=data["model"], config=config)


def _with_header_tools(base: Request) -> Request:
    """System text, tools and (for failed compactions) the route of the request header in force."""
    event = base.snapshot.request_header
    if event is None:
        return base
    header, config = _settings(event)
    return replace(
        base,
        provider=config["provider"],
        model=config["model"],
        config={"maxTokens": rules_of_format(base.format_version).compaction_tokens},
        system=header.get("system"),
        system_seq=event.seq if header.get("system") is not None else None,
        tools=header.get("tools"),
        tools_seq=event.seq,
    )


def derived_message(node: Event) -> dict[str, Json] | None:
    """The message of a surface node.

    Raises:
        ShapeError: it has none.
    """
    try:
        return derive_event_message(node)
    except ProjectionError as error:
        raise ShapeError(f"{error.reason} (seq {error.seq})") from None


def _compaction_over(base: Request, seqs: tuple[int, ...]) -> Request:
    surface = base.snapshot.surface
    nodes = {node.seq: node for node in surface}
    missing = [seq for seq in seqs if seq not in nodes]
    if missing:
        return replace(base, why_not=(f"the shadowed range names seq {missing[0]}, which is not on the surface",))
    chosen = [nodes[seq] for seq in seqs]
    head = next(iter(surface), None)
    if head is not None and head.type == "system/message" and head.seq not in seqs:
        chosen.insert(0, head)
    derived = ((node.seq, derived_message(node)) for node in chosen)
    messages = tuple(DerivedMessage(seq, message) for seq, message in derived if message is not None)
    return replace(base, messages=messages, constant=COMPACTION_INSTRUCTION)
