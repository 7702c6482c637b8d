"""Captured requests ↔ dispatches of the logs.

Grouped by the session-id header (requests without one by content), compactions by their header. Then, from
the surest evidence to the weakest: equal bytes, equal JSON, and the order of what is left
between these. A dispatch that may have sent nothing is passed over where that lets the others match. Missing
and additional captures do not disturb their neighbours. Source: spec dispatch 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import TypeAlias

from dsh_audit.capture.exchange import MODEL_KINDS, Exchange
from dsh_audit.record import dataclass
from dsh_audit.replay.pairing.matching import BodyKey, KeyFinder, Match, match_body, opening_text
from dsh_audit.replay.pairing.order import Candidate, Captured, Pair, Stream

_MAX_OPENINGS = 50


Seen: TypeAlias = dict[int, Match]
"""id of an exchange → the rebuilt body that it was found to start with."""


def pair_exchanges(
    exchanges: Sequence[Exchange], sessions: Mapping[str, Sequence[Candidate]], seen: Seen | None = None
) -> list[Pair]:
    """Explain every captured request by at most one dispatch.

    Args:
        exchanges: of all captures, in order of receipt.
        sessions: session id → its dispatches in log order.
        seen: what an earlier call found out, for bodies that need not be read again; this call adds to it.

    Returns:
        one pair an exchange in the given order, then the dispatches without a capture, session by session.
        A dispatch with wire_max above 1 may stand in several pairs.
    """
    sorter = _Sorter(sessions, {} if seen is None else seen)
    for exchange in exchanges:
        sorter.take(exchange)
    for group in sorter.groups.values():
        for stream in group.streams():
            sorter.pairs.update(stream.pair())
    shown = {id(pair.candidate) for pair in sorter.pairs.values()}
    missing = [
        Pair("not-captured", None, candidate)
        for group in sorter.groups.values()
        for candidate in group.candidates
        if id(candidate) not in shown
    ]
    return [sorter.pairs[id(exchange)] for exchange in exchanges] + missing


@dataclass(slots=True)
class _Group:
    """The captures and dispatches of one session."""

    candidates: list[Candidate]
    captured: list[Captured] = field(default_factory=list)

    def streams(self) -> list[Stream]:
        """Parts that keep their order each: compactions, searches and the rest race one another.

        Only the DeepSeek adapter marks compactions; unmarked ones stay among the rest.
        """
        searches = [item for item in self.captured if item.exchange.kind == "search"]
        models = [item for item in self.captured if item.exchange.kind != "search"]
        marked = [item for item in models if item.exchange.is_compaction]
        rest = [item for item in models if not item.exchange.is_compaction]
        is_marking = bool(marked) or any(item.exchange.session_id for item in rest)
        one_shots = {"web-search", "compaction"} if is_marking else {"web-search"}
        return [
            Stream(marked, [item for item in self.candidates if item.kind == "compaction"] if marked else []),
            Stream(searches, [item for item in self.candidates if item.kind == "web-search"]),
            Stream(rest, [item for item in self.candidates if item.kind not in one_shots]),
        ]


class _Sorter:
    """Assigns exchanges to sessions."""

    def __init__(self, sessions: Mapping[str, Sequence[Candidate]], seen: Seen) -> None:
        self._seen = seen
        self.groups = {
            session: _Group([candidate for candidate in candidates if candidate.wire_max > 0])
            for session, candidates in sessions.items()
        }
        self.pairs: dict[int, Pair] = {}
        self._places: dict[BodyKey, list[str]] = {}
        self._openings: dict[str, str] | None = None
        self._bases: dict[BodyKey, BodyKey] = {}
        for session, group in self.groups.items():
            for candidate in group.candidates:
                for key, whole in zip_longest(candidate.keys, candidate.wholes):
                    self._places.setdefault(key, []).append(session)
                    if whole is not None:
                        self._bases[whole] = key
                        self._places.setdefault(whole, []).append(session)
        self._finder = KeyFinder(self._places)

    def take(self, exchange: Exchange) -> None:
        """Put an exchange into its session, or aside with the reason."""
        kind = exchange.kind
        if kind not in MODEL_KINDS and kind != "search":
            self._set_aside(exchange, "an upload" if kind == "upload" else "no model request")
            return
        named = exchange.session_id
        if named is not None and named not in self.groups:
            self._set_aside(exchange, f"of session {named}, which was not given")
            return
        match = self._seen.get(id(exchange))
        if match is not None and (match.whole or match.key) in self._places:
            self._enter(exchange, match, match.size_bytes, named or self._session_of(exchange, None, match))
            return
        body = exchange.read_body()
        match = self._match(exchange, body)
        if match is not None:
            self._seen[id(exchange)] = match
        size = len(body) if body is not None else exchange.digest.size_bytes if exchange.digest else None
        self._enter(exchange, match, size, named or self._session_of(exchange, body, match))

    def _enter(self, exchange: Exchange, match: Match | None, size: int | None, session: str | None) -> None:
        if session is None and size is None and len(self.groups) == 1:
            session = next(iter(self.groups))  # nothing is claimed of it; its place may name its dispatch
        if session is None and size is None:
            note = f"{exchange.truncation or 'no body was captured'}, and no session is named"
            self.pairs[id(exchange)] = Pair("not-checked", exchange, notes=(note,))
            return
        if session is None:
            self._set_aside(exchange, "names no session, and no given session has such a request")
            return
        self.groups[session].captured.append(Captured(exchange, match, size))

    def _match(self, exchange: Exchange, body: bytes | None) -> Match | None:
        if body is not None:
            match = match_body(body, self._finder, self._bases)
            if exchange.text_check is not None:
                known = 0 if match is None else (match.whole or match.key).size_bytes - 1
                exchange.text_check.run(body, known)
            return match
        if exchange.digest is None:
            return None
        key = BodyKey(exchange.digest.size_bytes, exchange.digest.sha256)
        base = self._bases.get(key, key)
        whole = None if base is key else key
        return Match(base, whole, b"}", key.size_bytes) if key in self._places else None

    def _set_aside(self, exchange: Exchange, note: str) -> None:
        self.pairs[id(exchange)] = Pair("other", exchange, notes=(note,))

    def _session_of(self, exchange: Exchange, body: bytes | None, match: Match | None) -> str | None:
        """The session of a request that does not name it as the DeepSeek adapter does."""
        for session in exchange.affinity_ids:
            if session in self.groups:
                return session
        if match is not None:
            places = self._places[match.whole or match.key]
            return places.pop(0) if len(places) > 1 else places[0]
        if body is None or exchange.kind == "search":
            return None
        opening = opening_text(body)
        return None if opening is None else self._by_opening().get(opening)

    def _by_opening(self) -> dict[str, str]:
        """First user text → session, from a sample of each session's requests."""
        if self._openings is None:
            self._openings = {}
            for session, group in self.groups.items():
                for candidate in group.candidates[:: len(group.candidates) // _MAX_OPENINGS + 1]:
                    body = candidate.load_body(0) if candidate.keys else None
                    text = None if body is None else opening_text(body.to_bytes())
                    if text is not None:
                        self._openings.setdefault(text, session)
        return self._openings
