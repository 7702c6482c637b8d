"""The cache check: what each request shares with earlier ones, where the prefix broke, why, and what it cost.

A request *busts* when its rendered prompt does not go on where its predecessor ended (the cause is in the log or the
finding ``cache/not-append-only`` is made), or when the prompt did go on but the provider's own figures show that what
could have been read from the cache was not. Source: caching 4a to 4e; users 0, 2b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Literal

from dsh_audit.checks import usage_check
from dsh_audit.checks.cache_model import Bust, CacheRow, Compared, Money, Predicted, Remark
from dsh_audit.checks.causes import CAUSES, Sent, Why, explain_break
from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.checks.drift_run import DriftRun
from dsh_audit.checks.lineage import STEPS, Branches, Match, lineage_of
from dsh_audit.checks.prompt import extends, resent_bytes, shared_prefix
from dsh_audit.checks.provider_rules import CacheRules, RuleBook
from dsh_audit.checks.shared_prefix import common_prefix
from dsh_audit.checks.telling_events import TellingEvents
from dsh_audit.deployment import Used
from dsh_audit.log.session_log import SessionLog
from dsh_audit.pricing import PriceTable, Rates, Usage, parse_usage
from dsh_audit.record import dataclass
from dsh_audit.replay.session_replay import Rebuilt
from dsh_audit.wire.body import Body
from dsh_audit.wire.captured import parse_parts
from dsh_audit.wire.prompt import Prompt, PromptReader

BYTES_PER_TOKEN = 4
"""Where no usage tells the rate: a rough figure for JSON text in English."""

@dataclass(frozen=True, slots=True)
class CacheOptions:
    """What the check takes from outside the log.

    Args:
        prices: None: no money at all.
        captured: request index → loader of its captured body, where a capture was paired.
    """

    rules: RuleBook
    prices: PriceTable | None = None
    currency: str = "USD"
    captured: dict[int, Callable[[], bytes | None]] = field(default_factory=dict)


class CacheScanner:
    """Takes the requests of one replay in order.

    Attributes:
        drift: the header changes, found on the way.
        used_rules: the cache rules used, by name.
        unlogged: values that are not in the log and went into bodies, by name and value as text.
        wire_rewrites: captured requests that were rewritten although the log only grew, with the log they are in.
    """

    def __init__(self, evidence: TellingEvents, options: CacheOptions) -> None:
        self._evidence = evidence
        self._options = options
        self._prompts = PromptReader()
        self._branches: dict[tuple[str, ...], Branches] = {}
        self._previous: dict[str, Sent] = {}
        self._captured: dict[str, Sent] = {}
        self.wire_rewrites: list[tuple[CacheRow, SessionLog]] = []
        self._repeats: Counter[tuple[str, str | None]] = Counter()
        self.drift = DriftRun(evidence)
        self.used_rules: dict[str, CacheRules] = {}
        self.unlogged: dict[tuple[str, str], Used] = {}

    def see(self, rebuilt: Rebuilt) -> CacheRow:
        """The row of one request."""
        for used in rebuilt.encoded.unlogged:
            self.unlogged.setdefault((used.name, repr(used.value)), used)
        captured = self._load(rebuilt)
        body = rebuilt.encoded.body if rebuilt.encoded.body is not None else captured
        usage = parse_usage(rebuilt.request.dispatch.usage)
        sent = Sent(rebuilt, body, self._prompt(rebuilt, body), usage, _whole(rebuilt, body))
        prompt = sent.prompt
        change = self.drift.see(rebuilt, prompt)
        dispatch = rebuilt.request.dispatch
        lineage = lineage_of(dispatch.kind, dispatch.opened_seq)
        before = self._previous.get(lineage)
        match = self._match(sent, lineage)
        wire = self._wire(sent, lineage, before, captured)
        row = self._row(sent, lineage, before, match, change, wire)
        if dispatch.wire.maximum:
            self._previous[lineage] = sent
            if prompt is not None:
                self._branch(sent, lineage).add(rebuilt.index, prompt, match, sent.usage.prompt if sent.usage else 0)
        return row

    def _load(self, rebuilt: Rebuilt) -> Body | None:
        load = self._options.captured.get(rebuilt.index)
        data = load() if load is not None else None
        return parse_parts(data) if data is not None else None

    def _prompt(self, rebuilt: Rebuilt, body: Body | None) -> Prompt | None:
        if body is None or rebuilt.request.purpose == "web-search":
            return None
        return self._prompts.read(body)

    def _branch(self, sent: Sent, lineage: str) -> Branches:
        request = sent.rebuilt.request
        route = (lineage, request.provider, request.model, sent.rebuilt.encoded.protocol)
        return self._branches.setdefault(route, Branches())

    def _match(self, sent: Sent, lineage: str) -> Match | None:
        return self._branch(sent, lineage).best(sent.prompt) if sent.prompt is not None else None

    def _row(
        self,
        sent: Sent,
        lineage: str,
        before: Sent | None,
        match: Match | None,
        change: HeaderChange | None,
        wire: _Wire,
    ) -> CacheRow:
        request = sent.rebuilt.request
        dispatch = request.dispatch
        rules = self._options.rules.of(request.provider)
        self.used_rules.setdefault(rules.name, rules)
        shared_before = self._shared_with(before, sent)
        compared = _compare(sent, before, match, shared_before, wire)
        predicted = predict(compared, sent, match, rules) if before is not None else None
        rates = self._rates(request.provider, request.model, dispatch.time_ms or dispatch.settled_time_ms)
        bust = None
        if dispatch.wire.maximum:
            why = self._why(sent, before, match, shared_before, change, rules, compared)
            bust = self._bust(why, sent, compared, rates, change) if why is not None else None
        row = CacheRow(
            index=sent.rebuilt.index,
            kind=dispatch.kind,
            lineage=lineage,
            turn=dispatch.turn,
            step=dispatch.step,
            attempt=dispatch.attempt,
            time_ms=dispatch.time_ms,
            seq=dispatch.opened_seq,
            provider=request.provider,
            model=request.model,
            outcome=dispatch.outcome,
            rules=rules.name,
            compared=compared,
            predicted=predicted,
            usage=sent.usage,
            cost=_cost(sent.usage, rates),
            bust=bust,
            remark=_remark(sent, before, predicted, rules),
            change=change,
            log=sent.rebuilt.log,
        )
        if wire.rewritten and shared_before is not None and (bust is None or bust.why.missed):
            self.wire_rewrites.append((row, sent.rebuilt.log))
        return row

    def _shared_with(self, before: Sent | None, sent: Sent) -> int | None:
        if before is None or before.prompt is None or sent.prompt is None:
            return None
        return shared_prefix(before.prompt, sent.prompt)

    def _wire(self, sent: Sent, lineage: str, before: Sent | None, captured: Body | None) -> _Wire:
        """The bodies to compare as sent: captured ones where both were captured, else rebuilt ones."""
        last = self._captured.pop(lineage, None)
        if captured is None:
            return _Wire("rebuilt", before.whole if before else None, sent.whole)
        prompt = self._prompt(sent.rebuilt, captured)
        now = self._captured[lineage] = Sent(sent.rebuilt, captured, prompt, sent.usage)
        earlier = last.body if last is not None else before.whole if before is not None else None
        rewritten = (
            last is not None
            and prompt is not None
            and last.prompt is not None
            and not extends(last.prompt, prompt, shared_prefix(last.prompt, prompt))
        )
        return _Wire("captured", earlier, now.body, rewritten)

    def _why(
        self,
        sent: Sent,
        before: Sent | None,
        match: Match | None,
        shared: int | None,
        change: HeaderChange | None,
        rules: CacheRules,
        compared: Compared,
    ) -> Why | None:
        if before is None:
            return self._side_request(sent, rules)
        if before.prompt is None or sent.prompt is None or shared is None:
            return None
        same_route = (
            before.rebuilt.request.provider == sent.rebuilt.request.provider
            and before.rebuilt.request.model == sent.rebuilt.request.model
            and before.rebuilt.encoded.protocol == sent.rebuilt.encoded.protocol
        )
        if same_route and extends(before.prompt, sent.prompt, shared):
            return usage_check.explain_miss(before, sent, match, change, rules)
        return explain_break(before, sent, shared, change, self._evidence)

    def _side_request(self, sent: Sent, rules: CacheRules) -> Why | None:
        """A compaction that shares its prompt with the steps but, by the provider's figures, read nothing of it."""
        request = sent.rebuilt.request
        if request.dispatch.kind != "compaction" or sent.prompt is None:
            return None
        branch = self._branches.get((STEPS, request.provider, request.model, sent.rebuilt.encoded.protocol))
        match = branch.best(sent.prompt) if branch is not None else None
        return usage_check.explain_side_request(sent, match, self._previous.get(STEPS), rules)

    def _bust(self, why: Why, sent: Sent, compared: Compared, rates: Rates | None, change: HeaderChange | None) -> Bust:
        self._repeats[why.cause, why.part] += 1
        lost, basis = usage_check.lost_tokens(why, sent.usage, compared)
        cost = None
        if rates is not None:
            stated = basis == "usage" and rates.inferred is None
            written = sent.usage.written if sent.usage else 0
            cost = Money(rates.lost(lost, written), rates.currency, "usage" if stated else "estimate", rates.peak)
        declared = CAUSES[why.cause][1]
        if why.cause == "header-change" and change is not None:
            declared = why.part not in change.unexplained and why.part in change.parts
        return Bust(why, lost, basis, cost, declared, self._repeats[why.cause, why.part])

    def _rates(self, provider: str, model: str, time_ms: int | float | None) -> Rates | None:
        if self._options.prices is None:
            return None
        return self._options.prices.rates(provider, model, time_ms, self._options.currency)


