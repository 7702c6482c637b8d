"""Captures and dispatches of one kind and session, each in order → pairs, from the surest evidence down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Literal, TypeAlias

from dsh_audit.capture.exchange import Exchange, ExchangeKind
from dsh_audit.record import dataclass
from dsh_audit.replay.pairing.matching import BodyKey, Match, PrefixMeter, value_key
from dsh_audit.text.alignment import MAX_CELLS, choose, gaps, longest_increasing, pair_equal, pair_in_order
from dsh_audit.wire.body import Body

CandidateKind: TypeAlias = Literal["step", "title", "compaction", "web-search"]
Status: TypeAlias = Literal["paired", "unexplained", "not-checked", "other", "not-captured"]
PairedBy: TypeAlias = Literal["bytes", "json", "order"]

_MAX_SIZE_CELLS = 1_000_000
_REQUIRED_BONUS = 0.01


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dispatch that may explain captured requests; sequences of these stand in log order.

    Args:
        index: of the request in its session.
        endpoint: the kind of exchange its protocol makes; None when that is unknown.
        wire_min: requests that the log proves.
        wire_max: requests that it allows; candidates with 0 are ignored.
        keys: of its body and of the alternatives to it, best first; empty when nothing could be rebuilt.
        load_body: gives the body of one of the keys by its place; None when it is gone.
        opened_ms: when the log says that it began; None for steps, of which it tells the end only.
        settled_ms: when the log says that it ended.
        status: of its answer, where the log tells it.
        allows: whether it may have carried the events of the log after one seq up to another.
        wholes: for each key that of the body with the extension fields that the log gives; None where there are none.
    """

    index: int
    session_id: str
    kind: CandidateKind
    endpoint: ExchangeKind | None
    wire_min: int
    wire_max: int
    keys: tuple[BodyKey, ...] = ()
    load_body: Callable[[int], Body | None] = field(default=lambda _: None, repr=False, compare=False)
    opened_ms: int | float | None = None
    settled_ms: int | float | None = None
    status: int | None = None
    allows: Callable[[int, int], bool] = field(default=lambda _after, _through: False, repr=False, compare=False)
    wholes: tuple[BodyKey | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """What became of one captured request or of one dispatch that no capture shows.

    Args:
        status: ``paired``; ``unexplained`` (of a given session, but no dispatch); ``not-checked`` (no body was kept
            to tell by); ``other`` (upload, search, or of a session not given); ``not-captured`` (nothing is wrong when
            its wire_min is 0).
        exchange: None for ``not-captured``.
        candidate: None for ``unexplained`` and ``other``.
        alternative: which of the candidate's keys matched; 0 when none did.
        evidence: why the two were paired.
        notes: one line each.
        match: the rebuilt body that the captured one starts with.
    """

    status: Status
    exchange: Exchange | None
    candidate: Candidate | None = None
    alternative: int = 0
    evidence: PairedBy | None = None
    notes: tuple[str, ...] = ()
    match: Match | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured request of a session.

    Args:
        match: the rebuilt body that its bytes start with.
        size_bytes: of its body; None when it has none.
    """

    exchange: Exchange
    match: Match | None
    size_bytes: int | None

    @property
    def key(self) -> BodyKey | None:
        """Of the base body that its bytes start with."""
        return None if self.match is None else self.match.key

    @property
    def whole(self) -> BodyKey | None:
        """Of that body with its extension fields, where the bytes go on so."""
        return None if self.match is None else self.match.whole


class Stream:
    """One run of the pairing; indices on the left are captures, on the right candidates."""

    def __init__(self, captured: Sequence[Captured], candidates: Sequence[Candidate]) -> None:
        self._captured = captured
        self._candidates = candidates
        self._found: dict[int, tuple[int, int, PairedBy]] = {}
        self._meter: tuple[int, PrefixMeter] | None = None

    def pair(self) -> dict[int, Pair]:
        """id of the exchange → its pair."""
        # Attempts of one step have equal base bodies, and each its own part of the log behind them.
        self._by_key([item.whole for item in self._captured], attrgetter("wholes"))
        self._by_span()
        self._by_time()
        self._by_key([item.key for item in self._captured], attrgetter("keys"))
        self._by_value()
        self._by_order()
        self._repeated()
        return {id(item.exchange): self._pair(index) for index, item in enumerate(self._captured)}

    def _left(self) -> list[int]:
        return [index for index in range(len(self._captured)) if index not in self._found]

    def _right(self) -> list[int]:
        used = {right for right, _, _ in self._found.values()}
        return [index for index in range(len(self._candidates)) if index not in used]

    def _is_required(self, right: int) -> bool:
        return self._candidates[right].wire_min > 0

    def _by_key(
        self, keys: Sequence[BodyKey | None], offers: Callable[[Candidate], tuple[BodyKey | None, ...]]
    ) -> None:
        lefts, rights = self._left(), self._right()
        offered = [offers(self._candidates[right]) for right in rights]
        required = [self._is_required(right) for right in rights]
        for left, right in pair_equal([keys[left] for left in lefts], offered, required):
            self._found[lefts[left]] = (rights[right], offered[right].index(keys[lefts[left]]), "bytes")

    def _by_span(self) -> None:
        """Attempts without a marker by the events that a body says it carries, where the log allows them to one only.

        Equal bodies are tried in order, each with the free dispatches of that body.
        """
        rights = self._free_by_key()
        for left in self._left():
            match = self._captured[left].match
            span = None if match is None or match.whole is not None else match.span
            free = rights.get(match.key, []) if match is not None and span is not None else []
            if match is None or span is None or not 1 < len(free) <= MAX_CELLS:
                continue
            allowed = [right for right in free if self._candidates[right].allows(*span)]
            if allowed:
                self._found[left] = (allowed[0], self._candidates[allowed[0]].keys.index(match.key), "bytes")
                free.remove(allowed[0])

    def _by_time(self) -> None:
        """Equal bodies of which some are missing, by the status of the answer and the clock of the capture.

        A request was made before its dispatch ended, and after the one before it of the same body ended.
        """
        rights, used = self._free_by_key(), set[int]()
        lefts: dict[BodyKey, list[int]] = {}
        for left in self._left():
            key = self._captured[left].key
            if key is not None and len(rights.get(key, ())) > 1:
                lefts.setdefault(key, []).append(left)
        for key, equal in lefts.items():
            free = [right for right in rights[key] if right not in used]
            for left, right in self._placed(equal, free) if len(equal) < len(free) <= MAX_CELLS else ():
                used.add(right)
                self._found[left] = (right, self._candidates[right].keys.index(key), "bytes")

    def _placed(self, lefts: list[int], rights: list[int]) -> list[tuple[int, int]]:
        """Each capture with the first dispatch that can be its own, of one-shot calls with the last one begun.

        None where one of them finds no place.
        """
        placed: list[tuple[int, int]] = []
        for left in lefts:
            exchange = self._captured[left].exchange
            if exchange.time_ms is None and exchange.status is None:
                return []
            fitting = [at for at, right in enumerate(rights) if self._fits(exchange, right)]
            if not fitting:
                return []
            has_begun = exchange.time_ms is not None and self._candidates[rights[fitting[-1]]].opened_ms is not None
            place = fitting[-1 if has_begun else 0]
            placed.append((left, rights[place]))
            rights = rights[place + 1 :]
        return placed

    def _fits(self, exchange: Exchange, right: int) -> bool:
        """Whether status and time of a capture go together with those of a dispatch."""
        candidate = self._candidates[right]
        if None not in (exchange.status, candidate.status) and exchange.status != candidate.status:
            return False
        if exchange.time_ms is None:
            return True
        if candidate.opened_ms is not None and exchange.time_ms < candidate.opened_ms:
            return False
        return candidate.settled_ms is None or exchange.time_ms <= candidate.settled_ms

    def _free_by_key(self) -> dict[BodyKey, list[int]]:
        """Body → the dispatches without a capture that may have sent it, in order."""
        rights: dict[BodyKey, list[int]] = {}
        for right in self._right():
            for key in dict.fromkeys(self._candidates[right].keys):
                rights.setdefault(key, []).append(right)
        return rights

    def _by_value(self) -> None:
        lefts, rights = self._left(), self._right()
        if not lefts or not rights:
            return
        bodies = (self._captured[left].exchange.read_body() for left in lefts)
        keys = [None if body is None else value_key(body) for body in bodies]
        sizes = {key.size_bytes for key in keys if key is not None}
        offers = [list(self._value_keys(right, sizes)) for right in rights]
        for left, right in pair_equal(keys, offers, [self._is_required(right) for right in rights]):
            self._found[lefts[left]] = (rights[right], offers[right].index(keys[left]), "json")

    def _value_keys(self, right: int, sizes: Container[int]) -> Iterator[BodyKey | None]:
        candidate = self._candidates[right]
        for place, key in enumerate(candidate.keys):
            body = candidate.load_body(place) if key.size_bytes in sizes else None
            yield None if body is None else value_key(body.to_bytes())

    def _by_order(self) -> None:
        steps = sorted(
            (left, right)
            for left, (right, _, _) in self._found.items()
            if self._candidates[right].kind != "title"  # titles race the steps
        )
        for left, right in self._titles(self._left(), self._right()):
            self._found[left] = (right, 0, "order")
        for lefts, rights in gaps(longest_increasing(steps), self._left(), self._right()):
            kinds = {left: self._captured[left].exchange.kind for left in lefts}
            for kind in sorted(set(kinds.values())):
                fitting = [right for right in rights if self._candidates[right].endpoint in (kind, None)]
                self._fill([left for left in lefts if kinds[left] == kind], fitting)

    def _titles(self, lefts: list[int], rights: list[int]) -> Iterator[tuple[int, int]]:
        """Titles by likeness, wherever they were received."""
        titles = [right for right in rights if self._candidates[right].kind == "title"]
        if len(titles) * len(lefts) > MAX_CELLS:
            return
        free = list(lefts)
        for right in titles:
            likeness, left = max(((self._likeness(left, right), left) for left in free), default=(0.0, -1))
            if likeness > 0.5:
                free.remove(left)
                yield left, right

    def _fill(self, lefts: list[int], rights: list[int]) -> None:
        used = {right for right, _, _ in self._found.values()}
        lefts = [left for left in lefts if left not in self._found]
        rights = [right for right in rights if right not in used]
        cells = len(lefts) * len(rights)
        if cells <= MAX_CELLS:
            pairs = pair_in_order(lefts, rights, self._likeness)
        elif cells <= _MAX_SIZE_CELLS:
            pairs = pair_in_order(lefts, rights, self._size_likeness)
        else:
            pairs = list(zip(lefts, choose(rights, len(lefts), self._is_required), strict=False))
        self._found.update((left, (right, 0, "order")) for left, right in pairs)

    def _likeness(self, left: int, right: int) -> float:
        """Share of the longer body that both begin with; a little more for a dispatch that did send."""
        if self._meter is None or self._meter[0] != left:
            self._meter = left, PrefixMeter(self._captured[left].exchange.read_body() or b"")
        meter, other = self._meter[1], self._load(right)
        share = 0.0
        if meter.captured and other is not None:
            share = meter.common(other) / max(len(meter.captured), other.size_bytes)
        return share * (1 - _REQUIRED_BONUS) + _REQUIRED_BONUS * self._is_required(right)

    def _size_likeness(self, left: int, right: int) -> float:
        size, keys = self._captured[left].size_bytes, self._candidates[right].keys
        share = 0.0
        if size and keys:
            share = min(size, keys[0].size_bytes) / max(size, keys[0].size_bytes)
        return share * (1 - _REQUIRED_BONUS) + _REQUIRED_BONUS * self._is_required(right)

    def _load(self, right: int) -> Body | None:
        candidate = self._candidates[right]
        return candidate.load_body(0) if candidate.keys else None

    def _repeated(self) -> None:
        """Give what is left to the dispatch of the capture before it, if that may have sent more than one."""
        counts: dict[int, int] = {}
        for right, _, _ in self._found.values():
            counts[right] = counts.get(right, 0) + 1
        for left in self._left():
            right, place, _ = self._found.get(left - 1, (-1, 0, "order"))
            if right >= 0 and counts[right] < self._candidates[right].wire_max:
                same = self._captured[left].key == self._captured[left - 1].key is not None
                self._found[left] = (right, place, "bytes" if same else "order")
                counts[right] += 1

    def _pair(self, left: int) -> Pair:
        item = self._captured[left]
        right, place, evidence = self._found.get(left, (-1, 0, None))
        if right < 0 and item.size_bytes is None:
            return Pair("not-checked", item.exchange, notes=(item.exchange.truncation or "no body was captured",))
        if right < 0:
            twin = self._twin(item)
            if twin is not None:
                note = f"in {twin.archive} as well: one request, captured twice"
                return Pair("other", item.exchange, notes=(note,))
            return Pair("unexplained", item.exchange, notes=self._why_not(item))
        return Pair("paired", item.exchange, self._candidates[right], place, evidence, match=item.match)

    def _twin(self, item: Captured) -> Exchange | None:
        """The same request in another archive that holds it as often."""
        own = item.exchange.archive
        same = [other.exchange for other in self._captured if other.match == item.match is not None]
        counts = Counter(exchange.archive for exchange in same)
        others = (exchange for exchange in same if exchange.archive != own)
        return next((exchange for exchange in others if counts[exchange.archive] >= counts[own]), None)

    def _why_not(self, item: Captured) -> tuple[str, ...]:
        same = [candidate.index for candidate in self._candidates if item.key in candidate.keys]
        if same:
            return (f"the same bytes as request {same[0]}, which another capture shows",)
        return ("no dispatch of the session is left that could explain it",)
