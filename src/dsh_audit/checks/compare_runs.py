"""Two runs of one task, request by request: which layer differs, where first, and what stands there on either side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

from dsh_audit.checks.run_requests import RunRequest
from dsh_audit.difference.requests import Kind, describe_body, diff_requests, places_of
from dsh_audit.events import Json
from dsh_audit.finding import Finding, Where
from dsh_audit.record import dataclass
from dsh_audit.replay.body_diff import window
from dsh_audit.rules import diff as rules
from dsh_audit.text import ecma
from dsh_audit.text.alignment import gaps, longest_increasing, pair_equal, pair_in_order
from dsh_audit.text.pointer import common_start, pointer_at

Layer = Literal["settings", "system", "tools", "messages", "encoding"]
Status = Literal["same", "different", "only-first", "only-second", "not-compared"]

LAYER_OF: dict[Kind, Layer] = {"tool": "tools", "system": "system", "message": "messages", "setting": "settings"}
STATUSES: tuple[Status, ...] = ("same", "different", "only-first", "only-second", "not-compared")
MAX_CHANGES = 4
_MAX_CELLS = 2500

Normalise = Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class LayerChange:
    """One place where two requests differ.

    Args:
        pointer: JSON pointer into the second body, into the first for what only that has.
        first, second: both sides in short; None where absent.
        what: what was done, in the words of every command.
    """

    layer: Layer
    pointer: str
    first: str | None
    second: str | None
    what: str


@dataclass(frozen=True, slots=True)
class FirstByte:
    """The first byte at which two bodies differ.

    Args:
        at: its offset, the same in both.
        pointer: of the value there, in the second body.
        first_seq, second_seq: log events that these bytes come from; None for captures and fixed text.
        first, second: text around it.
    """

    at: int
    pointer: str
    first_seq: int | None
    second_seq: int | None
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class RequestDiff:
    """One pair of requests, or a request of one run only.

    Args:
        first, second: ids; None on the side that lacks it.
        title: what the request is.
        layers: those that differ.
        changes: the first few of each layer.
        first_byte: None where texts were not compared byte by byte.
        notes: what limits the comparison.
    """

    first: str | None
    second: str | None
    title: str
    status: Status
    layers: tuple[Layer, ...] = ()
    changes: tuple[LayerChange, ...] = ()
    first_byte: FirstByte | None = None
    notes: tuple[str, ...] = ()

    def finding(self, source: str) -> Finding | None:
        """What it means for the verdict: diff/different, diff/one-side, diff/not-compared, or nothing."""
        ident = self.first if self.second is None else self.second
        pointer = self.changes[0].pointer if self.changes else None
        seq = self.first_byte.second_seq if self.first_byte is not None else None
        where = Where(source=source, pointer=pointer, seq=seq)
        if self.status == "different":
            first = f", first at {pointer or 'the top'}" if pointer is not None else ""
            message = f"request {ident} ({self.title}): {', '.join(self.layers)} differ{first}"
            return Finding(rules.DIFFERENT, message, where)
        if self.status in ("only-first", "only-second"):
            side = self.status.removeprefix("only-")
            return Finding(rules.ONE_SIDE, f"request {ident} ({self.title}) is only in the {side} run", where)
        if self.status == "not-compared":
            return Finding(rules.NOT_COMPARED, f"request {ident} ({self.title}): {'; '.join(self.notes)}", where)
        return None


@dataclass(frozen=True, slots=True)
class RunsDiff:
    """The result of a comparison.

    Args:
        kind: ``logs`` or ``captures``.
        first, second: as the user named them.
        normalisers: as JSON, with how many texts each replaced.
        findings: sorted.
    """

    kind: str
    first: str
    second: str
    normalisers: tuple[dict[str, Any], ...]
    requests: tuple[RequestDiff, ...]
    findings: tuple[Finding, ...]

    SCHEMA: ClassVar = "dsh-audit/diff/1"
    JSON: ClassVar = "schema=SCHEMA kind first second normalisers summary requests findings"

    @property
    def summary(self) -> dict[str, int]:
        """Number of requests by status."""
        statuses = [request.status for request in self.requests]
        return {status: statuses.count(status) for status in STATUSES}


def compare_runs(
    first: Sequence[RunRequest],
    second: Sequence[RunRequest],
    normalise: tuple[Normalise, Normalise] | None = None,
) -> list[RequestDiff]:
    """Pair the requests of two runs and compare each pair.

    Args:
        normalise: for each side, replaces what legitimately varies; texts are then not compared byte by byte.

    Returns:
        in the order of the second run; what only the first has stands where it was.
    """
    return [_compare(one, two, normalise) for one, two in pair_runs(first, second)]


def pair_runs(
    first: Sequence[RunRequest], second: Sequence[RunRequest]
) -> Iterator[tuple[RunRequest | None, RunRequest | None]]:
    """Requests with the same label, or (captures) with the same bytes, then the others in order."""
    pairs = _by_label(first, second) if all(one.label for one in (*first, *second)) else _by_content(first, second)
    partner = {j: i for i, j in pairs}
    paired, follow = {i for i, _ in pairs}, dict(longest_increasing(sorted(pairs)))
    before: dict[int, list[int]] = {}
    place = len(second)
    for i in reversed(range(len(first))):
        place = follow.get(i, place)
        if i not in paired:
            before.setdefault(place, []).insert(0, i)
    for j in range(len(second) + 1):
        yield from ((first[i], None) for i in before.get(j, ()))
        if j < len(second):
            yield (first[partner[j]] if j in partner else None), second[j]


def _by_label(first: Sequence[RunRequest], second: Sequence[RunRequest]) -> list[tuple[int, int]]:
    waiting: dict[Hashable, list[int]] = {}
    for index, request in enumerate(first):
        waiting.setdefault(request.label, []).append(index)
    pairs = []
    for index, request in enumerate(second):
        same = waiting.get(request.label)
        if same:
            pairs.append((same.pop(0), index))
    return pairs


def _by_content(first: Sequence[RunRequest], second: Sequence[RunRequest]) -> list[tuple[int, int]]:
    keys = [[] if request.digest is None else [request.digest] for request in second]
    equal = longest_increasing(pair_equal([request.digest for request in first], keys, [False] * len(second)))
    rest_first = sorted(set(range(len(first))) - {i for i, _ in equal})
    rest_second = sorted(set(range(len(second))) - {j for _, j in equal})
    pairs = list(equal)
    for left, right in gaps(equal, rest_first, rest_second):
        if len(left) * len(right) > _MAX_CELLS:
            pairs += zip(left, right, strict=False)
            continue
        pairs += pair_in_order(left, right, lambda i, j: float(first[i].title == second[j].title))
    return sorted(pairs)


def _compare(
    one: RunRequest | None, two: RunRequest | None, normalise: tuple[Normalise, Normalise] | None
) -> RequestDiff:
    if one is None:
        assert two is not None
        return RequestDiff(None, two.ident, two.title, "only-second")
    if two is None:
        return RequestDiff(one.ident, None, one.title, "only-first")
    if one.digest is not None and one.digest == two.digest:
        return RequestDiff(one.ident, two.ident, two.title, "same")
    left, right = one.load_body(), two.load_body()
    if left is None or right is None:
        return _compare_values(one, two, normalise)
    try:
        values = ecma.parse(left), ecma.parse(right)
    except ecma.EcmaSyntaxError as error:
        note = f"a body is not JSON at byte {error.at}"
        return RequestDiff(one.ident, two.ident, two.title, "not-compared", notes=(note,))
    by_bytes = normalise is None and one.keeps_bytes and two.keeps_bytes
    changes, ignored = _changes(*_normalised(values, normalise), by_bytes=by_bytes)
    notes = (f"not compared: {', '.join(ignored)}",) if ignored else ()
    layers: tuple[Layer, ...] = tuple(dict.fromkeys(change.layer for change in changes))
    if not layers and by_bytes and not ignored:
        layers = ("encoding",)
    if not layers:
        return RequestDiff(one.ident, two.ident, two.title, "same", notes=notes)
    first_byte = _first_byte(one, two, left, right) if by_bytes else None
    return RequestDiff(one.ident, two.ident, two.title, "different", layers, changes, first_byte, notes)


def _compare_values(
    one: RunRequest, two: RunRequest, normalise: tuple[Normalise, Normalise] | None
) -> RequestDiff:
    """Compare what the logs say where a body is missing."""
    why = tuple(dict.fromkeys(side.why_not for side in (one, two) if side.why_not))
    if one.load_value is None or two.load_value is None:
        notes = why or ("a body is missing",)
        return RequestDiff(one.ident, two.ident, two.title, "not-compared", notes=notes)
    changes, _ignored = _changes(*_normalised((one.load_value(), two.load_value()), normalise))
    layers: tuple[Layer, ...] = tuple(dict.fromkeys(change.layer for change in changes))
    notes = ("compared as logged, not as written", *why)
    status: Status = "different" if layers else "same"
    return RequestDiff(one.ident, two.ident, two.title, status, layers, changes, None, notes)


def _normalised(values: tuple[Json, Json], normalise: tuple[Normalise, Normalise] | None) -> tuple[Json, Json]:
    if normalise is None:
        return values
    return normalise[0](values[0]), normalise[1](values[1])


def _changes(
    left: Json, right: Json, *, by_bytes: bool = False
) -> tuple[tuple[LayerChange, ...], tuple[str, ...]]:
    """The first differences of each layer, and the extension fields that were left out.

    Args:
        by_bytes: the same value printed in another way counts too.
    """
    found: list[LayerChange] = []
    ignored: list[str] = []
    for change in diff_requests(describe_body(left), describe_body(right)):
        if change.part == "tail":
            ignored += change.names
            continue
        layer = LAYER_OF[change.part]
        if change.kind == "respelled" and by_bytes:
            found.append(LayerChange("encoding", change.pointer, None, None, change.words))
        found += (LayerChange(layer, p.pointer, p.replayed, p.captured, p.what) for p in places_of([change]))
    counts: Counter[Layer] = Counter()
    kept = []
    for item in found:
        counts[item.layer] += 1
        if counts[item.layer] <= MAX_CHANGES:
            kept.append(item)
    return tuple(kept), tuple(ignored)


def _first_byte(one: RunRequest, two: RunRequest, left: bytes, right: bytes) -> FirstByte:
    at = common_start(left, right)
    return FirstByte(
        at, pointer_at(right, at), one.find_seq(at), two.find_seq(at), window(left, at), window(right, at)
    )


def check_runs(diffs: Iterable[RequestDiff], source: str) -> list[Finding]:
    """The findings of a comparison.

    Findings: diff/different, diff/one-side, diff/not-compared.
    """
    return [finding for diff in diffs if (finding := diff.finding(source)) is not None]
