"""Captured requests against the requests of the logs: pairing, comparison, verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dsh_audit.capture import CaptureArchive
from dsh_audit.capture.exchange import Exchange
from dsh_audit.deployment import Deployment, Used
from dsh_audit.events import Json
from dsh_audit.finding import Finding, Where, sort_findings
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.session_log import LogStats, SessionLog
from dsh_audit.record import dataclass
from dsh_audit.replay.body_diff import UnloggedField, Verdict, diff_body
from dsh_audit.replay.image_uploads import pair_uploads
from dsh_audit.replay.judge import PairResult, judge
from dsh_audit.replay.pairing import Pair, Seen, pair_exchanges
from dsh_audit.replay.rebuilt_session import OUTPUT_LIMIT, RebuiltSession, rebuild, with_limit
from dsh_audit.replay.shown_images import learn_images
from dsh_audit.request.neutral import COMPACTION_INSTRUCTION
from dsh_audit.rules import wire as rules
from dsh_audit.text import ecma
from dsh_audit.text.to_json import to_json
from dsh_audit.wire.constants import CONSTANTS

_COUNTED = tuple(verdict for verdict in Verdict)
_AGREEING = (Verdict.IDENTICAL, Verdict.IDENTICAL_EXCEPT_UNLOGGED, Verdict.SAME_JSON)
_MAX_ASSUMPTIONS = 8
BEHIND_DAMAGE = "the log is damaged before it"
BEFORE_MIGRATION = "made before the migration; the older file is not here"


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a verification.

    Args:
        logs: each log with the stats of its pass.
        pairs: one a captured request in order of receipt, then the dispatches that no capture shows.
        findings: sorted.
        used: values that were not in the logs.
    """

    logs: tuple[tuple[SessionLog, LogStats], ...]
    pairs: tuple[PairResult, ...]
    findings: tuple[Finding, ...]
    used: tuple[dict[str, Any], ...]

    @property
    def summary(self) -> dict[str, int]:
        """Counts by verdict; ``captured`` counts the exchanges."""
        counts = {"captured": sum(pair.captured is not None for pair in self.pairs)}
        for verdict in (*_COUNTED, "not-checked"):
            counts[str(verdict).replace("-", "_")] = sum(pair.verdict == verdict for pair in self.pairs)
        return counts


def verify(
    histories: Sequence[SessionHistory],
    archives: Sequence[CaptureArchive],
    deployment: Deployment,
    through: int | None = None,
    findings: Iterable[Finding] = (),
) -> VerifyReport:
    """Compare every captured request with the request that a log stands for.

    Args:
        histories: of the sessions; requests of other sessions count as ``other``.
        archives: captures, read in the order given.
        deployment: what the logs cannot know; long constants are also learned from the captures.
        through: last seq to read of each log.
        findings: made while the inputs were opened.
    """
    exchanges = [exchange for archive in archives for exchange in archive.exchanges]
    found = [*findings]
    deployment = learn_constants(deployment, exchanges)
    sessions: dict[str, RebuiltSession] = {}
    for history in histories:
        session = rebuild(history, deployment, through)
        found += session.replay.findings
        found += _keep_longest(sessions, session)
    if any(session.has_images for session in sessions.values()):
        deployment = learn_images(deployment, exchanges)
        for session in sessions.values():
            session.learn(deployment)
    _learn_unmarked(deployment, exchanges, sessions)
    results = _own_witness(_pair_and_learn(exchanges, sessions), sessions)
    results = _hold_back(exchanges, results, sessions)
    if any(session.has_images for session in sessions.values()):
        known = [session.replay.deployment.attachments for session in sessions.values()]
        ids = Counter(exchange.id for exchange in exchanges)
        named = {exchange.id: exchange for exchange in exchanges if ids[exchange.id] == 1}
        results = pair_uploads(results, named, [store for store in known if store is not None])
    found += [finding for archive in archives for finding in archive.findings]
    found += [finding for result in results for finding in _findings(result, sessions)]
    found += _missing(results, sessions)
    found += _nothing_compared(results, sessions)
    used = {ecma.stringify(to_json(item)): to_json(item) for s in sessions.values() for item in _used(s)}
    return VerifyReport(
        logs=tuple((session.log, session.replay.reader.stats) for session in sessions.values()),
        pairs=tuple(results),
        findings=tuple(sort_findings(found)),
        used=tuple(used[key] for key in sorted(used)),
    )


