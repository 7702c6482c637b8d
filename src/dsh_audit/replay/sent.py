"""A rebuilt request as it went out: one flat record, the row of the ``requests`` report."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar

from dsh_audit.deployment import Used
from dsh_audit.dispatch.model import WireCount
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.wire.body import Body
from dsh_audit.wire.images import SentImage


@dataclass(frozen=True, slots=True)
class SentRequest:
    """One request of a session.

    Args:
        index: from 0 in the order of the session.
        kind: ``step``, ``title``, ``compaction`` or ``web-search``.
        turn, step, attempt: from 1; None where it is part of none.
        prefix_seq: seq of the last event that it could see, in the log of ``generation``.
        generation: format version of that log.
        protocol: of the wire; None where it is not known.
        wire: how many HTTP requests it sent.
        outcome, retry_of, recomputed, settled_seq: see :class:`dsh_audit.dispatch.model.Dispatch`.
        claim: what is claimed about the body: ``bytes``, ``json``, ``logical``, ``none``.
        why: what limits the claim, one line each.
        unlogged: values that are not in the log and went into it.
        body: as sent, extension fields included: ``bytes(body)``, ``len(body)``, ``body.sha256()``; None where it
            cannot be rebuilt.
        rebuilt: the request in full: messages, tools, settings, HTTP headers.
        failure: what ended a failed one, as logged: code, status, message.
        images: how often each message shows which image, and how it was sent.
    """

    index: int
    kind: str
    turn: int | None
    step: int | None
    attempt: int | None
    prefix_seq: int
    generation: int
    provider: str
    model: str
    protocol: str | None
    wire: WireCount
    outcome: str
    retry_of: str | None
    recomputed: bool
    settled_seq: int | None
    claim: str
    why: tuple[str, ...]
    unlogged: tuple[Used, ...]
    body: Body | None
    rebuilt: Rebuilt = field(repr=False, compare=False)
    failure: Json = None
    images: tuple[SentImage, ...] = ()

    JSON: ClassVar = (
        "index kind turn step attempt prefix_seq generation provider model protocol wire outcome retry_of recomputed "
        "settled_seq claim why unlogged body=digest failure? images?"
    )

    @property
    def digest(self) -> dict[str, Any] | None:
        """Size and SHA-256 of the body."""
        return None if self.body is None else {"size": len(self.body), "sha256": self.body.sha256()}


def build_sent(rebuilt: Rebuilt) -> SentRequest:
    """The request with the extension fields that the log and the deployment give."""
    request, encoded, dispatch = rebuilt.request, rebuilt.encoded, rebuilt.request.dispatch
    extension = None if encoded.body is None else rebuilt.extended(encoded.body)
    return SentRequest(
        index=rebuilt.index,
        kind=dispatch.kind,
        turn=dispatch.turn,
        step=dispatch.step,
        attempt=dispatch.attempt,
        prefix_seq=dispatch.prefix_seq,
        generation=rebuilt.log.version,
        provider=request.provider,
        model=request.model,
        protocol=encoded.protocol or None,
        wire=dispatch.wire,
        outcome=dispatch.outcome,
        retry_of=dispatch.retry_of,
        recomputed=dispatch.recomputed,
        settled_seq=dispatch.settled_seq,
        claim=encoded.claim,
        why=(*encoded.why, *(() if extension is None else extension.notes)),
        unlogged=(*encoded.unlogged, *(() if extension is None else extension.used)),
        body=None if extension is None else extension.body,
        rebuilt=rebuilt,
        failure=dispatch.failure,
        images=encoded.images,
    )
