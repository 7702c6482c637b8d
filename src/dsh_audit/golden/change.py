"""One difference between a golden case and a run, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from dsh_audit.difference import requests as difference
from dsh_audit.difference.requests import Item, Kind
from dsh_audit.events import Json
from dsh_audit.golden.case import PinnedValue
from dsh_audit.record import dataclass
from dsh_audit.text.value_diff import excerpt, find_changes

Layer = Literal["log", "requests", "settings", "system", "tools", "messages", "wire"]

LAYERS: tuple[Layer, ...] = ("log", "requests", "settings", "system", "tools", "messages", "wire")
_MAX_CHANGED_PARTS = 3


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what is pinned and what is there.

    Args:
        cause: what was done, e.g. ``tool-added``, ``prompt-edited``; stable, for machines.
        layer: the part of a request it is in.
        message: one line.
        requests: indexes in the new run (in the golden one for requests that are gone), increasing.
        pointer: JSON pointer into the body of the first of them; None where there is no body.
        within: pointer inside the tool or message, with more than one when several leaves changed.
        seq: event of the new log that brought it; of the recorded log where it is gone.
        expected, actual: either side, short; None where absent.
        what: what was done to what, in the words of every command; empty where no part of a request changed.
        hints: what may have caused it or what to do, one line each.
    """

    cause: str
    layer: Layer
    message: str
    requests: tuple[int, ...]
    pointer: str | None = None
    within: tuple[str, ...] = ()
    seq: int | None = None
    expected: str | None = None
    actual: str | None = None
    hints: tuple[str, ...] = ()
    what: str = ""

    JSON: ClassVar = "cause layer what message requests pointer within seq expected actual hints"


_LAYER_OF: Mapping[Kind, Layer] = {"tool": "tools", "system": "system", "message": "messages"}


def pinned_items(kind: Kind, values: Sequence[PinnedValue]) -> Iterator[Item]:
    """Pinned values as items: what they say is known by digest only."""
    for index, value in enumerate(values):
        name = "tool" if value.type == "tool/result" else value.name
        yield Item(kind, name, value.sha256, None, (f"{kind}s", index), value.seq)


def pinned_change(found: difference.Change, old: Sequence[PinnedValue], new: Sequence[PinnedValue]) -> Change:
    """One difference of two lists of pinned values."""
    before, after = pinned_sides(found, old, new)
    value = after or before
    assert value is not None
    message, sides = found.words, (_brief(before), _brief(after))
    within: tuple[str, ...] = ()
    if found.part == "tool" and found.kind == "moved":
        sides = (found.places[0].replayed, found.places[0].captured)
    elif before is not None and after is not None and found.kind == "changed":
        within = _changed_parts(before, after)
        message += f", {before.size} → {after.size} bytes"
        sides = _sides(before, after, within)
    is_prompt = found.what.startswith("prompt-")
    if found.part == "message" and not is_prompt and found.kind != "moved":
        message += _speaker(value)
    pointer = found.pointer if found.part == "tool" else None
    layer = "system" if is_prompt else _LAYER_OF[found.part]
    return Change(found.what, layer, message, (), pointer, within, found.seq, *sides, what=found.words)


def pinned_sides(
    found: difference.Change, old: Sequence[PinnedValue], new: Sequence[PinnedValue]
) -> tuple[PinnedValue | None, PinnedValue | None]:
    """The values on either side of a difference."""
    before, after = found.before, found.after
    return (
        None if before is None else old[int(before.path[1])],
        None if after is None else new[int(after.path[1])],
    )


def _changed_parts(before: PinnedValue, after: PinnedValue) -> tuple[str, ...]:
    names = dict.fromkeys((*after.parts, *before.parts))
    changed = [name for name in names if before.parts.get(name) != after.parts.get(name)]
    return tuple(changed[:_MAX_CHANGED_PARTS]) or (("",) if before.parts == after.parts else ())


def _sides(
    before: PinnedValue | None, after: PinnedValue | None, within: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """Both sides in short: the text that changed where values are kept, else size and digest."""
    if before is not None and after is not None and before.value is not None and after.value is not None:
        pointer = within[0] if within else ""
        old, new = _at(before.value, pointer), _at(after.value, pointer)
        found = find_changes(new, old, limit=1)
        return (found[0].replayed, found[0].captured) if found else (excerpt(old), excerpt(new))
    return _brief(before), _brief(after)


def _at(value: Json, pointer: str) -> Json:
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping):
            value = value.get(name)
        else:
            return None
    return value


def _brief(value: PinnedValue | None) -> str | None:
    if value is None:
        return None
    if value.value is not None:
        return excerpt(value.value)
    kinds = f"{', '.join(value.kinds)}; " if value.kinds else ""
    return f"{kinds}{value.size} bytes, sha256 {value.sha256[:12]}"


def _speaker(value: PinnedValue) -> str:
    """Who wrote a message, where that says more than its role."""
    said = {"assistant/message": "the model's answer", "tool/result": "a tool's result"}.get(value.type or "")
    source = value.source if value.source not in (None, "model", "tool") else None
    texts = [text for text in (said, source and f"source {source}") if text]
    return f" ({', '.join(texts)})" if texts else ""
