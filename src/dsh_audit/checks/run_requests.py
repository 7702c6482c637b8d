"""The requests of one run, from a log or from a capture, in the form in which two runs are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from dsh_audit.capture import CaptureArchive
from dsh_audit.capture.exchange import MODEL_KINDS, Exchange, Fidelity
from dsh_audit.events import Json
from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt

_NOT_SEEN = ("id", "source")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One request of one run.

    Args:
        ident: index in its session, or id in its capture.
        label: what it is in its run; None where only its place tells.
        title: for people.
        digest: of its bytes; None where they are not known.
        load_body: its bytes, or None.
        load_value: the request without bytes, as settings, system, tools and messages; None where it is not known.
        find_seq: byte offset → log event; None for captures and fixed text.
        keeps_bytes: whether the spelling of the JSON text means anything.
        why_not: what keeps its body from being known.
    """

    ident: str
    label: tuple[str, int | None, int | None, int | None] | None
    title: str
    digest: str | None
    load_body: Callable[[], bytes | None] = field(repr=False, compare=False)
    load_value: Callable[[], Json] | None = field(default=None, repr=False, compare=False)
    find_seq: Callable[[int], int | None] = field(default=lambda _at: None, repr=False, compare=False)
    keeps_bytes: bool = True
    why_not: str = ""


def of_rebuilt(rebuilt: Rebuilt) -> RunRequest:
    """A request of a log; its base body, without extension fields."""
    dispatch, body = rebuilt.request.dispatch, rebuilt.encoded.body
    place = f" {dispatch.turn}.{dispatch.step}" if dispatch.step is not None else ""
    again = f", attempt {dispatch.attempt}" if (dispatch.attempt or 1) > 1 else ""

    def find_seq(at: int) -> int | None:
        return None if body is None or at >= body.size_bytes else body.seq_at(at)

    return RunRequest(
        ident=str(rebuilt.index),
        label=(dispatch.kind, dispatch.turn, dispatch.step, dispatch.attempt),
        title=f"{dispatch.kind}{place}{again}",
        digest=None if body is None else body.sha256(),
        load_body=lambda: None if body is None else body.to_bytes(),
        load_value=None if rebuilt.request.why_not else lambda: _neutral(rebuilt),
        find_seq=find_seq,
        why_not="; ".join(rebuilt.encoded.why),
    )


def _neutral(rebuilt: Rebuilt) -> Json:
    request = rebuilt.request
    derived = request.snapshot.messages() if request.messages is None else request.messages
    value: dict[str, Json] = {"provider": request.provider, "model": request.model, **request.config}
    if request.system is not None:
        value["system"] = request.system
    if request.tools is not None:
        value["tools"] = request.tools
    value["messages"] = [*map(_seen, derived), *([{"constant": request.constant}] if request.constant else [])]
    return value


def _seen(derived: DerivedMessage) -> Json:
    return {name: value for name, value in derived.message.items() if name not in _NOT_SEEN}


def of_capture(archives: Iterable[CaptureArchive]) -> Iterator[RunRequest]:
    """The model requests of captures in order of receipt; uploads and searches are left out."""
    for archive in archives:
        for exchange in archive.exchanges:
            if exchange.kind in MODEL_KINDS:
                yield _of_exchange(exchange)


def _of_exchange(exchange: Exchange) -> RunRequest:
    held = exchange.read_body()
    digest = exchange.digest.sha256 if exchange.digest is not None else None
    why = exchange.truncation or ("the capture has no body" if held is None else "")
    return RunRequest(
        ident=exchange.id,
        label=None,
        title="compaction" if exchange.is_compaction else exchange.kind,
        digest=digest if held is None else hashlib.sha256(held).hexdigest(),
        load_body=exchange.read_body,
        keeps_bytes=exchange.fidelity in (Fidelity.RAW, Fidelity.TEXT),
        why_not=why,
    )
