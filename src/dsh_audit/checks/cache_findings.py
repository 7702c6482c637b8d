"""Cache busts as findings: one for each cause and part, at the first request it hit."""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.checks.cache_model import CacheRow, CaptureRun
from dsh_audit.checks.causes import CAUSES
from dsh_audit.finding import Finding, Rule
from dsh_audit.log.session_log import SessionLog
from dsh_audit.rules import cache as rules

_BY_PART = {"tools": rules.TOOLS_CHANGED, "system": rules.SYSTEM_CHANGED, "config": rules.CONFIG_CHANGED}


def check_cache(rows: Iterable[CacheRow], log: SessionLog | CaptureRun) -> list[Finding]:
    """Findings of all busts, grouped by rule and part."""
    groups: dict[tuple[str, str | None], list[CacheRow]] = {}
    for row in rows:
        if row.bust is not None:
            groups.setdefault((_rule_of(row).code, row.bust.why.part), []).append(row)
    return [_finding(group, log) for group in groups.values()]


def _rule_of(row: CacheRow) -> Rule:
    assert row.bust is not None
    why = row.bust.why
    if why.cause == "header-change":
        return rules.DECLARED_CHANGE if row.bust.declared else _BY_PART.get(why.part or "", rules.TOOLS_CHANGED)
    return CAUSES[why.cause][0]


def _finding(rows: list[CacheRow], log: SessionLog | CaptureRun) -> Finding:
    first = rows[0]
    assert first.bust is not None
    why = first.bust.why
    where = (first.log or log).where(seq=why.seq, request=first.index, pointer=why.pointer or None)
    return Finding(_rule_of(first), describe_busts(rows), where)


def describe_busts(rows: list[CacheRow]) -> str:
    """Requests, tokens and money of some busts, one line."""
    busts = [row.bust for row in rows if row.bust]
    lost = sum(bust.lost_tokens for bust in busts)
    about = "about " if any(bust.basis == "estimate" for bust in busts) else ""
    costs = [bust.cost for bust in busts if bust.cost]
    money = f", {sum(cost.amount for cost in costs):.4f} {costs[0].currency}" if costs else ""
    many = f"; {len(rows)} requests in all" if len(rows) > 1 else ""
    detail = f" ({busts[0].why.detail})" if busts[0].why.detail and len(rows) == 1 else ""
    return f"request {rows[0].index}: {about}{lost} tokens sent again{money}{many}{detail}"


def check_wire(rewrites: Iterable[tuple[CacheRow, SessionLog]]) -> list[Finding]:
    """One finding per captured request that was rewritten on its way."""
    return [
        Finding(
            rules.WIRE_REWRITE,
            f"request {row.index} as captured does not extend request {row.compared.previous}: "
            f"{row.compared.wire_shared} of {row.compared.wire_bytes} bytes are shared",
            log.where(request=row.index),
        )
        for row, log in rewrites
    ]
