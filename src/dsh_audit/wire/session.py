"""Requests of one session → encoded bodies: chooses the protocol and keeps one encoder each."""

from __future__ import annotations

from dataclasses import replace

from dsh_audit import ecma
from dsh_audit.deployment import Deployment
from dsh_audit.request import Request
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, Encoder, Notes
from dsh_audit.wire.body import Body, Fragment
from dsh_audit.wire.deepseek_chat import PROTOCOL as CHAT
from dsh_audit.wire.deepseek_chat import ChatEncoder

_ENCODERS: dict[str, type[Encoder]] = {CHAT: ChatEncoder}


class SessionEncoder:
    """Encodes the requests of one session in log order."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._encoders: dict[str, Encoder] = {}

    def encode(self, request: Request) -> Encoded:
        """The wire form of a request with its claim; what cannot be written says why."""
        notes = Notes(self.deployment)
        if request.why_not:
            return Encoded("", "none", None, request.why_not)
        if request.purpose == "web-search":
            body = Body.of([Fragment(ecma.stringify(request.literal), request.dispatch.opened_seq)])
            return Encoded("deepseek-web-search", "bytes", body)
        protocol = choose_protocol(request, notes)
        try:
            encoder = self._encoders.setdefault(protocol, _encoder(protocol))
            encoded = encoder.encode(request, notes)
        except CannotEncodeError as error:
            return Encoded(protocol, error.claim, None, (error.reason,), tuple(notes.used))
        return replace(encoded, unlogged=tuple(notes.used))


def choose_protocol(request: Request, notes: Notes) -> str:
    """The wire protocol a request was sent in."""
    return CHAT


def _encoder(protocol: str) -> Encoder:
    try:
        return _ENCODERS[protocol]()
    except KeyError:
        raise CannotEncodeError(f"protocol {protocol} is not reproduced", "logical") from None
