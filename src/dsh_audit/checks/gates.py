"""Limits on the numbers of a report, and a report against an older one.

Grammar of a limit: ``METRIC[:SCOPE] OP NUMBER``, spaces allowed.

* ``METRIC``: a name of the report's ``summary``, nested ones with a dot (``busts.compaction``, ``tokens.lost``).
* ``SCOPE``: ``each`` (the default) for every session on its own, ``total`` for the sum of all.
* ``OP``: one of ``<  <=  >  >=  ==  !=``. The limit *fails* when the comparison is true.
* ``NUMBER``: ``0.95``; ``95%`` is 0.95; with a sign it is relative to the baseline: ``+10%`` is the baseline's
  number plus a tenth, ``+2`` and ``-0.05`` are that number plus or minus a difference.

What was measured is an interval: one number, at least one, or nothing at all. A limit passes only where no number of
the interval makes its comparison true, so missing evidence is no success. Source: users 4e, 5.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, ClassVar, Literal

from dsh_audit.errors import UsageError
from dsh_audit.finding import Finding, Rule, Where
from dsh_audit.record import dataclass

_PATTERN = re.compile(
    r"\s*([a-z][a-z0-9_.\-]*?)(?:\s*:\s*(each|total))?\s*"
    r"(<=|>=|==|!=|<|>)\s*([+-])?([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(%)?\s*"
)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


_ENDLESS = Decimal("Infinity")


@dataclass(frozen=True, slots=True)
class Measure:
    """What is known of one number: an interval.

    Args:
        low, high: the least and the most that it can be.
        why: what keeps it from being known exactly.
    """

    low: Decimal = -_ENDLESS
    high: Decimal = _ENDLESS
    why: str = ""

    @property
    def is_known(self) -> bool:
        """Whether anything was measured."""
        return self.low != -_ENDLESS

    @property
    def is_exact(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    def can_be(self, op: str, limit: Decimal) -> bool:
        """Whether some number of the interval stands in a relation to a limit."""
        compare = _OPERATORS[op]
        is_inside = op == "==" and self.low <= limit <= self.high
        return is_inside or compare(self.low, limit) or compare(self.high, limit)

    def __str__(self) -> str:
        if not self.is_known:
            return "not known"
        most = "" if self.high == _ENDLESS else f" and may be {_plain(self.high)}"
        return _plain(self.low) if self.is_exact else f"at least {_plain(self.low)}{most}"


Measures = Mapping[str, Measure]


def measured(number: float | Decimal | None, why: str = "", *, is_part: bool = False) -> Measure:
    """A number as a report holds it.

    Args:
        number: None where it is not known.
        is_part: something that adds to it was not measured; ``why`` says what.
    """
    if number is None:
        return Measure(why=why)
    value = Decimal(str(number))
    return Measure(value, _ENDLESS, why) if is_part else Measure(value, value)


@dataclass(frozen=True, slots=True)
class Limit:
    """One condition that must not hold.

    Args:
        text: as the user wrote it.
        scope: ``total`` for the sum of all sessions.
        value: a number, or its distance from the baseline.
        relation: None for an absolute limit, ``ratio`` for ``+10%``, ``difference`` for ``+2``.
    """

    text: str
    metric: str
    op: str
    value: Decimal
    relation: Literal["ratio", "difference"] | None = None
    scope: Literal["each", "total"] = "each"


def parse_limit(text: str, metrics: Iterable[str]) -> Limit:
    """Parse one limit.

    Args:
        metrics: the names that exist.

    Raises:
        UsageError: not of the grammar, or an unknown metric.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        hint = "METRIC OP NUMBER, e.g. hit_rate<0.95, busts>0, cost_per_step>+10%"
        raise UsageError(f"threshold {text!r}: not of the form METRIC OP NUMBER", hint=hint)
    metric, scope, op, sign, digits, percent = match.groups()
    known = list(metrics)
    if metric not in known:
        family, dot, _ = metric.partition(".")
        alike = [name for name in known if dot and name.startswith(f"{family}.")] or [
            name for name in known if "." not in name
        ]
        raise UsageError(f"threshold {text!r}: no number is called {metric}", hint=f"known: {', '.join(alike)}")
    value = Decimal(f"{sign or ''}{digits}") / (100 if percent else 1)
    relation: Literal["ratio", "difference"] | None = "ratio" if percent else "difference"
    return Limit(text.strip(), metric, op, value, relation if sign else None, "total" if scope == "total" else "each")


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit with what was measured for it.

    Args:
        baseline: the same number of the older report; None without one.
    """

    limit: Limit
    measured: Measure
    baseline: Measure | None = None

    def failure(self) -> str | None:
        """Why the gate is closed, one line; None where the number is known to keep the limit.

        Raises:
            UsageError: a relative limit without a baseline.
        """
        limit, measured, bound, shown = self.limit, self.measured, self.limit.value, ""
        if limit.relation is not None:
            before = self.baseline
            if before is None:
                text = f"threshold {limit.text!r}: relative to a baseline, but there is none"
                raise UsageError(text, hint="--baseline OLD")
            if measured.is_known and not before.is_exact:
                return f"{limit.text}: {limit.metric} of the baseline is {before}{_because(before)}"
            bound = before.low * (1 + bound) if limit.relation == "ratio" else before.low + bound
            shown = f" (baseline {_plain(before.low)}, limit {_plain(bound)})" if measured.is_known else ""
        if not measured.can_be(limit.op, bound):
            return None
        return f"{limit.text}: {limit.metric} is {measured}{shown}{_because(measured)}"


def _because(measure: Measure) -> str:
    return f": {measure.why}" if measure.why else ""


def _plain(number: Decimal) -> str:
    text = f"{round(number, 10):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def check_limits(
    limits: Iterable[Limit], measures: Measures, baseline: Measures | None, rule: Rule, where: Where
) -> list[Finding]:
    """One finding for each limit that fails, with the number; a metric that is not among the measures is unknown.

    Raises:
        UsageError: a relative limit without a baseline.
    """
    failures = []
    for limit in limits:
        before = None if baseline is None else baseline.get(limit.metric, Measure())
        failures.append(Gate(limit, measures.get(limit.metric, Measure()), before).failure())
    return [Finding(rule, failure, where) for failure in failures if failure is not None]


def flatten(summary: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The numbers of a summary by name, nested ones with dots; causes as ``busts.<cause>``."""
    numbers: dict[str, int | float | None] = {}
    for name, value in summary.items():
        if isinstance(value, bool):
            continue
        if value is None or isinstance(value, int | float):
            numbers[name] = value
        elif isinstance(value, Mapping):
            numbers.update({f"{name}.{key}": item for key, item in value.items() if isinstance(item, int | float)})
        elif name == "causes":
            for cause in value:
                key = f"busts.{cause['cause']}"
                numbers[key] = (numbers.get(key) or 0) + cause["busts"]
    return numbers


