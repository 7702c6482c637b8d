"""A golden case against a fresh one: what changed, once each, with the requests it reaches.

Requests are matched by what they are in the run (kind, turn, step, attempt). One edited message, tool or prompt is
one change, however many requests repeat it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from dsh_audit.difference.requests import Change as Difference
from dsh_audit.difference.requests import Item, diff_named, diff_texts, value_item, without_echoes
from dsh_audit.events import Json
from dsh_audit.golden.case import GoldenCase, PinnedRequest, PinnedValue
from dsh_audit.golden.change import LAYERS, Change, pinned_change, pinned_items, pinned_sides
from dsh_audit.record import dataclass
from dsh_audit.text.value_diff import excerpt

_ROUTE = ("provider", "model", "protocol")


@dataclass(slots=True)
class _Found:
    """Changes by identity, in order of discovery, with the requests they reach."""

    changes: dict[Hashable, Change] = field(default_factory=dict)
    requests: dict[Hashable, list[int]] = field(default_factory=dict)
    count: int = 0

    def add(self, key: Hashable, change: Change, request: int) -> None:
        self.changes.setdefault(key, change)
        self.requests.setdefault(key, []).append(request)
        self.count += 1

    def all(self) -> Iterator[Change]:
        for key, change in self.changes.items():
            yield replace(change, requests=tuple(self.requests[key]))


def compare_cases(expected: GoldenCase, actual: GoldenCase) -> list[Change]:
    """What differs, by first request and layer; empty when the case still holds."""
    return _Comparison(expected, actual).run()


class _Comparison:
    def __init__(self, expected: GoldenCase, actual: GoldenCase) -> None:
        self.expected, self.actual = expected, actual
        self.found = _Found()
        self.messages: dict[tuple[int, int], list[Difference]] = {}

    def run(self) -> list[Change]:
        pairs, removed, added = match_requests(self.expected.requests, self.actual.requests)
        for one in removed:
            message = f"requests are gone, the first is {describe_request(one)}"
            self.found.add("removed", Change("request-removed", "requests", message, ()), one.index)
        for one in added:
            message = f"requests are new, the first is {describe_request(one)}"
            self.found.add("added", Change("request-added", "requests", message, ()), one.index)
        for one, two in pairs:
            self._compare(one, two)
        changes = [*self._log_changes(), *self.found.all()]
        return sorted(changes, key=lambda change: (change.requests[:1], LAYERS.index(change.layer)))

    def _log_changes(self) -> Iterator[Change]:
        if self.expected.normalisers != self.actual.normalisers:
            old, new = (", ".join(one.name for one in case.normalisers) for case in (self.expected, self.actual))
            message = f"normalisers {old or 'none'} → {new or 'none'}"
            yield Change("normalisers-changed", "log", message, (), expected=old, actual=new)
        before, after = self.expected.findings, self.actual.findings
        for code in dict.fromkeys((*before, *after)):
            if before.get(code, 0) != after.get(code, 0):
                counts = f"{before.get(code, 0)}", f"{after.get(code, 0)}"
                message = f"the log has {counts[1]} of {code}, {counts[0]} expected"
                yield Change("log-findings", "log", message, (), expected=counts[0], actual=counts[1])

    def _compare(self, one: PinnedRequest, two: PinnedRequest) -> None:
        """What the model sees of both; nothing but the claim where the bodies are the same."""
        before = self.found.count
        is_same = one.body_sha256 is not None and one.body_sha256 == two.body_sha256
        if not is_same or one.protocol != two.protocol:
            self._settings(one, two)
            self._values(one, two)
        if self.found.count == before:
            self._wire(one, two)

    def _settings(self, one: PinnedRequest, two: PinnedRequest) -> None:
        changed = list(diff_named(list(_settings(one)), list(_settings(two))))
        options = list(diff_named(*(list(_members(side.options)) for side in (one, two))))
        pointer = f"/{options[0].names[0]}" if options else None
        for item in changed:
            self._setting(item, item.what, pointer, two)
        if not changed and one.body_sha256 is not None and two.body_sha256 is not None:
            for item in options:
                self._setting(item, "option-changed", f"/{item.names[0]}", two)

    def _setting(self, found: Difference, cause: str, pointer: str | None, request: PinnedRequest) -> None:
        name = found.names[0]
        before, after = (None if side is None else excerpt(side.value) for side in (found.before, found.after))
        message = f"{name} {before or 'absent'} → {after or 'absent'}"
        change = Change(cause, "settings", message, (), pointer, expected=before, actual=after, what=found.words)
        self.found.add((cause, name, before, after), change, request.index)

    def _values(self, one: PinnedRequest, two: PinnedRequest) -> None:
        systems = _listed(self.expected.systems, one.system), _listed(self.actual.systems, two.system)
        tools = _chosen(self.expected.tools, one.tools), _chosen(self.actual.tools, two.tools)
        threads = self.expected.threads[one.thread], self.actual.threads[two.thread]
        found = list(diff_texts(*(list(pinned_items("system", side)) for side in systems)))
        if tools[0] != tools[1]:
            found += diff_named(*(list(pinned_items("tool", side)) for side in tools))
        sides = {"system": systems, "tool": tools, "message": threads}
        for change in without_echoes([*found, *self._messages(one, two)]):
            before, after = pinned_sides(change, *sides[change.part])
            key: list[Hashable] = [change.part, change.kind, change.names]
            for value in (before, after):
                key.append(value and (value.sha256, value.seq if change.part == "message" else None))
            key += [place.captured for place in change.places]
            self.found.add(tuple(key), pinned_change(change, *sides[change.part]), two.index)
        if one.constant != two.constant:
            message = f"the fixed last message {one.constant or 'absent'} → {two.constant or 'absent'}"
            constant = Change("constant-changed", "messages", message, (), expected=one.constant, actual=two.constant)
            self.found.add(("constant", one.constant, two.constant), constant, two.index)

    def _messages(self, one: PinnedRequest, two: PinnedRequest) -> Iterator[Difference]:
        """The differences of two threads that these requests reach."""
        threads = one.thread, two.thread
        if threads not in self.messages:
            sides = self.expected.threads[one.thread], self.actual.threads[two.thread]
            self.messages[threads] = list(diff_texts(*(list(pinned_items("message", side)) for side in sides)))
        reached = 0
        for change in self.messages[threads]:
            left = change.before is not None and int(change.before.path[1]) < one.count
            right = change.after is not None and int(change.after.path[1]) < two.count
            if left or right:
                reached += right - left
                yield change
        if one.count + reached != two.count:
            message = f"{one.count} messages expected, {two.count} are there"
            shift = Change("history-shifted", "messages", message, (), expected=str(one.count), actual=str(two.count))
            self.found.add(("count", *threads, one.count - two.count), shift, two.index)

    def _wire(self, one: PinnedRequest, two: PinnedRequest) -> None:
        old, new = one.body_sha256, two.body_sha256
        if old is not None and new is None:
            message = f"the body cannot be rebuilt any more: claim {one.claim} → {two.claim}"
            change = Change("not-rebuilt", "wire", message, (), expected=_digest(one), actual=None)
        elif old is not None and new is not None and old != new:
            message = "the same settings, prompt, tools and messages are written differently"
            hints = ("the deployment or the rules of this release differ from those it was recorded with",)
            change = Change(
                "encoding-changed", "wire", message, (), expected=_digest(one), actual=_digest(two), hints=hints
            )
        elif one.claim != two.claim:
            message = f"claim {one.claim} → {two.claim}"
            change = Change("claim-changed", "wire", message, (), expected=one.claim, actual=two.claim)
        else:
            return
        self.found.add((change.cause, one.claim, two.claim), change, two.index)


def match_requests(
    expected: Sequence[PinnedRequest], actual: Sequence[PinnedRequest]
) -> tuple[list[tuple[PinnedRequest, PinnedRequest]], list[PinnedRequest], list[PinnedRequest]]:
    """Requests that are the same call of their run, then those of one side only."""
    waiting: dict[Hashable, list[PinnedRequest]] = {}
    for request in expected:
        waiting.setdefault(request.label, []).append(request)
    pairs, added = [], []
    for request in actual:
        same = waiting.get(request.label)
        if same:
            pairs.append((same.pop(0), request))
        else:
            added.append(request)
    removed = sorted((one for rest in waiting.values() for one in rest), key=lambda one: one.index)
    return pairs, removed, added


def describe_request(request: PinnedRequest) -> str:
    """``request 3 (step 2.1)``."""
    place = f" {request.turn}.{request.step}" if request.step is not None else ""
    again = f", attempt {request.attempt}" if (request.attempt or 1) > 1 else ""
    return f"request {request.index} ({request.kind}{place}{again})"


def _settings(request: PinnedRequest) -> Iterator[Item]:
    yield from (value_item("setting", name, getattr(request, name)) for name in _ROUTE)
    yield from _members(request.settings)


def _members(values: Mapping[str, Json]) -> Iterator[Item]:
    return (value_item("setting", name, value) for name, value in values.items())


def _listed(values: Sequence[PinnedValue], index: int | None) -> tuple[PinnedValue, ...]:
    return () if index is None else (values[index],)


def _chosen(lists: Sequence[tuple[PinnedValue, ...]], index: int | None) -> tuple[PinnedValue, ...]:
    return () if index is None else lists[index]


def _digest(request: PinnedRequest) -> str:
    return f"{request.body_size} bytes, sha256 {(request.body_sha256 or '')[:12]}"