def _pair_and_learn(exchanges: Sequence[Exchange], sessions: dict[str, RebuiltSession]) -> list[PairResult]:
    """Judge every pair; where a body differs, try what else the log allows, and keep what the capture proves."""
    seen: Seen = {}
    for _ in range(_MAX_ASSUMPTIONS):
        pairs = pair_exchanges(exchanges, {ident: session.candidates() for ident, session in sessions.items()}, seen)
        results = [judge(pair, sessions) for pair in pairs]
        proven = _prove(pairs, results, sessions)
        if not proven and not _prove_limits(pairs, results, sessions):
            break
        for ident, assumed in proven.items():
            sessions[ident].adopt(assumed)
    return results


def _prove_limits(
    pairs: Sequence[Pair], results: Sequence[PairResult], sessions: Mapping[str, RebuiltSession]
) -> bool:
    """Adopt the output limit of failed compactions where a captured body shows one that explains all of it."""
    for pair, result in zip(pairs, results, strict=True):
        rebuilt, session = result.rebuilt, sessions.get(result.session_id or "")
        if result.verdict != Verdict.DIFFERENT or session is None or rebuilt is None or pair.exchange is None:
            continue
        if not rebuilt.request.dispatch.recomputed or any(used.name == OUTPUT_LIMIT for used in session.assumed):
            continue
        body = pair.exchange.read_body() or b""
        limit = _limit_of(body)
        tried = () if limit is None else (with_limit(one, limit) for one in (rebuilt.request, *rebuilt.others))
        for encoded in map(session.replay.encoder.encode, tried):
            if encoded.body is not None and diff_body(body, encoded.body, pair.exchange.fidelity).verdict in _AGREEING:
                assert limit is not None
                session.adopt_limit(limit)
                return True
    return False


def _limit_of(body: bytes) -> int | None:
    try:
        value: Json = ecma.parse(body)
    except ecma.EcmaSyntaxError:
        return None
    limit = value.get("max_tokens") if isinstance(value, dict) else None
    return limit if isinstance(limit, int) and limit > 0 else None


def _own_witness(results: Sequence[PairResult], sessions: Mapping[str, RebuiltSession]) -> list[PairResult]:
    """Where one body alone shows the output limit it was judged by, that limit is an unlogged input of it."""
    shown: dict[str, list[PairResult]] = {}
    for result in results:
        rebuilt, session = result.rebuilt, sessions.get(result.session_id or "")
        is_learnt = session is not None and any(used.name == OUTPUT_LIMIT for used in session.assumed)
        if is_learnt and rebuilt is not None and rebuilt.request.dispatch.recomputed and result.verdict in _AGREEING:
            shown.setdefault(result.session_id or "", []).append(result)
    alone = {id(found[0]) for found in shown.values() if len(found) == 1}
    return [_with_unlogged_limit(result) if id(result) in alone else result for result in results]


def _with_unlogged_limit(result: PairResult) -> PairResult:
    assert result.rebuilt is not None and result.diff is not None
    value = result.rebuilt.request.config["maxTokens"]
    text = b'"max_tokens":' + ecma.stringify(value)
    body = result.rebuilt.encoded.body
    at = body.to_bytes().find(text) if body is not None else -1
    field = UnloggedField(OUTPUT_LIMIT, max(at, 0), len(text), "/max_tokens")
    diff = replace(result.diff, unlogged=(*result.diff.unlogged, field))
    verdict = str(Verdict.IDENTICAL_EXCEPT_UNLOGGED) if result.verdict == Verdict.IDENTICAL else result.verdict
    note = f"{OUTPUT_LIMIT} = {value} is shown by this body only: fits one"
    return replace(result, verdict=verdict, diff=diff, notes=(*result.notes, note))


