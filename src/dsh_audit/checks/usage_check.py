"""The provider's own figures against what its cache could have given back. Source: caching 4a to 4e."""

from __future__ import annotations

from dsh_audit.checks.cache_model import Basis, Compared
from dsh_audit.checks.causes import Sent, Why
from dsh_audit.checks.drift_model import HeaderChange, Part
from dsh_audit.checks.lineage import Match
from dsh_audit.checks.provider_rules import CacheRules
from dsh_audit.checks.shared_prefix import pieces_from
from dsh_audit.pricing import Usage

TOLERANCE = 0.1
"""Share of the predicted tokens that may be missing: bytes are no exact measure of tokens."""

NOISE_TOKENS = 128
"""Fewer missing tokens than this are never reported."""

_RENDERED: tuple[Part, ...] = ("tools", "system", "config")
_BLOCK = b'{"type":"'


def explain_miss(
    before: Sent, sent: Sent, match: Match | None, change: HeaderChange | None, rules: CacheRules
) -> Why | None:
    """Why an intact prompt was not read from the cache; None when it was, or when nothing tells."""
    missed = _missed(sent, match, rules)
    if not missed:
        return None
    detail = f"{missed} tokens fewer than predicted"
    one, two = before.rebuilt.request.dispatch, sent.rebuilt.request.dispatch
    if change is not None:
        # Updates in the history keep the head; where the figures say otherwise, the provider saw it differently.
        part = next(part for part in _RENDERED if part in change.parts)
        pointer = _setting(change) if part == "config" else None
        return Why("header-change", part, change.seqs.get(part), pointer, None, detail, missed)
    if one.outcome in ("failed", "cancelled", "open", "none"):
        return Why("retry", None, two.opened_seq, None, None, detail, missed)
    gap = _gap_s(before, sent)
    if gap is not None and rules.idle_s is not None and gap > rules.idle_s:
        detail += f", {int(gap)} s after the last request"
        return Why("idle-expiry", None, two.opened_seq, None, None, detail, missed)
    if gap is not None and gap < rules.settle_s:
        detail += f", {gap:.1f} s after the last request"
        return Why("too-soon", None, two.opened_seq, None, None, detail, missed)
    if rules.lookback_blocks is not None and _blocks_added(before, sent) > rules.lookback_blocks:
        return Why("look-back", None, two.opened_seq, None, None, detail, missed)
    return Why("provider-miss", None, two.opened_seq, None, None, detail, missed)


def explain_side_request(sent: Sent, match: Match | None, steps: Sent | None, rules: CacheRules) -> Why | None:
    """Why a one-shot call did not read the prompt it shares with the steps of its session."""
    if match is None or steps is None:
        return None
    missed = _missed(sent, match, rules)
    if not missed:
        return None
    detail = f"{missed} tokens of request {match.index} were not read from the cache"
    return Why("side-request", "config", sent.rebuilt.request.dispatch.opened_seq, None, None, detail, missed)


def shared_tokens(sent: Sent, match: Match | None) -> int | None:
    """Tokens in the prefix that a request shares with an earlier one, by the provider's own counts.

    Each of the two requests gives a rate of bytes to tokens; the smaller result is taken, so that a count that does
    not fit its prompt claims nothing. None when neither tells.
    """
    if match is None:
        return None
    counts = [count for count in (match.tokens, sent.tokens_of(match.shared_bytes)) if count is not None]
    return min(counts, default=None)


def _missed(sent: Sent, match: Match | None, rules: CacheRules) -> int:
    """Tokens that could have been read and were not; 0 within the tolerance, or when nothing tells."""
    if sent.prompt is None:
        return 0
    return missed_tokens(rules.reusable(shared_tokens(sent, match) or 0), sent.usage, rules)


def missed_tokens(expected: int, usage: Usage | None, rules: CacheRules) -> int:
    """How many of the tokens that could be read were not; 0 within the tolerance, or without figures."""
    if usage is None or usage.cached is None:
        return 0
    missed = expected - usage.cached
    floor = max(NOISE_TOKENS, 2 * rules.grain_tokens, int(expected * TOLERANCE))
    return missed if missed > floor else 0


def _setting(change: HeaderChange) -> str:
    named = [item.name for item in change.config if "." not in item.name]
    wire = {"maxTokens": "max_tokens", "reasoningEffort": "reasoning_effort"}
    return f"/{wire.get(named[0], named[0])}" if named else ""


def _gap_s(before: Sent, sent: Sent) -> float | None:
    one, two = before.rebuilt.request.dispatch, sent.rebuilt.request.dispatch
    start = one.time_ms if one.time_ms is not None else one.settled_time_ms
    if start is None or two.time_ms is None or start <= 0:
        return None
    return max(0.0, (two.time_ms - start) / 1000)


def _blocks_added(before: Sent, sent: Sent) -> int:
    if before.prompt is None or sent.prompt is None:
        return 0
    start = max(0, before.prompt.messages.size_bytes - 4)
    return sum(data.count(_BLOCK) for data, _ in pieces_from(sent.prompt.messages, start))


def lost_tokens(why: Why, usage: Usage | None, compared: Compared) -> tuple[int, Basis]:
    """Input tokens that a hit would have read: what was sent before, less what was read all the same."""
    if why.cause == "side-request":
        return why.missed, "usage"
    size = compared.prompt_bytes or 0
    had = (compared.shared or 0) + compared.resent
    if usage is not None and usage.prompt and size:
        would = had * usage.prompt // size
        if usage.cached is None:
            return compared.resent * usage.prompt // size, "estimate"
        return max(0, min(would, usage.prompt) - usage.cached), "usage"
    return compared.resent // 4, "estimate"
