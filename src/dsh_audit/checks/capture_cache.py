"""The cache check of captures alone: neighbouring calls compared, with no log to say why.

Requests are put into lineages by what they share: the same session, and the head of the prompt or the first user text.
The causes are those of the check of a log, as far as bodies, answers and times tell them; seqs stay empty. The order is
that of receipt. Source: caching 4a to 4e.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from dsh_audit.capture.archive import CaptureArchive
from dsh_audit.capture.exchange import MODEL_KINDS, Exchange
from dsh_audit.capture.response import ResponseFacts, read_facts
from dsh_audit.checks.cache import CacheOptions, predict_tokens
from dsh_audit.checks.cache_findings import check_cache
from dsh_audit.checks.cache_model import Bust, CacheRow, CaptureRun, Compared, Money, Predicted, Remark
from dsh_audit.checks.cache_sum import CacheReport, summarise
from dsh_audit.checks.causes import CAUSES, Cause, Why
from dsh_audit.checks.lineage import Branches, Match
from dsh_audit.checks.prompt import extends, resent_bytes, shared_prefix
from dsh_audit.checks.provider_rules import CacheRules
from dsh_audit.checks.shared_prefix import common_prefix
from dsh_audit.checks.usage_check import lost_tokens, missed_tokens
from dsh_audit.difference.requests import diff_texts, part_item
from dsh_audit.finding import sort_findings
from dsh_audit.pricing import Rates, Usage
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.pointer import MalformedError, scan_members
from dsh_audit.wire.body import Body
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.prompt import Prompt, PromptReader

_KEPT = 64
"""Lineages that a request is looked for in, the latest first."""


@dataclass(frozen=True, slots=True)
class _Call:
    index: int
    exchange: Exchange
    body: Body | None
    prompt: Prompt | None
    model: str
    provider: str
    usage: Usage | None
    facts: ResponseFacts

    @property
    def route(self) -> tuple[str, str, str]:
        return self.provider, self.model, self.exchange.kind


@dataclass(slots=True)
class _Lineage:
    name: str
    session: str | None
    last: _Call
    branches: dict[tuple[str, str, str], Branches]


class CaptureScanner:
    """Takes captured model requests in order of receipt."""

    def __init__(self, options: CacheOptions) -> None:
        self._options = options
        self._prompts = PromptReader()
        self._lineages: list[_Lineage] = []
        self._repeats: Counter[tuple[str, str | None]] = Counter()
        self._compacted: set[str | None] = set()
        self.used_rules: dict[str, CacheRules] = {}

    def see(self, index: int, exchange: Exchange) -> CacheRow:
        """The row of one request."""
        call = self._call(index, exchange)
        lineage = self._find(call)
        before = None if lineage is None else lineage.last
        if lineage is None:
            named = "compaction" if exchange.is_compaction else "steps"
            lineage = _Lineage(f"{named}:{index}", exchange.session_id, call, {})
            self._lineages.append(lineage)
        branches = lineage.branches.setdefault(call.route, Branches())
        match = branches.best(call.prompt) if call.prompt is not None else None
        row = self._row(call, lineage.name, before, match)
        if call.prompt is not None:
            branches.add(index, call.prompt, match, call.usage.prompt if call.usage else 0)
            lineage.last = call
        if exchange.is_compaction:
            self._compacted.add(exchange.session_id)
        return row

    def _call(self, index: int, exchange: Exchange) -> _Call:
        data = exchange.read_body() if exchange.load_value is not None or exchange.truncation is None else None
        body = None if data is None else parse_parts(data)
        prompt = None if body is None else self._prompts.read(body)
        facts = ResponseFacts() if exchange.response is None else read_facts(exchange.response)
        model = _model_of(data)
        return _Call(index, exchange, body, prompt, model, _provider_of(exchange, model), usage_of(facts.usage), facts)

    def _find(self, call: _Call) -> _Lineage | None:
        """The lineage whose last request shares most with this one, its head at least; it becomes the latest."""
        if call.prompt is None or call.exchange.is_compaction:
            return None
        found: tuple[int, _Lineage] | None = None
        opening = _opening(call.prompt)
        for lineage in self._lineages[: -_KEPT - 1 : -1]:
            last = lineage.last
            if lineage.session != call.exchange.session_id or last.prompt is None or last.exchange.is_compaction:
                continue
            shared = shared_prefix(last.prompt, call.prompt)
            head = last.prompt.head_bytes + (0 if last.prompt.system else len(last.prompt.leading()))
            is_same = (0 < head <= shared) or (opening is not None and opening == _opening(last.prompt))
            if is_same and (found is None or shared > found[0]):
                found = shared, lineage
        if found is None:
            return None
        self._lineages.remove(found[1])
        self._lineages.append(found[1])
        return found[1]

    def _row(self, call: _Call, lineage: str, before: _Call | None, match: Match | None) -> CacheRow:
        rules = self._options.rules.of(call.provider)
        self.used_rules.setdefault(rules.name, rules)
        compared = _compare(call, before, match)
        predicted = None
        if before is not None:
            predicted = predict_tokens(compared, call.usage, _shared_tokens(call, match), rules)
        rates = None
        if self._options.prices is not None:
            rates = self._options.prices.rates(call.provider, call.model, call.exchange.time_ms, self._options.currency)
        why = self._why(call, before, match, predicted, rules)
        return CacheRow(
            index=call.index,
            kind="compaction" if call.exchange.is_compaction else "step",
            lineage=lineage,
            turn=None,
            step=None,
            attempt=None,
            time_ms=call.exchange.time_ms,
            seq=None,
            provider=call.provider,
            model=call.model,
            outcome="answered" if (call.exchange.status or 200) < 400 else "failed",
            rules=rules.name,
            compared=compared,
            predicted=predicted,
            usage=call.usage,
            cost=_cost(call.usage, rates),
            bust=None if why is None else self._bust(why, call, compared, rates),
            remark=_remark(call, before, predicted, rules),
        )

    def _why(
        self, call: _Call, before: _Call | None, match: Match | None, predicted: Predicted | None, rules: CacheRules
    ) -> Why | None:
        if before is None or before.prompt is None or call.prompt is None:
            return None
        for cause, one, two in zip(_SWITCHES, before.route, call.route, strict=True):
            if one != two:
                return Why(cause, "config", None, "/model" if cause == "model-switch" else None, None, f"{one} → {two}")
        shared = shared_prefix(before.prompt, call.prompt)
        if not extends(before.prompt, call.prompt, shared):
            return self._break(before.prompt, call.prompt, shared, call.exchange.session_id)
        missed = missed_tokens(predicted.reused if predicted is not None else 0, call.usage, rules)
        if not missed:
            return None
        return _miss(before, call, missed, rules)

    def _break(self, before: Prompt, prompt: Prompt, shared: int, session: str | None) -> Why:
        at, pointer = prompt.place(shared)
        if shared < max(len(prompt.tools), len(before.tools)):
            return Why("header-change", "tools", None, pointer, at, "no log says why")
        if shared < max(prompt.head_bytes, before.head_bytes):
            return Why("header-change", "system", None, pointer, at, "no log says why")
        one, two = before.message_at(shared), prompt.message_at(shared)
        if "system" in (one.kind, two.kind):
            return Why("header-change", "system", None, pointer, at, "no log says why")
        words = next((found.words for found in diff_texts([part_item(one)], [part_item(two)])), "")
        if session in self._compacted:
            self._compacted.discard(session)
            return Why("compaction", "messages", None, pointer, at, "a compaction was captured before", what=words)
        return Why("rewrite", "messages", None, pointer, at, "no log says why", what=words)

    def _bust(self, why: Why, call: _Call, compared: Compared, rates: Rates | None) -> Bust:
        self._repeats[why.cause, why.part] += 1
        lost, basis = lost_tokens(why, call.usage, compared)
        cost = None
        if rates is not None:
            stated = basis == "usage" and rates.inferred is None
            written = call.usage.written if call.usage else 0
            cost = Money(rates.lost(lost, written), rates.currency, "usage" if stated else "estimate", rates.peak)
        told = call.facts.diagnostics
        detail = why.detail if told is None else f"{why.detail}; the provider says {_say(told)}"
        why = replace(why, detail=detail)
        return Bust(why, lost, basis, cost, CAUSES[why.cause][1], self._repeats[why.cause, why.part])


_SWITCHES: tuple[Cause, ...] = ("provider-switch", "model-switch", "protocol-switch")


def audit_captures(named: Sequence[tuple[str, CaptureArchive]], options: CacheOptions) -> CacheReport:
    """The cache check of archives, with their names; of one run, in the order given."""
    exchanges = [exchange for _, archive in named for exchange in archive.exchanges if exchange.kind in MODEL_KINDS]
    sessions = {exchange.session_id for exchange in exchanges if exchange.session_id is not None}
    is_one = len(sessions) == 1
    run = CaptureRun(
        label=", ".join(name for name, _ in named),
        session_id=next(iter(sessions)) if is_one else f"({len(sessions)} named)",
        is_one=is_one,
    )
    scanner, rows = scan_captures(exchanges, options)
    found = [finding for _, archive in named for finding in archive.findings]
    return CacheReport(
        log=run,
        log_json={"paths": [name for name, _ in named], "sessions": sorted(sessions)},
        rules=tuple(rules for _, rules in sorted(scanner.used_rules.items())),
        rows=rows,
        changes=(),
        summary=summarise(rows, options.currency),
        findings=tuple(sort_findings([*found, *check_cache(rows, run)])),
    )


def scan_captures(exchanges: Iterable[Exchange], options: CacheOptions) -> tuple[CaptureScanner, tuple[CacheRow, ...]]:
    """The rows of the model requests of captures, numbered in order of receipt."""
    scanner = CaptureScanner(options)
    return scanner, tuple(scanner.see(index, exchange) for index, exchange in enumerate(exchanges))


def usage_of(value: Mapping[str, Any] | None) -> Usage | None:
    """Disjoint counts from the usage of Chat Completions, Messages or Responses; None when they are not counts."""
    if value is None:
        return None
    details = value.get("prompt_tokens_details") or value.get("input_tokens_details")
    cached = value.get("prompt_cache_hit_tokens", value.get("cache_read_input_tokens"))
    if cached is None and isinstance(details, Mapping):
        cached = details.get("cached_tokens")
    written = value.get("cache_creation_input_tokens")
    whole, output = value.get("prompt_tokens"), value.get("completion_tokens", value.get("output_tokens"))
    if whole is None and isinstance(value.get("input_tokens_details"), Mapping):
        whole = value.get("input_tokens")
    uncached = value.get("input_tokens") if whole is None else None
    counts = (cached, written, whole, uncached, output)
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0 for count in counts if count is not None):
        return None
    if whole is not None:
        uncached = whole - (cached or 0) - (written or 0)
    if uncached is None or output is None or uncached < 0:
        return None
    return Usage(uncached, cached, written or 0, output)


def _model_of(data: bytes | None) -> str:
    if data is None or data[:1] != b"{":
        return "?"
    try:
        for member in scan_members(data, 1):
            if member.name == "model":
                value = ecma.parse(data[member.value_start : member.end])
                return value if isinstance(value, str) else "?"
    except (MalformedError, ecma.EcmaSyntaxError):
        pass
    return "?"


def _provider_of(exchange: Exchange, model: str) -> str:
    """The route, by host or model; a proxy hides the host."""
    host = (exchange.host or "").lower()
    for sign, name in (("anthropic", "anthropic"), ("openai", "openai"), ("googleapis", "google")):
        if sign in host:
            return name
    return "deepseek" if "deepseek" in host or model.startswith("deepseek") else host.partition(":")[0] or "?"


def _opening(prompt: Prompt) -> bytes | None:
    """The first message that is no system text."""
    for part in prompt.messages.parts():
        if part.kind == "message":
            return part.value
    return None


def _shared_tokens(call: _Call, match: Match | None) -> int | None:
    """Tokens in the prefix shared with an earlier request, by the smaller of the two rates."""
    if match is None or call.prompt is None:
        return None
    own = None
    if call.usage is not None and call.usage.prompt:
        own = match.shared_bytes * call.usage.prompt // call.prompt.size_bytes
    return min((count for count in (match.tokens, own) if count is not None), default=None)


def _compare(call: _Call, before: _Call | None, match: Match | None) -> Compared:
    shared, resent = match.shared_bytes if match else 0, 0
    if before is not None and before.prompt is not None and call.prompt is not None:
        shared_before = shared_prefix(before.prompt, call.prompt)
        if not (shared >= shared_before and extends(before.prompt, call.prompt, shared_before)):
            resent = resent_bytes(before.prompt, call.prompt, max(shared, shared_before))
            resent += max(0, shared_before - shared)
    both = before is not None and before.body is not None and call.body is not None
    return Compared(
        previous=None if before is None else before.index,
        wire_shared=common_prefix(before.body, call.body) if both else None,  # type: ignore[union-attr, arg-type]
        wire_bytes=None if call.body is None else call.body.size_bytes,
        wire_source="captured",
        best=match.index if match else None,
        shared=shared if call.prompt is not None else None,
        prompt_bytes=None if call.prompt is None else call.prompt.size_bytes,
        resent=resent,
    )


def _miss(before: _Call, call: _Call, missed: int, rules: CacheRules) -> Why:
    """Why an intact prompt was not read from the cache, by the answer before it and the time between."""
    detail, gap = f"{missed} tokens fewer than predicted", None
    if before.exchange.time_ms is not None and call.exchange.time_ms is not None:
        gap = (call.exchange.time_ms - before.exchange.time_ms) / 1000
    cause: Cause = "provider-miss"
    if (before.exchange.status or 200) >= 400 or before.facts.is_complete is False:
        cause = "retry"
    elif gap is not None and rules.idle_s is not None and gap > rules.idle_s:
        cause, detail = "idle-expiry", f"{detail}, {int(gap)} s after the last request"
    elif gap is not None and 0 <= gap < rules.settle_s:
        cause, detail = "too-soon", f"{detail}, {gap:.1f} s after the last request"
    return Why(cause, None, None, None, None, detail, missed)


def _cost(usage: Usage | None, rates: Rates | None) -> Money | None:
    if usage is None or rates is None:
        return None
    basis: Literal["usage", "estimate"] = "usage" if rates.inferred is None and usage.cached is not None else "estimate"
    return Money(rates.cost(usage), rates.currency, basis, rates.peak)


def _remark(call: _Call, before: _Call | None, predicted: Predicted | None, rules: CacheRules) -> Remark | None:
    if call.prompt is None:
        return "no-body"
    if before is None:
        return "first"
    if call.usage is None or call.usage.cached is None:
        return "no-data"
    return "below-minimum" if predicted is not None and predicted.prompt < rules.minimum_tokens else None


def _say(told: Any) -> str:
    text = ecma.stringify(told).decode("utf-8", "replace")
    return text if len(text) <= 120 else f"{text[:119]}…"
