"""One session for a comparison with captures: its requests, their bodies, and what is learnt about both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from itertools import groupby

from dsh_audit.capture.exchange import ExchangeKind
from dsh_audit.deployment import Deployment, Used
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.session_log import SessionLog
from dsh_audit.record import dataclass
from dsh_audit.replay.pairing import BodyKey, Candidate
from dsh_audit.replay.session_replay import AS_MIGRATED, Rebuilt, Replay
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.body import Body
from dsh_audit.wire.extensions import Span
from dsh_audit.wire.protocol import CHAT
from dsh_audit.wire.session import SessionEncoder

OUTPUT_LIMIT = "compaction.max_tokens"
_ENDPOINTS: dict[str, ExchangeKind] = {
    "deepseek-chat-completions": "chat-completions",
    "openai-completions": "chat-completions",
    "deepseek-messages": "messages",
    "anthropic-messages": "messages",
    "openai-responses": "responses",
    "azure-openai-responses": "responses",
    "deepseek-web-search": "search",
}


@dataclass(frozen=True, slots=True)
class Whole:
    """A body with the extension fields that the log and the deployment give, as far as a comparison needs it.

    Args:
        key: its size and digest.
        span: of the session log in it.
        fields: names of the extension fields.
    """

    key: BodyKey
    span: Span | None
    fields: frozenset[str]


@dataclass(slots=True)
class RebuiltSession:
    """The requests of one session; bodies share their bytes, so they cost what is new in each.

    Attributes:
        bodies: for each request the body of the likeliest reading of the log, then those of the others.
        keys: their sizes and digests.
        wholes: the same with extension fields; None where a request has none.
        readings: what the bodies of a request with images are; empty for others.
        has_images: whether any request carries images or files.
    """

    replay: Replay
    rebuilt: list[Rebuilt] = field(default_factory=list)
    bodies: list[tuple[Body, ...]] = field(default_factory=list)
    keys: list[tuple[BodyKey, ...]] = field(default_factory=list)
    wholes: list[tuple[Whole | None, ...]] = field(default_factory=list)
    readings: list[tuple[Encoded, ...]] = field(default_factory=list)
    assumed: tuple[Used, ...] = ()
    has_images: bool = False

    @property
    def log(self) -> SessionLog:
        """The current generation."""
        return self.replay.history.current

    @property
    def lacks_instruction(self) -> bool:
        """Whether a compaction cannot be written since the fixed text that ends it is not known."""
        pending = (row for row in self.rebuilt if row.request.constant is not None)
        return any(row.encoded.body is None and not row.request.why_not for row in pending)

    def candidates(self) -> list[Candidate]:
        """The dispatches as pairing takes them."""
        return [
            Candidate(
                index=rebuilt.index,
                session_id=self.log.session_id,
                kind=rebuilt.request.dispatch.kind,
                endpoint=_ENDPOINTS.get(rebuilt.encoded.protocol),
                wire_min=rebuilt.request.dispatch.wire.minimum,
                wire_max=rebuilt.request.dispatch.wire.maximum,
                keys=self.keys[rebuilt.index],
                allows=rebuilt.allows,
                opened_ms=None if rebuilt.request.purpose == "step" else rebuilt.request.dispatch.time_ms,
                settled_ms=rebuilt.request.dispatch.settled_time_ms,
                status=rebuilt.request.dispatch.status,
                load_body=self.bodies[rebuilt.index].__getitem__,
                wholes=tuple(None if whole is None else whole.key for whole in wholes),
            )
            for rebuilt, wholes in zip(self.rebuilt, self.wholes, strict=True)
        ]

    def adopt(self, assumed: Iterable[Used]) -> None:
        """Use values that a capture has proven; bodies are written again from the first one that rests on them.

        The log is not folded again. The encoders see all requests of a generation, since some settings of the later
        ones follow from the earlier ones.
        """
        fresh = tuple(assumed)
        names = {used.name for used in fresh}
        self.assumed = (*self.assumed, *fresh)
        for _, group in groupby(self.rebuilt, key=lambda rebuilt: rebuilt.log):
            rows = list(group)
            if any(used.name in names for row in rows for used in row.encoded.unlogged):
                self._encode_again(rows, names)

    def adopt_limit(self, limit: int) -> None:
        """Use an output limit that a capture has proven for the compactions whose own is not logged."""
        used = Used(OUTPUT_LIMIT, limit, "capture")
        self.assumed = (*self.assumed, used)
        for row in [row for row in self.rebuilt if row.request.dispatch.recomputed]:
            request, *others = (with_limit(one, limit) for one in (row.request, *row.others))
            encoded = self.replay.claimed(self.replay.encoder.encode(request), request.dispatch, row.log)
            encoded = replace(encoded, unlogged=(*encoded.unlogged, used))
            fresh = replace(row, request=request, others=tuple(others), encoded=encoded)
            self.rebuilt[row.index] = fresh
            self._enter(fresh, _read(self.replay.encoder, fresh, encoded))

    def _encode_again(self, rows: list[Rebuilt], names: set[str]) -> None:
        encoder = self.replay.encoder = SessionEncoder(self.replay.deployment, self.assumed)
        is_touched = False
        for row in rows:
            encoded = self.replay.claimed(encoder.encode(row.request), row.request.dispatch, row.log)
            readings = _read(encoder, row, encoded)
            is_named = any(used.name in names for used in row.encoded.unlogged)
            is_open = row.request.constant is not None or bool(encoder.image_forms(row.request))
            is_touched = is_touched or is_named or (not names and is_open)
            if is_touched:
                self.rebuilt[row.index] = replace(row, encoded=encoded)
                self._enter(self.rebuilt[row.index], readings)

    def take(self, rebuilt: Rebuilt) -> None:
        """Enter the next request of the replay."""
        self.rebuilt.append(rebuilt)
        self.bodies.append(())
        self.keys.append(())
        self.wholes.append(())
        self.readings.append(())
        self.has_images = self.has_images or bool(self.replay.encoder.image_forms(rebuilt.request))
        self._enter(rebuilt, _read(self.replay.encoder, rebuilt, rebuilt.encoded))

    def learn(self, deployment: Deployment) -> None:
        """Write bodies again for a deployment that more is known of, from the first with images or a fixed text on."""
        self.replay.deployment = replace(deployment, attachments=self.replay.deployment.attachments)
        for _, group in groupby(self.rebuilt, key=lambda rebuilt: rebuilt.log):
            self._encode_again(list(group), set())

    def _enter(self, rebuilt: Rebuilt, readings: list[Encoded]) -> None:
        known = [reading for reading in readings if reading.body is not None]
        bodies = tuple(reading.body for reading in known if reading.body is not None)
        self.bodies[rebuilt.index] = bodies
        self.keys[rebuilt.index] = tuple(map(BodyKey.of, bodies))
        self.wholes[rebuilt.index] = tuple(_whole(rebuilt, body) for body in bodies)
        self.readings[rebuilt.index] = tuple(known) if any(reading.images for reading in known) else ()


def with_limit(request: Request, limit: int) -> Request:
    """The same compaction with another output limit."""
    return replace(request, config={**request.config, "maxTokens": limit})


def rebuild(history: SessionHistory, deployment: Deployment, through: int | None) -> RebuiltSession:
    """All requests of a session."""
    session = RebuiltSession(Replay(history, deployment, through))
    for rebuilt in session.replay:
        session.take(rebuilt)
    return session


def _read(encoder: SessionEncoder, rebuilt: Rebuilt, encoded: Encoded) -> list[Encoded]:
    """The wire forms of every reading that the log leaves, likeliest first; equal bodies once."""
    found: dict[object, Encoded] = {}
    for request in (rebuilt.request, *rebuilt.others):
        # Before the captures have shown what they hold of images, the likeliest form will do.
        forms = encoder.image_forms(request) if encoder.deployment.shown is not None else []
        own = encoded if request is rebuilt.request else encoder.encode(request)
        for one in (encoder.encode(request, form=form) for form in forms) if forms else (own,):
            key = None if one.body is None or not forms else BodyKey.of(one.body)
            found.setdefault(key or len(found), one)
        if AS_MIGRATED in encoded.why and not forms:
            # The chat body of a request does not change when its log is migrated. Spec session-log 9.
            found[len(found)] = encoder.encode(request, CHAT)
    return list(found.values())


def _whole(rebuilt: Rebuilt, body: Body) -> Whole | None:
    extension = rebuilt.extended(body)
    return None if extension.body is body else Whole(BodyKey.of(extension.body), extension.span, extension.fields)