def _prove(
    pairs: Sequence[Pair], results: Sequence[PairResult], sessions: Mapping[str, RebuiltSession]
) -> dict[str, tuple[Used, ...]]:
    """Session → assumptions under which its first differing request is the captured one."""
    proven: dict[str, tuple[Used, ...]] = {}
    tried: set[str] = set()
    for pair, result in zip(pairs, results, strict=True):
        ident = result.session_id
        if result.verdict != Verdict.DIFFERENT or ident is None or ident in tried:
            continue
        tried.add(ident)
        exchange, rebuilt = pair.exchange, result.rebuilt
        body = exchange.read_body() if exchange is not None else None
        if exchange is None or rebuilt is None or body is None:
            continue
        for assumed, encoded in sessions[ident].replay.encoder.alternatives(rebuilt.request):
            if encoded.body is not None and diff_body(body, encoded.body, exchange.fidelity).verdict in _AGREEING:
                proven[ident] = assumed
                break
    return proven


def _hold_back(
    exchanges: Sequence[Exchange], results: list[PairResult], sessions: Mapping[str, RebuiltSession]
) -> list[PairResult]:
    """Verdicts without those against a capture that stands for a part of the log that is not here."""
    agreed: dict[str, list[tuple[int, PairResult]]] = {}
    for place, result in enumerate(results[: len(exchanges)]):
        if result.verdict in _AGREEING and result.session_id is not None:
            agreed.setdefault(result.session_id, []).append((place, result))
    return [
        _held_back(place, result, sessions.get(result.session_id or ""), agreed.get(result.session_id or "", []))
        for place, result in enumerate(results)
    ]


def _held_back(
    place: int, result: PairResult, session: RebuiltSession | None, agreed: Sequence[tuple[int, PairResult]]
) -> PairResult:
    if session is None or result.captured is None or result.verdict not in (Verdict.DIFFERENT, Verdict.UNEXPLAINED):
        return result
    note = None
    if session.replay.reader.stopped_at is not None and all(other < place for other, _ in agreed):
        note = BEHIND_DAMAGE
    until = session.replay.history.generations[0].migrated_until
    native = (other for other, one in agreed if one.rebuilt and one.rebuilt.request.dispatch.prefix_seq >= until)
    if until and all(place < other for other in native):
        note = BEFORE_MIGRATION
    if note is None:
        return result
    return replace(result, rebuilt=None, verdict="not-checked", diff=None, notes=(note,), size_bytes=None)


def _used(session: RebuiltSession) -> Iterable[Any]:
    return (item for rebuilt in session.rebuilt for item in rebuilt.encoded.unlogged)


def _keep_longest(sessions: dict[str, RebuiltSession], session: RebuiltSession) -> list[Finding]:
    """Enter a session; of two with one id the longer log stays."""
    ident = session.log.session_id
    other = sessions.get(ident)
    if other is None:
        sessions[ident] = session
        return []
    kept, dropped = sorted((other, session), key=lambda s: -s.replay.reader.stats.events)
    sessions[ident] = kept
    message = f"session {ident} is also in {kept.log.source.label}; this copy was not used"
    return [Finding(rules.DUPLICATE_SESSION, message, dropped.log.where())]


def _learn_unmarked(
    deployment: Deployment, exchanges: Sequence[Exchange], sessions: Mapping[str, RebuiltSession]
) -> None:
    """Look for the instruction of compactions in bodies without the header that marks them: pi-ai sends none."""
    if COMPACTION_INSTRUCTION in deployment.constants:
        return
    waiting = [session for session in sessions.values() if session.lacks_instruction]
    if waiting:
        told = learn_constants(deployment, exchanges, marked=False)
        for session in waiting if told is not deployment else ():
            session.learn(told)


def learn_constants(deployment: Deployment, exchanges: Iterable[Exchange], *, marked: bool = True) -> Deployment:
    """The deployment with the long constants that captures show, checked by digest.

    Args:
        marked: read only the bodies that their header marks as a compaction's.
    """
    wanted = {name: constant for name, constant in CONSTANTS.items() if name not in deployment.constants}
    texts: dict[str, str] = {}
    for exchange in exchanges:
        if len(texts) == len(wanted):
            break
        if marked != exchange.is_compaction:
            continue
        for text in _last_texts(exchange.read_body()):
            texts.update({name: text for name, constant in wanted.items() if constant.matches(text)})
    return replace(deployment, constants={**texts, **deployment.constants}) if texts else deployment