def _whole(rebuilt: Rebuilt, body: Body | None) -> Body | None:
    """The body as it went out, with the extension fields that follow the request."""
    base = rebuilt.encoded.body
    return body if base is None else rebuilt.extended(base).body


@dataclass(frozen=True, slots=True)
class _Wire:
    """Two bodies of a lineage to compare as bytes."""

    source: Literal["rebuilt", "captured"]
    earlier: Body | None
    body: Body | None
    rewritten: bool = False


def _compare(sent: Sent, before: Sent | None, match: Match | None, shared_before: int | None, wire: _Wire) -> Compared:
    shared = match.shared_bytes if match else 0
    resent = 0
    if (
        before is not None
        and before.prompt is not None
        and sent.prompt is not None
        and shared_before is not None
        and not (shared >= shared_before and extends(before.prompt, sent.prompt, shared_before))
    ):
        resent = resent_bytes(before.prompt, sent.prompt, max(shared, shared_before))
        # What the previous request held in the cache of another route is sent again too.
        resent += max(0, shared_before - shared)
    both = wire.earlier is not None and wire.body is not None
    return Compared(
        previous=before.rebuilt.index if before else None,
        wire_shared=common_prefix(wire.earlier, wire.body) if both else None,  # type: ignore[arg-type]
        wire_bytes=wire.body.size_bytes if wire.body is not None else None,
        wire_source=wire.source,
        best=match.index if match else None,
        shared=shared if sent.prompt is not None else None,
        prompt_bytes=sent.prompt.size_bytes if sent.prompt is not None else None,
        resent=resent,
    )