@dataclass(frozen=True, slots=True)
class Difference:
    """One number of two reports."""

    metric: str
    before: int | float | None
    after: int | float | None

    JSON: ClassVar = "metric baseline=before now=after"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A report against its baseline.

    Args:
        differences: the numbers that are not the same.
        first_header: ``step_request``, the first one from 0 whose header differs, and ``parts``, those that do; None
            where all are the same as far as both go.
    """

    differences: tuple[Difference, ...]
    first_header: dict[str, Any] | None


def compare_reports(new: Mapping[str, Any], old: Mapping[str, Any]) -> Comparison:
    """Compare two cache reports as JSON."""
    after, before = flatten(new["summary"]), flatten(old["summary"])
    names = dict.fromkeys((*before, *after))
    differences = tuple(
        Difference(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )
    return Comparison(differences, _first_header(new.get("header_digests", []), old.get("header_digests", [])))


def _first_header(new: Iterable[Mapping[str, Any]], old: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Digests are listed where they change; both sides hold until their next entry."""
    sides = [{item["step_request"]: item for item in side} for side in (new, old)]
    current: list[Mapping[str, Any] | None] = [None, None]
    for place in sorted({*sides[0], *sides[1]}):
        current = [side.get(place, now) for side, now in zip(sides, current, strict=True)]
        one, two = current
        if one is None or two is None:
            continue
        parts = [part for part in ("config", "system", "tools") if one[part] != two[part]]
        if parts:
            return {"step_request": place, "parts": parts}
    return None
