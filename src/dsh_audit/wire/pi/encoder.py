"""Requests of a log → pi-ai bodies, with the unlogged inputs of each."""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Json
from dsh_audit.projection.messages import DerivedMessage, derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, UnloggedInputs
from dsh_audit.wire.body import Body
from dsh_audit.wire.images import ImagesUnknownError, ImageWriter
from dsh_audit.wire.instruction import instruction
from dsh_audit.wire.pi import PROTOCOLS, ProtocolEncoder, build_settings, protocol_encoder
from dsh_audit.wire.pi.assemble import Seqs
from dsh_audit.wire.pi.context import Conversation
from dsh_audit.wire.pi.http_headers import check_sendable
from dsh_audit.wire.pi.images import ImageSource, ImageVersion, has_image
from dsh_audit.wire.pi.neutral import Context
from dsh_audit.wire.pi.refusal import PiRefusedError
from dsh_audit.wire.pi.route import Route, find_route
from dsh_audit.wire.pi.versions import PiRules, rules_of


class PiEncoder:
    """Writes the requests of one session that went over llm-pi-ai; the profile decides the protocol."""

    def __init__(self) -> None:
        self._steps = _History()

    def encode(self, request: Request, inputs: UnloggedInputs) -> Encoded:
        """The body of a request."""
        if request.messages is None:
            history = self._steps
            history.follow(request.snapshot.surface)
        else:
            history = _History()
            history.take([*request.messages, *instruction(request, inputs)])
        history.use(inputs.images)
        route = find_route(request, inputs)
        protocol = route.model["api"]
        if history.holds_image:
            _check_carrier(inputs.images, route)
        try:
            body = history.body(request, route)
        except PiRefusedError as refusal:
            if refusal.kind == "no-request":
                return Encoded(protocol, "none", None, (f"nothing is sent: {refusal.message}",))
            raise CannotEncodeError(refusal.message) from None
        query = rules_of(route.version).messages_query if protocol == "anthropic-messages" else ""
        return Encoded(protocol, "bytes", body, (), (), PROTOCOLS[protocol].path + query)


class _History:
    """Harness messages that grow, and what was made of them for the route that was last called."""

    def __init__(self) -> None:
        self.holds_image = False
        self._writer: ImageWriter | None = None
        self._surface: Surface | None = None
        self._messages: list[DerivedMessage] = []
        self._conversation: Conversation | None = None
        self._conversation_key: tuple[object, ...] = ()
        self._converted = 0
        self._encoders: dict[str, ProtocolEncoder] = {}

    def use(self, writer: ImageWriter | None) -> None:
        """Let the next messages be written with these images."""
        if writer is not None and self._writer is not None and writer.offloaded == self._writer.offloaded:
            writer.follow(self._writer)
        else:
            self._conversation = None
        self._writer = writer

    def follow(self, surface: Surface) -> None:
        """Take the messages of a surface that are new; all of them where it does not extend the last one."""
        start = 0
        if self._surface is not None and surface.extends(self._surface):
            start = len(self._surface)
        else:
            self.holds_image = False
            self._messages, self._conversation = [], None
        self._surface = None
        self.take(derive_nodes(surface[start:], surface.marks))
        self._surface = surface

    def take(self, messages: Iterable[DerivedMessage]) -> None:
        """Take further messages."""
        for item in messages:
            self.holds_image = self.holds_image or has_image(item.message["content"])
            self._messages.append(item)

    def body(self, request: Request, route: Route) -> Body:
        """The body of a request over the messages so far.

        Raises:
            PiRefusedError: there is none.
        """
        options = {"sessionId": request.session_header.id, **request.config}
        settings = build_settings(options, route.model, route.version, route.profile, route.key, dict(route.env))
        encoder = self._encoders.get(route.model["api"]) or protocol_encoder(route.model)
        self._encoders[route.model["api"]] = encoder
        context = self._context(request, route, settings.rules)
        check_sendable(settings)
        return encoder.encode(context, settings, Seqs(self._system_seq(request), request.tools_seq))

    def _context(self, request: Request, route: Route, rules: PiRules) -> Context:
        key = (route.version, route.routes, request.system is None)
        tools = request.tools or ()
        known = self._conversation if self._conversation_key == key else None
        if known is None or not known.set_tools(tools):
            images = ImageSource(self._read, self._handle)
            known = Conversation(rules, route.routes.__contains__, images, has_system=request.system is not None)
            known.set_tools(tools)
            self._converted = 0
            if self._writer is not None:
                self._writer.start()
        self._conversation, self._conversation_key = None, key
        for item in self._messages[self._converted :]:
            known.add(item.message if self._writer is None else self._writer.project(item.message), item.seq)
        self._conversation, self._converted = known, len(self._messages)
        return known.context(request.system)

    def _read(self, attachment: dict[str, Json]) -> ImageVersion:
        assert self._writer is not None
        version = self._writer.version(self._writer.reference({"attachment": attachment}))
        data = b"".join(self._writer.sound_file(version).pieces())
        return ImageVersion(data, version.media_type, version.width, version.height)

    def _handle(self, attachment: dict[str, Json], _version: ImageVersion) -> str | None:
        assert self._writer is not None
        return self._writer.handle({"attachment": attachment})

    def _system_seq(self, request: Request) -> int | None:
        if request.system_seq is None and self._messages and self._messages[0].message["role"] == "system":
            return self._messages[0].seq
        return request.system_seq


def _check_carrier(writer: ImageWriter | None, route: Route) -> None:
    """Refuse images for a model that takes none, and notes for one that does."""
    takes_images = "image" in route.model["input"]
    carrier = None if writer is None else writer.form.carrier
    if carrier is None or (carrier != "placeholder" and takes_images == (carrier == "text")):
        raise ImagesUnknownError("the model takes no images" if not takes_images else "the model takes images")
