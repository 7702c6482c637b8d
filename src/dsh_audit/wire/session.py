"""Requests of one session → encoded bodies: chooses the protocol and keeps one encoder each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import ShapeError
from dsh_audit.request.neutral import Request
from dsh_audit.wire import deepseek_messages
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, Encoder, UnloggedInputs
from dsh_audit.wire.body import Body
from dsh_audit.wire.parts import object_parts
from dsh_audit.wire.protocol import MESSAGES, Choice, ProtocolChooser, protocol_alternatives
from dsh_audit.wire.protocols import PROTOCOLS
from dsh_audit.wire.shapes import ShapeGuard


class SessionEncoder:
    """Encodes the requests of one session in log order.

    Args:
        deployment: what the log cannot know.
        assumed: values, by deployment path, to use where the deployment is silent; see ``alternatives``.
    """

    def __init__(self, deployment: Deployment, assumed: Iterable[Used] = ()) -> None:
        self.deployment = deployment
        self._assumed: dict[str, Used] = {used.name: used for used in assumed}
        self._encoders: dict[str, Encoder] = {}
        self._protocols = ProtocolChooser()
        self._guard = ShapeGuard()

    @property
    def assumed(self) -> Mapping[str, Used]:
        """Values in use that a capture gave."""
        return self._assumed

    def encode(self, request: Request, protocol: str | None = None) -> Encoded:
        """The wire form of a request with its claim; what cannot be written says why.

        Args:
            protocol: where the caller knows better, e.g. of a request made before the log was migrated.
        """
        inputs = UnloggedInputs(self.deployment, assumed=self._assumed)
        if request.why_not:
            return Encoded("", "none", None, request.why_not)
        if request.purpose == "web-search":
            body = Body.of(object_parts(request.literal, request.dispatch.opened_seq))
            return Encoded("deepseek-web-search", "bytes", body)
        choice = Choice(protocol) if protocol is not None else self._protocols.choose(request, inputs)
        try:
            self._guard.check(request)
            encoded = self._encoder(choice.protocol).encode(request, inputs)
        except CannotEncodeError as error:
            return Encoded(choice.protocol, error.claim, None, (error.reason,), tuple(inputs.used))
        except ShapeError as error:
            return Encoded(choice.protocol, "none", None, (error.reason,), tuple(inputs.used))
        if choice.why:
            encoded = replace(encoded, claim="logical", why=(choice.why, *encoded.why))
        return replace(encoded, unlogged=tuple(inputs.used))

    def alternatives(self, request: Request) -> Iterator[tuple[tuple[Used, ...], Encoded]]:
        """What else the request may have looked like, best guess first, to be compared with a capture.

        Each is encoded when it is asked for, at the cost of a whole body; hand the assumptions of the one
        that agrees to ``adopt``, so that the requests after it need no search.
        """
        if request.why_not or request.purpose == "web-search":
            return
        inputs = UnloggedInputs(self.deployment, assumed=self._assumed)
        current = self._protocols.choose(request, inputs)
        options: list[tuple[tuple[Used, ...], str]]
        options = [((used,), name) for used, name in protocol_alternatives(request, current)]
        for taken, protocol in options or [((), current.protocol)]:
            if taken:
                yield taken, self._with(taken).encode(request)
            if protocol == MESSAGES:
                for mode in deepseek_messages.alternatives(request, self.deployment):
                    assumed = (*taken, mode)
                    yield assumed, self._with(assumed).encode(request)

    def adopt(self, assumed: Iterable[Used]) -> None:
        """Use values that a capture has proven, for this and all later requests."""
        self._assumed.update((used.name, used) for used in assumed)

    def _with(self, assumed: Iterable[Used]) -> SessionEncoder:
        return SessionEncoder(self.deployment, (*self._assumed.values(), *assumed))

    def _encoder(self, protocol: str) -> Encoder:
        if protocol not in self._encoders:
            if protocol not in PROTOCOLS:
                raise CannotEncodeError(f"protocol {protocol} is not reproduced", "logical")
            self._encoders[protocol] = PROTOCOLS[protocol].encoder()
        return self._encoders[protocol]
