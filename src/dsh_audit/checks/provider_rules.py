"""What providers say about their prompt caches, as data with sources. No prediction from it is a promise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from dsh_audit.errors import UsageError
from dsh_audit.record import dataclass

PLAIN = "prefix"
"""Name of the rules of an ideal prefix cache."""


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The cache of one provider.

    Args:
        name: of the rules.
        providers: routes they are for, by the name in the log.
        grain_tokens: cached lengths are multiples of this.
        minimum_tokens: shorter prefixes are not cached.
        idle_s: a gap that may have emptied the cache; None: it never empties.
        settle_s: a prefix can be read this long after the request that wrote it.
        lookback_blocks: how many content blocks before a breakpoint are searched; None: no breakpoints.
        notes, sources: what is known and where it is said.
    """

    name: str
    providers: tuple[str, ...]
    grain_tokens: int
    minimum_tokens: int
    idle_s: int | None
    settle_s: int
    lookback_blocks: int | None
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    JSON: ClassVar = "name grain_tokens minimum_tokens idle_s settle_s lookback_blocks notes sources"

    def reusable(self, tokens: int) -> int:
        """How many of the first tokens of a prompt the cache can give back."""
        whole = tokens - tokens % self.grain_tokens
        return whole if whole >= self.minimum_tokens else 0


IDEAL = CacheRules(PLAIN, (), 1, 0, None, 0, None)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All known rules.

    Args:
        rules: by name.
        chosen: name of the rules to use for every route; None: by provider.
        grain: replaces the grain of the chosen rules.
    """

    rules: Mapping[str, CacheRules]
    chosen: str | None = None
    grain: int | None = None

    def of(self, provider: str) -> CacheRules:
        """The rules of a provider route."""
        if self.chosen is not None:
            found = self.rules[self.chosen]
        else:
            named = (rules for rules in self.rules.values() if provider in rules.providers)
            found = next(named, self.rules.get(PLAIN, IDEAL))
        if self.grain is None:
            return found
        return CacheRules(
            name=found.name,
            providers=found.providers,
            grain_tokens=self.grain,
            minimum_tokens=min(found.minimum_tokens, self.grain) if self.grain > 1 else 0,
            idle_s=found.idle_s,
            settle_s=found.settle_s,
            lookback_blocks=found.lookback_blocks,
            notes=found.notes,
            sources=found.sources,
        )


def parse_rules(data: bytes, *, chosen: str | None = None, grain: int | None = None) -> RuleBook:
    """Parse ``data/cache_rules.json``.

    Raises:
        UsageError: no rules of the chosen name.
    """
    rules = {}
    for raw in json.loads(data)["rules"]:
        rules[raw["name"]] = CacheRules(
            name=raw["name"],
            providers=tuple(raw["providers"]),
            grain_tokens=raw["grain_tokens"],
            minimum_tokens=raw["minimum_tokens"],
            idle_s=raw["idle_s"],
            settle_s=raw["settle_s"],
            lookback_blocks=raw["lookback_blocks"],
            notes=tuple(raw["notes"]),
            sources=tuple(raw["sources"]),
        )
    if chosen is not None and chosen not in rules:
        raise UsageError(f"no cache rules named {chosen}", hint=f"known: {', '.join(rules)}")
    return RuleBook(rules, chosen, grain)