def _last_texts(body: bytes | None) -> list[str]:
    """Texts of the last message of a body, whatever its protocol."""
    try:
        value: Json = ecma.parse(body or b"")
    except ecma.EcmaSyntaxError:
        return []
    messages = (value.get("messages") or value.get("input")) if isinstance(value, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) else None
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]


def _findings(result: PairResult, sessions: Mapping[str, RebuiltSession]) -> list[Finding]:
    session = None if result.session_id is None else sessions.get(result.session_id)
    where = Where(
        source=None if session is None else session.log.source.label,
        session=result.session_id,
        request=None if result.rebuilt is None else result.rebuilt.index,
        captured=result.captured,
    )
    if result.verdict == Verdict.DIFFERENT:
        return [_different(result, where)]
    if result.verdict == Verdict.UNEXPLAINED:
        return [Finding(rules.UNEXPLAINED, f"capture {result.captured} is explained by no dispatch", where)]
    if result.verdict == "not-checked" and result.rebuilt is None and session is not None:
        return [Finding(rules.NOT_CHECKED, f"capture {result.captured}: {'; '.join(result.notes)}", where)]
    if result.verdict == "not-checked" and result.rebuilt is not None:
        message = f"request {result.rebuilt.index}: {'; '.join(result.notes)}"
        return [Finding(rules.NOT_CHECKED, message, where)]
    return []


def _missing(results: Iterable[PairResult], sessions: Mapping[str, RebuiltSession]) -> list[Finding]:
    """One finding a session for the requests that its log proves and no capture shows."""
    missing: dict[str, list[int]] = {}
    for result in results:
        rebuilt = result.rebuilt
        if result.verdict != Verdict.NOT_CAPTURED or rebuilt is None or result.session_id is None:
            continue
        if rebuilt.request.dispatch.wire.minimum:
            missing.setdefault(result.session_id, []).append(rebuilt.index)
    findings: list[Finding] = []
    for ident, indexes in missing.items():
        shown = ", ".join(map(str, indexes[:5])) + (", …" if len(indexes) > 5 else "")
        message = f"{len(indexes)} requests were sent that no capture shows: {shown}"
        where = replace(sessions[ident].log.where(), request=indexes[0])
        findings.append(Finding(rules.NOT_CAPTURED, message, where, {"requests": indexes}))
    return findings


def _nothing_compared(results: Sequence[PairResult], sessions: Mapping[str, RebuiltSession]) -> list[Finding]:
    """A finding when requests were captured and requests were sent, and still no two of them were compared."""
    compared = any(result.verdict in (*_AGREEING, Verdict.DIFFERENT, Verdict.UNEXPLAINED) for result in results)
    captured = sum(result.captured is not None for result in results)
    sent = [
        (result.session_id or "", result.rebuilt)
        for result in results
        if result.rebuilt is not None and (result.captured or result.rebuilt.request.dispatch.wire.minimum)
    ]
    if compared or not captured or not sent:
        return []
    reasons = sorted({"; ".join(rebuilt.encoded.why) for _, rebuilt in sent if rebuilt.encoded.body is None})
    why = f": {reasons[0]}" if reasons else ""
    message = f"not one of {captured} captured requests was compared with the {len(sent)} that the logs prove{why}"
    return [Finding(rules.NOTHING_COMPARED, message, sessions[sent[0][0]].log.where())]


def _different(result: PairResult, where: Where) -> Finding:
    assert result.rebuilt is not None
    first = None if result.diff is None else result.diff.first_difference
    message = f"request {result.rebuilt.index} differs from capture {result.captured}"
    if first is None:
        return Finding(rules.DIFFERENT, message, where)
    where = replace(where, at=first.offset, pointer=first.pointer, seq=first.seq)
    details = {"captured": first.captured, "replayed": first.replayed}
    return Finding(rules.DIFFERENT, f"{message} at byte {first.offset}", where, details)
