"""The verdict on one pair of a captured request and a dispatch.

A body that starts with a rebuilt one, as the hash that pairing ran over it has shown, is judged by what follows; only
bodies that differ are read again. Source: spec dispatch 8, wire-deepseek 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from dsh_audit.capture.exchange import BodyDigest, Exchange, Fidelity
from dsh_audit.dispatch.model import WireCount
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.replay.body_diff import BodyDiff, UnloggedField, Verdict, diff_body, diff_rest
from dsh_audit.replay.pairing import Pair
from dsh_audit.replay.pairing.matching import BodyKey, Match
from dsh_audit.replay.rebuilt_session import RebuiltSession
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer, locate
from dsh_audit.text.value_diff import ValueChange
from dsh_audit.wire.adapter import Encoded
from dsh_audit.wire.body import Body
from dsh_audit.wire.extensions import Extension
from dsh_audit.wire.images import SentImage

_EXACT = (Fidelity.RAW, Fidelity.TEXT)


@dataclass(frozen=True, slots=True)
class UploadResult:
    """A captured upload of an image; all but its bytes is as a release writes it.

    Args:
        attachment: id of the stored object.
        needed_by: index of the request that needed it.
        size_bytes: of the uploaded version.
        is_stored: whether these are the stored bytes; None where the version is lost.
    """

    attachment: str
    needed_by: int
    size_bytes: int
    is_stored: bool | None

    JSON: ClassVar = "attachment needed_by size=size_bytes stored=is_stored"


@dataclass(frozen=True, slots=True)
class PairResult:
    """One row of the ``verify`` report.

    Args:
        captured: id of the exchange; None for a dispatch that no capture shows.
        session_id: of the dispatch, or the one the exchange names.
        rebuilt: the request; None when no dispatch explains the exchange.
        verdict: see :class:`~dsh_audit.replay.body_diff.Verdict`, or ``not-checked``.
        diff: the comparison; None when nothing was compared.
        notes: one line each.
        size_bytes: of the replayed body with its extension fields; None where nothing was compared.
        images: how its images went.
        upload: of an exchange that uploaded an image for a later request.
    """

    captured: str | None
    session_id: str | None
    rebuilt: Rebuilt | None
    verdict: str
    diff: BodyDiff | None = None
    notes: tuple[str, ...] = ()
    size_bytes: int | None = None
    images: tuple[SentImage, ...] = ()
    upload: UploadResult | None = None

    JSON: ClassVar = (
        "captured session_id request=rebuilt.index verdict first_difference=diff.first_difference unlogged changes "
        "notes images? upload?"
    )

    @property
    def unlogged(self) -> tuple[UnloggedField, ...]:
        """Members of the captured body that the log cannot explain."""
        return () if self.diff is None else self.diff.unlogged

    @property
    def changes(self) -> tuple[ValueChange, ...]:
        """Values that differ."""
        return () if self.diff is None else self.diff.changes


def judge(pair: Pair, sessions: Mapping[str, RebuiltSession]) -> PairResult:
    """The verdict on one pair."""
    exchange, candidate = pair.exchange, pair.candidate
    captured = None if exchange is None else exchange.id
    if candidate is None:
        named = None if exchange is None else exchange.session_id
        return PairResult(captured, named, None, pair.status, None, pair.notes)
    session = sessions[candidate.session_id]
    rebuilt = session.rebuilt[candidate.index]
    if exchange is None:
        wire = rebuilt.request.dispatch.wire
        notes = (*pair.notes, f"{_count(wire)} sent: {wire.reason}")
        return PairResult(None, candidate.session_id, rebuilt, pair.status, None, notes)
    result = PairResult(captured, candidate.session_id, rebuilt, "not-checked", None, pair.notes)
    result = _judge_match(pair, session, result) or _judge_body(exchange, pair.alternative, session, result)
    readings = session.readings[candidate.index]
    return _with_images(result, readings[pair.alternative]) if readings else result


def _with_images(result: PairResult, reading: Encoded) -> PairResult:
    """The verdict with the file ids that were taken from the capture, and how the images went."""
    result = replace(result, images=reading.images)
    if result.diff is None or reading.body is None or not reading.file_ids:
        return result
    if result.verdict not in (Verdict.IDENTICAL, Verdict.IDENTICAL_EXCEPT_UNLOGGED, Verdict.SAME_JSON):
        return result
    unlogged = (*_file_ids(reading.body, reading.file_ids), *result.diff.unlogged)
    verdict = Verdict.SAME_JSON if result.verdict == Verdict.SAME_JSON else Verdict.IDENTICAL_EXCEPT_UNLOGGED
    return replace(result, verdict=str(verdict), diff=replace(result.diff, verdict=verdict, unlogged=unlogged))


def _file_ids(body: Body, wanted: frozenset[str]) -> Iterator[UnloggedField]:
    """The places of file ids in a body."""
    texts = [ecma.stringify(ident) for ident in wanted]
    start = 0
    for part in body.parts():
        if part.kind == "message" and any(text in part.data for text in texts):
            value = ecma.parse(part.value)
            for path in _paths(value, wanted):
                at = locate(part.value, path) or 0
                size = len(ecma.stringify(_value_at(value, path)))
                yield UnloggedField("file_id", start + part.lead + at, size, join_pointer((*part.path, *path)))
        start += len(part.data)


def _paths(value: Json, wanted: frozenset[str], path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key == "file_id" and isinstance(inner, str) and inner in wanted:
            yield (*path, key)
        elif isinstance(inner, (dict, list)):
            yield from _paths(inner, wanted, (*path, key))


def _value_at(value: Json, path: tuple[str | int, ...]) -> Json:
    for key in path:
        value = value[key]
    return value


def _judge_match(pair: Pair, session: RebuiltSession, result: PairResult) -> PairResult | None:
    """The verdict on a body that starts with the rebuilt one; None when only the whole body can tell."""
    match, exchange, rebuilt = pair.match, pair.exchange, result.rebuilt
    assert exchange is not None and rebuilt is not None
    if match is None or match.rest is None or pair.evidence != "bytes" or exchange.fidelity not in _EXACT:
        return None
    base = session.bodies[rebuilt.index][pair.alternative]
    whole = session.wholes[rebuilt.index][pair.alternative]
    if session.keys[rebuilt.index][pair.alternative] != match.key:
        return None
    if match.whole is not None:
        if whole is None or whole.key != match.whole:
            return None
        notes = rebuilt.extensions.confirm(rebuilt.request, whole.span, match.rest)
        size, fields, rest = whole.key.size_bytes, whole.fields, match.rest
    else:
        encoded = replace(rebuilt.encoded, body=base)
        extension = rebuilt.extensions.extend_rest(rebuilt.request, encoded, match.rest)
        after = _after(extension, match)
        if after is None:
            return None
        notes, size, fields, rest = extension.notes, extension.body.size_bytes, extension.fields, after
    diff = diff_rest(rest, size - 1, base, fields, exchange.fidelity)
    if diff is None:
        return None
    return replace(
        result, verdict=str(diff.verdict), diff=diff, notes=(*pair.notes, *notes, *diff.notes), size_bytes=size
    )


def _after(extension: Extension, match: Match) -> bytes | None:
    """What follows the extension fields in a captured body; None when it does not have them so."""
    assert match.rest is not None
    extra = extension.body.size_bytes - match.key.size_bytes
    tail = b"".join(fragment.data for fragment in extension.body.tail)
    expected = tail[len(tail) - extra - 1 : -1]
    return match.rest[extra:] if match.rest.startswith(expected) else None


def _judge_body(exchange: Exchange, place: int, session: RebuiltSession, result: PairResult) -> PairResult:
    """The verdict by the whole body, or by what the capture kept of it."""
    rebuilt = result.rebuilt
    assert rebuilt is not None
    body, bodies = exchange.read_body(), session.bodies[rebuilt.index]
    if body is None and exchange.digest is not None and bodies:
        whole = session.wholes[rebuilt.index][place]
        key = session.keys[rebuilt.index][place] if whole is None else whole.key
        verdict, note = _judge_digest(exchange.digest, key)
        return replace(result, verdict=verdict, notes=(*result.notes, note), size_bytes=key.size_bytes)
    if body is None or not bodies:
        absent = body is None and exchange.digest is None
        why = (exchange.truncation or "the capture has no body",) if absent else rebuilt.encoded.why
        return replace(result, notes=(*result.notes, *why))
    extension = rebuilt.extended(bodies[place], body if exchange.fidelity in _EXACT else None)
    diff = diff_body(body, extension.body, exchange.fidelity)
    notes = (*result.notes, *extension.notes, *diff.notes)
    # What is there agrees: a cut capture proves no difference.
    verdict = "not-checked" if diff.is_prefix else str(diff.verdict)
    return replace(result, verdict=verdict, diff=diff, notes=notes, size_bytes=extension.body.size_bytes)


def _count(wire: WireCount) -> str:
    """How many requests a dispatch sent, in words."""
    if wire.minimum != wire.maximum:
        return f"{wire.minimum} to {wire.maximum} requests"
    return f"{wire.minimum} request" if wire.minimum == 1 else f"{wire.minimum} requests"


def _judge_digest(digest: BodyDigest, replayed: BodyKey) -> tuple[str, str]:
    """Verdict and note on a body of which only size and digest were captured."""
    if (digest.size_bytes, digest.sha256) == (replayed.size_bytes, replayed.sha256):
        return str(Verdict.IDENTICAL), "compared by size and SHA-256"
    if digest.size_bytes > replayed.size_bytes:
        extra = digest.size_bytes - replayed.size_bytes
        return "not-checked", f"only a digest was captured; {extra} bytes more may be members that no log explains"
    return str(Verdict.DIFFERENT), "size or SHA-256 differs; no body was captured to show where"
