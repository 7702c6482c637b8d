"""Tool calls and their results: each call has one id, one result, and nothing between the two."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dsh_audit.checks.lint.history import HistoryObserver, calls_of, results_of
from dsh_audit.checks.lint.model import Check, Facts, Issue, Sent, names
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.rules import lint as rules


@dataclass(slots=True)
class _Call:
    seq: int
    place: int
    tool: str
    between: int | None = None


@dataclass(slots=True)
class PairFold:
    """The calls of one history."""

    asked: dict[str, _Call] = field(default_factory=dict)
    pending: dict[str, _Call] = field(default_factory=dict)
    found: list[Issue] = field(default_factory=list)

    def node(self, seq: int, message: dict[str, Json]) -> None:
        """The next message."""
        results = results_of(message)
        if not results:
            for call in self.pending.values():
                call.between = seq if call.between is None else call.between
        for call_id in results:
            self._answer(seq, call_id)
        for place, block in calls_of(message):
            self._ask(seq, place, str(block.get("id", "")), str(block.get("name", "")))

    def _ask(self, seq: int, place: int, call_id: str, tool: str) -> None:
        pointer = f"/message/content/{place}"
        named = names(call=call_id, tool=tool)
        if not call_id or not tool:
            what = "a tool call has an empty " + (" and an empty ".join(
                word for word, value in (("id", call_id), ("name", tool)) if not value))  # fmt: skip
            self.found.append(Issue(rules.EMPTY_CALL, "empty-call", what, seq, pointer, named))
        if call_id in self.asked:
            what = f"the call id {call_id!r} was used before, at seq {self.asked[call_id].seq}"
            self.found.append(Issue(rules.REPEATED_CALL, "repeated-call", what, seq, pointer, named))
        self.asked[call_id] = self.pending[call_id] = _Call(seq, place, tool)

    def _answer(self, seq: int, call_id: str) -> None:
        call = self.pending.pop(call_id, None)
        if call is None:
            known = self.asked.get(call_id)
            why = "no call of that id is in the history" if known is None else "that call has its result already"
            named = names(call=call_id, tool=known.tool if known else None)
            what = f"a result answers the call {call_id!r}: {why}"
            self.found.append(Issue(rules.STRAY_RESULT, "stray-result", what, seq, "/message", named))
        elif call.between is not None:
            what = f"a message (seq {call.between}) stands between the call {call_id!r} of {call.tool} and its result"
            named = names(call=call_id, tool=call.tool)
            self.found.append(Issue(rules.INTERPOSED, "interposed", what, call.between, "", named))

    def issues(self, sent: Sent) -> Iterable[Issue]:
        """What was found, and the calls that have no result yet; a resume gives those of an open turn one."""
        yield from self.found
        for call_id, call in () if sent.is_turn_open else self.pending.items():
            what = f"the call {call_id!r} of {call.tool} has no result"
            named = names(call=call_id, tool=call.tool)
            yield Issue(rules.OPEN_CALL, "open-call", what, call.seq, f"/message/content/{call.place}", named)


def _observe(facts: Facts) -> HistoryObserver:
    return HistoryObserver(facts, PairFold)


CHECK = Check("pairing", "pass", _observe)
