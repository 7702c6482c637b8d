"""Requests of one session → encoded bodies: chooses the protocol and keeps one encoder each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import ShapeError
from dsh_audit.request.neutral import Request
from dsh_audit.wire import deepseek_messages
from dsh_audit.wire.adapter import CannotEncodeError, Encoded, Encoder, UnloggedInputs
from dsh_audit.wire.body import Body
from dsh_audit.wire.image_forms import (
    ImageScan,
    RequestImages,
    capture_ids,
    check_images,
    image_forms,
    make_writer,
    used_in_form,
)
from dsh_audit.wire.images import Carrier, ImageForm, ImagesUnknownError, ImageWriter, sent_images
from dsh_audit.wire.parts import object_parts
from dsh_audit.wire.protocol import MESSAGES, Choice, ProtocolChooser, protocol_alternatives
from dsh_audit.wire.protocols import PROTOCOLS
from dsh_audit.wire.shapes import ShapeGuard

UNKNOWN_FORM = "the log does not say whether images were sent as uploaded files or inline; {} is assumed"


class SessionEncoder:
    """Encodes the requests of one session in log order.

    Args:
        deployment: what the log cannot know.
        assumed: values, by deployment path, to use where the deployment is silent; see ``alternatives``.
    """

    def __init__(self, deployment: Deployment, assumed: Iterable[Used] = ()) -> None:
        self.deployment = deployment
        self._assumed: dict[str, Used] = {used.name: used for used in assumed}
        self._encoders: dict[tuple[str, ImageForm | None], Encoder] = {}
        self._protocols = ProtocolChooser()
        self._guard = ShapeGuard()
        self._scan = ImageScan()

    def encode(self, request: Request, protocol: str | None = None, form: ImageForm | None = None) -> Encoded:
        """The wire form of a request with its claim; what cannot be written says why.

        Args:
            protocol: where the caller knows better, e.g. of a request made before the log was migrated.
            form: of its images; the likeliest one that can be written when None.
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
            images = self._scan.of(request)
            encode = self._encode_images if images else self._encode_text
            encoded = encode(request, choice.protocol, inputs, images, form)
        except CannotEncodeError as error:
            return Encoded(choice.protocol, error.claim, None, (error.reason,), tuple(inputs.used))
        except ShapeError as error:
            return Encoded(choice.protocol, "none", None, (error.reason,), tuple(inputs.used))
        if choice.why:
            encoded = replace(encoded, claim="logical", why=(choice.why, *encoded.why))
        return replace(encoded, unlogged=tuple(inputs.used))

    def alternatives(self, request: Request) -> Iterator[tuple[tuple[Used, ...], Encoded]]:
        """What else the request may have looked like, best guess first, to be compared with a capture.

        Each is encoded when it is asked for, at the cost of a whole body; an encoder that is given the assumptions
        of the one that agrees needs no search.
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

    def _with(self, assumed: Iterable[Used]) -> SessionEncoder:
        return SessionEncoder(self.deployment, (*self._assumed.values(), *assumed))

    def image_forms(self, request: Request) -> list[ImageForm]:
        """The forms in which a request can have carried its images, likeliest first; none where it has none."""
        if request.why_not or request.purpose == "web-search":
            return []
        try:
            self._guard.check(request)
            images = self._scan.of(request)
        except ShapeError:
            return []
        if not images:
            return []
        protocol = self._protocols.choose(request, UnloggedInputs(self.deployment, assumed=self._assumed)).protocol
        return image_forms(request, images, self.deployment, is_pi=_is_pi(protocol))

    def _encode_text(
        self, request: Request, protocol: str, inputs: UnloggedInputs, _images: RequestImages, _form: ImageForm | None
    ) -> Encoded:
        return self._encoder(protocol, None).encode(request, inputs)

    def _encode_images(
        self, request: Request, protocol: str, inputs: UnloggedInputs, images: RequestImages, form: ImageForm | None
    ) -> Encoded:
        """The request in one form of its images; without one, in the likeliest that can be written."""
        is_pi = _is_pi(protocol)
        forms = image_forms(request, images, self.deployment, is_pi=is_pi)
        reasons: dict[str, None] = {}
        failed: ImageWriter | None = None
        for one in forms if form is None else (form,):
            inputs.images = writer = make_writer(request, images, self.deployment, one, is_pi=is_pi)
            check_images(images, writer)
            try:
                encoded = self._encoder(protocol, one).encode(request, inputs)
            except ImagesUnknownError as error:
                self._encoders.pop((protocol, one), None)
                reasons.setdefault(str(error))
                failed = failed or writer
                continue
            return self._claimed(encoded, inputs, images, writer, forms if form is None else [form])
        assert failed is not None
        return self._claimed(Encoded(protocol, "logical", None, tuple(reasons)), inputs, images, failed, forms)

    def _claimed(
        self,
        encoded: Encoded,
        inputs: UnloggedInputs,
        images: RequestImages,
        writer: ImageWriter,
        forms: Sequence[ImageForm],
    ) -> Encoded:
        """The request with what is known of its images, and the claim that the open forms leave."""
        for used in used_in_form(writer.form, self.deployment):
            inputs.take(used)
        is_note = writer.form.carrier == "text" and encoded.body is not None
        usual = {other.carrier for other in forms if other.carrier != "text"}
        carriers: set[Carrier] = {"text"} if is_note or not usual else {*usual}
        encoded = replace(
            encoded,
            images=tuple(sent_images(images.occurrences, writer.offloaded, carriers)),
            file_ids=capture_ids(images, writer),
            problems=tuple(writer.problems.items()),
        )
        if len(carriers) < 2 or not images.occurrences or encoded.body is None:
            return encoded
        why = UNKNOWN_FORM.format("as files" if writer.form.carrier == "file" else "inline")
        return replace(encoded, claim="logical", why=(why, *encoded.why))

    def _encoder(self, protocol: str, form: ImageForm | None) -> Encoder:
        key = protocol, form
        if key not in self._encoders:
            if protocol not in PROTOCOLS:
                raise CannotEncodeError(f"protocol {protocol} is not reproduced", "logical")
            self._encoders[key] = PROTOCOLS[protocol].encoder()
        return self._encoders[key]


def _is_pi(protocol: str) -> bool:
    return protocol in PROTOCOLS and PROTOCOLS[protocol].adapter == "llm-pi-ai"
