"""Requests of a log → pi-ai bodies, with the unlogged inputs of each."""

from __future__ import annotations

from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, Notes
from dsh_audit.wire.body import Body
from dsh_audit.wire.instruction import instruction
from dsh_audit.wire.pi import encode_pi_request
from dsh_audit.wire.pi.assemble import RunCache, Seqs
from dsh_audit.wire.pi.images import has_image
from dsh_audit.wire.pi.refusal import PiRefusedError
from dsh_audit.wire.pi.route import Route, find_route

_PATHS = {
    "openai-completions": "/chat/completions",
    "openai-responses": "/responses",
    "azure-openai-responses": "/responses",
    "anthropic-messages": "/v1/messages",
}
_BETA_PATH_SINCE = ("0.85.1", "1.3.0")


class PiEncoder:
    """Writes the requests of one session that went over llm-pi-ai; the profile decides the protocol."""

    def __init__(self) -> None:
        self._runs = RunCache()

    def encode(self, request: Request, notes: Notes) -> Encoded:
        """The body of a request."""
        messages = [*_messages(request), *instruction(request, notes)]
        if any(has_image(item.message["content"]) for item in messages):
            raise CannotEncodeError("the request holds an image")
        route = find_route(request, notes)
        protocol = route.model["api"]
        try:
            body = self._runs.share(_body(request, messages, route))
        except PiRefusedError as refusal:
            if refusal.kind == "no-request":
                return Encoded(protocol, "none", None, (f"nothing is sent: {refusal.message}",))
            raise CannotEncodeError(refusal.message) from None
        path = _PATHS[protocol]
        if protocol == "anthropic-messages" and route.version in _BETA_PATH_SINCE:
            path += "?beta=true"
        return Encoded(protocol, "bytes", body, (), (), path)


def _messages(request: Request) -> tuple[DerivedMessage, ...]:
    return request.messages if request.messages is not None else request.snapshot.messages()


def _body(request: Request, messages: list[DerivedMessage], route: Route) -> Body:
    options = {
        "provider": request.provider,
        "model": request.model,
        "messages": [item.message for item in messages],
        "sessionId": request.session_header.id,
        **request.config,
    }
    if request.system is not None:
        options["system"] = request.system
    if request.tools is not None:
        options["tools"] = request.tools
    system_seq = request.system_seq
    if system_seq is None and messages and messages[0].message["role"] == "system":
        system_seq = messages[0].seq
    return encode_pi_request(
        options,
        route.model,
        version=route.version,
        profile=route.profile,
        key=route.key,
        env=dict(route.env),
        owns=route.owns,
        message_seqs=[item.seq for item in messages],
        seqs=Seqs(system_seq, request.tools_seq),
    )