def predict(compared: Compared, sent: Sent, match: Match | None, rules: CacheRules) -> Predicted | None:
    """Tokens that the cache of a provider can give back, by its rules; None without a prompt."""
    return predict_tokens(compared, sent.usage, usage_check.shared_tokens(sent, match), rules)


def predict_tokens(
    compared: Compared, usage: Usage | None, tokens: int | None, rules: CacheRules
) -> Predicted | None:
    """The same, where the tokens shared with an earlier request are known, or not."""
    if compared.prompt_bytes is None or compared.shared is None:
        return None
    if usage is not None and usage.prompt:
        return Predicted(rules.reusable(tokens or 0), usage.prompt, "usage")
    tokens = rules.reusable(compared.shared // BYTES_PER_TOKEN)
    return Predicted(tokens, -(-compared.prompt_bytes // BYTES_PER_TOKEN), "estimate")


def _cost(usage: Usage | None, rates: Rates | None) -> Money | None:
    if usage is None or rates is None:
        return None
    sure = rates.inferred is None and usage.cached is not None
    return Money(rates.cost(usage), rates.currency, "usage" if sure else "estimate", rates.peak)


def _remark(sent: Sent, before: Sent | None, predicted: Predicted | None, rules: CacheRules) -> Remark | None:
    if not sent.rebuilt.request.dispatch.wire.maximum:
        return "unsent"
    if sent.prompt is None:
        return "no-body"
    if before is None:
        return "first"
    if sent.usage is None or sent.usage.cached is None:
        return "no-data"
    if predicted is not None and predicted.prompt < rules.minimum_tokens:
        return "below-minimum"
    return None


class CacheObserver:
    """Looks on while a session is folded; one row a request."""

    def __init__(self, options: CacheOptions) -> None:
        self._events = TellingEvents()
        self.event = self._events.event
        self.scanner = CacheScanner(self._events, options)
        self.rows: list[CacheRow] = []

    def request(self, rebuilt: Rebuilt) -> None:
        """The next request."""
        self.rows.append(self.scanner.see(rebuilt))
