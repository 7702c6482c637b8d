"""Where a body keeps its tools, system text and messages, and the JSON path of any byte, found fragment by fragment.

A body is scanned once per new fragment: the state behind each fragment of a shared run is kept, and a fragment
that was met in the same state before (a tool list) is not scanned again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from dsh_audit.text import ecma
from dsh_audit.text.pointer import join_pointer
from dsh_audit.wire.body import Body, Fragment, FragmentRun

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|"', re.DOTALL)
_MAX_MEMO = 4096
_LONGEST_NAME = 1024
_MAX_MEMO_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Path:
    """The containers that are open at a place.

    Args:
        children: for each container its current child: a name as printed (object) or an index (list).
        objects: whether each container is an object.
        expects_key: the next string is a name.
        carry: the start of a string that the place is inside of.
    """

    children: tuple[bytes | int | None, ...] = ()
    objects: tuple[bool, ...] = ()
    expects_key: bool = False
    carry: bytes = b""

    def pointer(self) -> str:
        """JSON pointer of the value at this place."""
        names = [_name(child) if isinstance(child, bytes) else child for child in self.children]
        return join_pointer(name for name in names if name is not None)


ROOT = Path()
_Edges = tuple[tuple[int, bytes | None], ...]
"""(offset, name) where a top-level value starts, (offset, None) where it ends."""


class _Scanner:
    """Moves a path through bytes; notes where top-level values start and end."""

    __slots__ = ("children", "edges", "expects_key", "objects")

    def __init__(self, path: Path) -> None:
        self.children = list(path.children)
        self.objects = list(path.objects)
        self.expects_key = path.expects_key
        self.edges: list[tuple[int, bytes | None]] = []

    def run(self, data: bytes, end: int, shift: int) -> bytes:
        """Scan up to ``end``; returns the unfinished string there."""
        for match in _TOKEN.finditer(data):
            start, token = match.start(), match[0]
            if start >= end:
                break
            if token == b'"':
                return data[start:end]
            if match.end() > end:
                return data[start:end]
            self._take(token, start + shift)
        return b""

    def _take(self, token: bytes, at: int) -> None:
        first = token[:1]
        if first == b'"':
            if self.expects_key:
                self.children[-1] = token
        elif first == b":":
            self.expects_key = False
            if len(self.children) == 1:
                self.edges.append((at + 1, self.children[0]))  # type: ignore[arg-type]
        elif first == b",":
            self._next_child(at)
        elif first in b"{[":
            self.objects.append(first == b"{")
            self.children.append(None if first == b"{" else 0)
            self.expects_key = first == b"{"
        elif self.objects:
            if len(self.children) == 1:
                self.edges.append((at, None))
            self.objects.pop()
            self.children.pop()
            self.expects_key = False

    def _next_child(self, at: int) -> None:
        if not self.objects:
            return
        if len(self.children) == 1:
            self.edges.append((at, None))
        self.expects_key = self.objects[-1]
        child = self.children[-1]
        self.children[-1] = child + 1 if isinstance(child, int) else None

    def path(self, carry: bytes) -> Path:
        return Path(tuple(self.children), tuple(self.objects), self.expects_key, carry)


def advance(path: Path, data: bytes) -> tuple[Path, _Edges]:
    """The path behind some bytes, and the edges of top-level values inside them."""
    scanner = _Scanner(path)
    whole = path.carry + data if path.carry else data
    carry = scanner.run(whole, len(whole), -len(path.carry))
    return scanner.path(carry), tuple(scanner.edges)


def path_within(path: Path, data: bytes, at: int) -> Path:
    """The path of the value that holds byte ``at`` of ``data``."""
    scanner = _Scanner(path)
    whole, stop = path.carry + data, at + len(path.carry)
    for match in _TOKEN.finditer(whole):
        if match.end() > stop:
            if match[0] in (b",", b"]", b"}") and match.start() <= stop and scanner.children:
                scanner.children.pop()
                scanner.objects.pop()
            elif match.start() <= stop and scanner.expects_key and match[0][:1] == b'"' and len(match[0]) > 1:
                scanner.children[-1] = match[0]
            break
        scanner._take(match[0], match.start())
    return scanner.path(b"")


def _name(token: bytes) -> str:
    try:
        value = ecma.parse(token)
    except ValueError:
        value = None
    return value if isinstance(value, str) else token.strip(b'"').decode(errors="replace")


@dataclass(slots=True)
class _RunPaths:
    """The path behind each fragment of a run, extended as the run grows."""

    run: FragmentRun
    start: Path
    paths: list[Path] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    edges: list[tuple[int, int, bytes | None]] = field(default_factory=list)
    rests: dict[int, FragmentRun] = field(default_factory=dict)

    def extend(self, count: int) -> None:
        path = self.paths[-1] if self.paths else self.start
        for fragment in self.run.first(count)[len(self.paths) :] if count > len(self.paths) else ():
            path, edges = advance(path, fragment.data)
            self.edges += ((len(self.paths), self.ends[-1] + offset, name) for offset, name in edges)
            self.paths.append(path)
            self.ends.append(self.ends[-1] + len(fragment.data))

    def after(self, count: int) -> Path:
        self.extend(count)
        return self.paths[count - 1] if count else self.start


def _pointer(path: Path, fragments: list[Fragment], at: int) -> str:
    """Pointer of byte ``at`` of the first fragment; the next ones may hold the end of a name."""
    data = fragments[0].data
    for fragment in fragments[1:]:
        if len(data) > at + _LONGEST_NAME:
            break
        data += fragment.data[:_LONGEST_NAME]
    return path_within(path, data, at).pointer()


def _spans(edges: Iterable[tuple[int, bytes | None]]) -> dict[str, tuple[int, int]]:
    spans: dict[str, tuple[int, int]] = {}
    opened: tuple[bytes, int] | None = None
    for at, name in edges:
        if name is not None:
            opened = (name, at)
        elif opened is not None:
            spans[_name(opened[0])] = (opened[1], at)
            opened = None
    return spans


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte ranges of a body's top-level values by name: ``tools`` → (start, end)."""

    spans: dict[str, tuple[int, int]]


