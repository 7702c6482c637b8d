"""A golden case against a fresh one: what changed, once each, with the requests it reaches.

Requests are matched by what they are in the run (kind, turn, step, attempt). One edited message, tool or prompt is
one change, however many requests repeat it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsh_audit.events import Json
from dsh_audit.golden.case import GoldenCase, PinnedRequest, PinnedValue
from dsh_audit.golden.change import LAYERS, Change, shown, speaker, value_change
from dsh_audit.golden.sequences import Edit, diff_values
from dsh_audit.text import ecma

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
        self.edits: dict[tuple[int, int], list[tuple[Edit, Hashable, Change]]] = {}

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
        before = self.found.count
        self._settings(one, two)
        self._system(one, two)
        self._tools(one, two)
        self._messages(one, two)
        if self.found.count == before:
            self._wire(one, two)

    def _settings(self, one: PinnedRequest, two: PinnedRequest) -> None:
        routes = [(name, getattr(one, name), getattr(two, name)) for name in _ROUTE]
        named = [*routes, *_members(one.settings, two.settings)]
        changed = [item for item in named if not _same(item[1], item[2])]
        options = [item for item in _members(one.options, two.options) if not _same(item[1], item[2])]
        pointer = f"/{options[0][0]}" if options else None
        for name, old, new in changed:
            cause = "route-changed" if name in _ROUTE else "setting-changed"
            self._setting(cause, name, old, new, pointer, two)
        if not changed and one.body_sha256 is not None and two.body_sha256 is not None:
            for name, old, new in options:
                self._setting("option-changed", name, old, new, f"/{name}", two)

    def _setting(
        self, cause: str, name: str, old: Json, new: Json, pointer: str | None, request: PinnedRequest
    ) -> None:
        before, after = shown(old), shown(new)
        message = f"{name} {before or 'absent'} → {after or 'absent'}"
        change = Change(cause, "settings", message, (), pointer, expected=before, actual=after)
        self.found.add((cause, name, before, after), change, request.index)

    def _system(self, one: PinnedRequest, two: PinnedRequest) -> None:
        old = None if one.system is None else self.expected.systems[one.system]
        new = None if two.system is None else self.actual.systems[two.system]
        if (old.sha256 if old else None) != (new.sha256 if new else None):
            change = replace(value_change("prompt", old, new), layer="system")
            self.found.add(("system", old and old.sha256, new and new.sha256), change, two.index)
        if one.constant != two.constant:
            message = f"the fixed last message {one.constant or 'absent'} → {two.constant or 'absent'}"
            change = Change("constant-changed", "messages", message, (), expected=one.constant, actual=two.constant)
            self.found.add(("constant", one.constant, two.constant), change, two.index)

    def _tools(self, one: PinnedRequest, two: PinnedRequest) -> None:
        old = self.expected.tools[one.tools] if one.tools is not None else ()
        new = self.actual.tools[two.tools] if two.tools is not None else ()
        for key, change in _tool_changes(old, new):
            self.found.add(("tools", *key), change, two.index)

    def _messages(self, one: PinnedRequest, two: PinnedRequest) -> None:
        threads = one.thread, two.thread
        if threads not in self.edits:
            self.edits[threads] = _message_changes(self.expected.threads[one.thread], self.actual.threads[two.thread])
        reached = 0
        for edit, key, change in self.edits[threads]:
            left = edit.expected_at is not None and edit.expected_at < one.count
            right = edit.actual_at is not None and edit.actual_at < two.count
            if left or right:
                reached += right - left
                self.found.add(key, change, two.index)
        if one.count + reached != two.count:
            message = f"{one.count} messages expected, {two.count} are there"
            change = Change("history-shifted", "messages", message, (), expected=str(one.count), actual=str(two.count))
            self.found.add(("count", *threads, one.count - two.count), change, two.index)

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


def _message_changes(
    old: Sequence[PinnedValue], new: Sequence[PinnedValue]
) -> list[tuple[Edit, Hashable, Change]]:
    """The differences of two message lists, each with its identity across requests."""
    found: list[tuple[Edit, Hashable, Change]] = []
    for edit in diff_values(old, new, _alike):
        before = None if edit.expected_at is None else old[edit.expected_at]
        after = None if edit.actual_at is None else new[edit.actual_at]
        value = after or before
        assert value is not None
        is_system = value.name == "system"
        change = value_change("prompt" if is_system else "message", before, after, edit.kind)
        if is_system:
            change = replace(change, layer="system")
        elif edit.kind != "moved":
            change = replace(change, message=f"{change.message}{speaker(value)}")
        place = (before and (before.sha256, before.seq), after and (after.sha256, after.seq))
        found.append((edit, ("message", edit.kind, *place), change))
    return found


def _tool_changes(
    old: Sequence[PinnedValue], new: Sequence[PinnedValue]
) -> Iterator[tuple[tuple[Hashable, ...], Change]]:
    if old == new:
        return
    order = []
    for edit in diff_values(old, new, lambda one, two: one.name == two.name):
        before = None if edit.expected_at is None else old[edit.expected_at]
        after = None if edit.actual_at is None else new[edit.actual_at]
        value = after or before
        assert value is not None
        if edit.kind == "moved":
            order.append((value.name, edit))
            continue
        at = edit.actual_at if after is not None else edit.expected_at
        change = replace(value_change("tool", before, after), pointer=f"/tools/{at}")
        yield (value.name, before and before.sha256, after and after.sha256), change
    if order:
        names = tuple(name for name, _ in order)
        sides = (", ".join(tool.name for tool in side) for side in (old, new))
        before_names, after_names = (side if len(side) <= 120 else f"{side[:120]}…" for side in sides)
        pointer = f"/tools/{min(edit.actual_at or 0 for _, edit in order)}"
        change = Change(
            "tools-reordered",
            "tools",
            f"tools reordered: {', '.join(names)}",
            (),
            pointer,
            seq=new[0].seq,
            expected=before_names,
            actual=after_names,
        )
        yield ("order", before_names, after_names), change


def _alike(one: PinnedValue, two: PinnedValue) -> bool:
    return one.name == two.name and one.type == two.type


def _members(one: Mapping[str, Json], two: Mapping[str, Json]) -> Iterator[tuple[str, Json, Json]]:
    for name in dict.fromkeys((*one, *two)):
        yield name, one.get(name), two.get(name)


def _same(one: Json, two: Json) -> bool:
    return ecma.same_json(one, two)


def _digest(request: PinnedRequest) -> str:
    return f"{request.body_size} bytes, sha256 {(request.body_sha256 or '')[:12]}"
