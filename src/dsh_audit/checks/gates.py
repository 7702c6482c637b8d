"""Thresholds on the numbers of a report, and a report against an older one.

Grammar of a threshold: ``METRIC OP NUMBER``, spaces allowed.

* ``METRIC``: a name of the report's ``summary``, nested ones with a dot (``busts.compaction``, ``tokens.lost``).
* ``OP``: one of ``<  <=  >  >=  ==  !=``. The threshold *fails* when the comparison is true.
* ``NUMBER``: ``0.95``; ``95%`` is 0.95; with a sign it is relative to the baseline: ``+10%`` is the baseline's
  number plus a tenth, ``+2`` and ``-0.05`` are that number plus or minus a difference.

A number that is not known fails every threshold on it: missing evidence is no success. Source: users 4e, 5.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from dsh_audit.errors import UsageError
from dsh_audit.finding import Finding, Where
from dsh_audit.rules import cache as rules

_PATTERN = re.compile(r"\s*([a-z][a-z0-9_.\-]*?)\s*(<=|>=|==|!=|<|>)\s*([+-])?([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(%)?\s*")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

Metrics = Mapping[str, int | float | None]


@dataclass(frozen=True, slots=True)
class Threshold:
    """One condition that must not hold.

    Args:
        text: as the user wrote it.
        metric: name.
        op: comparison.
        value: limit, or its distance from the baseline.
        relation: None for an absolute limit, ``ratio`` for ``+10%``, ``difference`` for ``+2``.
    """

    text: str
    metric: str
    op: str
    value: Decimal
    relation: str | None


def parse_threshold(text: str, metrics: Iterable[str]) -> Threshold:
    """Parse one threshold.

    Args:
        metrics: the names that exist.

    Raises:
        UsageError: not of the grammar, or an unknown metric.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        hint = "METRIC OP NUMBER, e.g. hit_rate<0.95, busts>0, cost_per_step>+10%"
        raise UsageError(f"threshold {text!r}: not of the form METRIC OP NUMBER", hint=hint)
    metric, op, sign, digits, percent = match.groups()
    known = list(metrics)
    if metric not in known:
        family, dot, _ = metric.partition(".")
        alike = [name for name in known if dot and name.startswith(f"{family}.")] or [
            name for name in known if "." not in name
        ]
        raise UsageError(f"threshold {text!r}: no number is called {metric}", hint=f"known: {', '.join(alike)}")
    value = Decimal(digits) / (100 if percent else 1)
    if sign is None:
        return Threshold(text.strip(), metric, op, value, None)
    relation = "ratio" if percent else "difference"
    return Threshold(text.strip(), metric, op, -value if sign == "-" else value, relation)


def check_thresholds(
    thresholds: Iterable[Threshold], metrics: Metrics, baseline: Metrics | None, where: Where
) -> list[Finding]:
    """One finding for each threshold that fails, with the number.

    Raises:
        UsageError: a relative threshold without a baseline.
    """
    return [
        Finding(rules.THRESHOLD, message, where)
        for threshold in thresholds
        if (message := _failure(threshold, metrics, baseline)) is not None
    ]


def _failure(threshold: Threshold, metrics: Metrics, baseline: Metrics | None) -> str | None:
    if threshold.relation is not None and baseline is None:
        raise UsageError(
            f"threshold {threshold.text!r}: relative to a baseline, but there is none", hint="--baseline OLD"
        )
    actual = metrics.get(threshold.metric, 0 if "." in threshold.metric else None)
    if actual is None:
        return f"{threshold.text}: {threshold.metric} is not known"
    limit, shown = threshold.value, ""
    if threshold.relation is not None and baseline is not None:
        before = baseline.get(threshold.metric, 0 if "." in threshold.metric else None)
        if before is None:
            return f"{threshold.text}: {threshold.metric} of the baseline is not known"
        start = Decimal(str(before))
        limit = start * (1 + threshold.value) if threshold.relation == "ratio" else start + threshold.value
        shown = f" (baseline {_plain(start)}, limit {_plain(limit)})"
    number = Decimal(str(actual))
    if not _OPERATORS[threshold.op](number, limit):
        return None
    return f"{threshold.text}: {threshold.metric} is {_plain(number)}{shown}"


def _plain(number: Decimal) -> str:
    text = f"{round(number, 10):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


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