class LayoutScanner:
    """Scans the bodies of one session."""

    def __init__(self) -> None:
        self._memo: dict[tuple[Path, bytes], tuple[Path, _Edges]] = {}
        self._runs: list[_RunPaths] = []

    def scan(self, body: Body) -> Layout:
        """Where the top-level values of a body are."""
        path, at = ROOT, 0
        edges: list[tuple[int, bytes | None]] = []
        for fragment in body.head:
            path, at = self._step(path, fragment, at, edges)
        if body.count:
            paths = self._run_paths(body, path)
            path = paths.after(body.count)
            edges += ((at + offset, name) for index, offset, name in paths.edges if index < body.count)
            at += body.run.size(body.count)
        for fragment in body.tail:
            path, at = self._step(path, fragment, at, edges)
        return Layout(_spans(edges))

    def pointer_at(self, body: Body, at: int) -> str:
        """JSON pointer of the value that holds byte ``at`` of a body."""
        path, offset = ROOT, 0
        head_size = sum(len(fragment.data) for fragment in body.head)
        if body.count and head_size <= at < head_size + body.run.size(body.count):
            paths = self._run_paths(body, self._behind_head(body))
            paths.extend(body.count)
            index = bisect_right(paths.ends, at - head_size, 0, body.count + 1) - 1
            path, offset = paths.paths[index - 1] if index else paths.start, head_size + paths.ends[index]
            rest = [*body.run.first(body.count)[index:], *body.tail]
            return _pointer(path, rest, at - offset)
        if at < head_size:
            return self._pointer_in(path, list(body.fragments()), at)
        if body.count:
            path = self._run_paths(body, self._behind_head(body)).after(body.count)
            offset = head_size + body.run.size(body.count)
        else:
            path, offset = self._behind_head(body), head_size
        return self._pointer_in(path, list(body.tail), at - offset)

    def _pointer_in(self, path: Path, fragments: list[Fragment], at: int) -> str:
        for index, fragment in enumerate(fragments):
            if at < len(fragment.data):
                return _pointer(path, fragments[index:], at)
            path, _ = self._advance(path, fragment.data)
            at -= len(fragment.data)
        return ""

    def _step(self, path: Path, fragment: Fragment, at: int, edges: list[tuple[int, bytes | None]]) -> tuple[Path, int]:
        path, found = self._advance(path, fragment.data)
        edges += ((at + offset, name) for offset, name in found)
        return path, at + len(fragment.data)

    def run_from(self, body: Body, at: int) -> tuple[FragmentRun, int]:
        """The run of a body from its byte ``at`` on as a run of its own, and how many of its fragments are the body's.

        The same bytes give the same run, so that what bodies share stays known.
        """
        paths = self._run_paths(body, self._behind_head(body))
        paths.extend(body.count)
        first = bisect_right(paths.ends, at, 0, body.count + 1) - 1
        rest = paths.rests.setdefault(at, FragmentRun())
        for index in range(first + len(rest), body.count):
            fragment = body.run.first(index + 1)[index]
            data = fragment.data[at - paths.ends[first] :] if index == first else fragment.data
            rest.append(data, fragment.seq)
        return rest, body.count - first

    def _behind_head(self, body: Body) -> Path:
        path = ROOT
        for fragment in body.head:
            path, _ = self._advance(path, fragment.data)
        return path

    def _advance(self, path: Path, data: bytes) -> tuple[Path, _Edges]:
        if len(data) > _MAX_MEMO_BYTES:
            return advance(path, data)
        key = (path, data)
        known = self._memo.get(key)
        if known is None:
            if len(self._memo) >= _MAX_MEMO:
                self._memo.clear()
            known = self._memo[key] = advance(path, data)
        return known

    def _run_paths(self, body: Body, start: Path) -> _RunPaths:
        for known in self._runs:
            if known.run is body.run and known.start == start:
                return known
        fresh = _RunPaths(body.run, start)
        self._runs = [*self._runs[-3:], fresh]
        return fresh
