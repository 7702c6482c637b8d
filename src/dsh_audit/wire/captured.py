"""A captured body → the parts that an encoder would have named, whoever wrote it.

Nothing is assumed about foreign bodies: members and items keep their own bytes, white space goes to the part behind
it, and from the first malformed byte on the rest is one mark.
"""

from __future__ import annotations

from contextlib import suppress

from dsh_audit.text.pointer import MalformedError, scan_elements, scan_members
from dsh_audit.wire.body import Body
from dsh_audit.wire.parts import END, EXTENSION_KEYS, MESSAGE_KEYS, SYSTEM_KEYS, Kind, Part, Path

_SYSTEM_ROLES = ("system", "developer")
_SPACE = b" \t\n\r"


def parse_parts(data: bytes) -> Body:
    """The parts of a body as captured; together they are its bytes."""
    cutter = _Cutter(data)
    with suppress(MalformedError):
        cutter.cut()
    return Body.of(cutter.finish())


class _Cutter:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._parts: list[Part] = []
        self._done = 0

    def cut(self) -> None:
        start = len(self._data) - len(self._data.lstrip(_SPACE))
        if self._data[start : start + 1] != b"{":
            raise MalformedError(start)
        for item in scan_members(self._data, start + 1):
            name, at = item.name, item.value_start
            if name in (*MESSAGE_KEYS, "tools") and self._data[at : at + 1] == b"[":
                self._cut_list(name, at)
            else:
                self._add(_kind_of(name), name, (name,), at, item.end)

    def finish(self) -> list[Part]:
        rest = self._data[self._done :]
        if rest == b"}":
            self._parts.append(END)
        elif rest:
            self._parts.append(Part(rest, "mark", "", (), lead=len(rest)))
        return self._parts

    def _add(self, kind: Kind, name: str, path: Path, start: int, end: int) -> None:
        self._parts.append(Part(self._data[self._done : end], kind, name, path, (None,), start - self._done))
        self._done = end

    def _cut_list(self, name: str, at: int) -> None:
        self._add("mark", name, (name,), at + 1, at + 1)
        end = at + 1
        for index, (start, end) in enumerate(scan_elements(self._data, at + 1)):
            label = _label(self._data[start:end])
            kind: Kind = "tool" if name == "tools" else "message"
            if index == 0 and label in _SYSTEM_ROLES:
                kind = "system"
            self._add(kind, label, (name, index), start, end)
        close = self._data.index(b"]", end) + 1
        self._add("mark", name, (name,), close, close)


def _kind_of(name: str) -> Kind:
    if name in SYSTEM_KEYS:
        return "system"
    if name in EXTENSION_KEYS:
        return "tail"
    if name == "tools":
        return "tool"
    return "message" if name in MESSAGE_KEYS else "setting"


def _label(item: bytes) -> str:
    """Name of a tool, role of a message, else its type; empty where it has none."""
    found: dict[str, bytes] = {}
    try:
        for inner in scan_members(item, 1) if item[:1] == b"{" else ():
            found.setdefault(inner.name, item[inner.value_start : inner.end])
        if "function" in found and "name" not in found:
            for inner in scan_members(found["function"], 1):
                if inner.name == "name":
                    found["name"] = found["function"][inner.value_start : inner.end]
    except MalformedError:
        pass
    text = next((found[key] for key in ("role", "name", "type") if key in found), b'""')
    return text.strip(b'"').decode(errors="replace")
