"""One difference between a golden case and a run, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from dsh_audit.events import Json
from dsh_audit.golden.case import PinnedValue

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

    JSON: ClassVar = "cause layer message requests pointer within seq expected actual hints"


_CAUSES = {
    ("tool", "changed"): "tool-redefined",
    ("tool", "inserted"): "tool-added",
    ("tool", "removed"): "tool-removed",
    ("prompt", "changed"): "prompt-edited",
    ("prompt", "inserted"): "prompt-added",
    ("prompt", "removed"): "prompt-removed",
    ("prompt", "moved"): "prompt-moved",
}


def value_change(
    what: str, before: PinnedValue | None, after: PinnedValue | None, kind: str | None = None
) -> Change:
    """The change of one tool, prompt or message."""
    kind = kind or ("inserted" if before is None else "removed" if after is None else "changed")
    cause = _CAUSES.get((what, kind), f"{what}-{kind}")
    value = after or before
    assert value is not None
    within: tuple[str, ...] = ()
    detail = ""
    if before is not None and after is not None and kind == "changed":
        within = _changed_parts(before, after)
        detail = f", {before.size} → {after.size} bytes"
    verb = cause.split("-")[1]
    name = f": {value.name}" if what == "tool" else ""
    subject = {"tool": "tool", "prompt": "system prompt", "message": f"{value.name} message"}[what]
    return Change(
        cause,
        "tools" if what == "tool" else "messages",
        f"{subject} {verb}{name}{detail}",
        (),
        None,
        within,
        value.seq,
        *_sides(before, after, within),
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
        return tuple(excerpt_pair(_at(before.value, pointer), _at(after.value, pointer)))  # type: ignore[return-value]
    return _brief(before), _brief(after)


def excerpt_pair(before: Json, after: Json) -> tuple[str | None, str | None]:
    """Two values in short, texts around the first character that differs."""
    # Imported here: the comparison pulls in a large package that most runs never need.
    from dsh_audit.text.value_diff import find_changes

    changes = find_changes(after, before, limit=1)
    if changes:
        return changes[0].replayed, changes[0].captured
    return _excerpt(before), _excerpt(after)


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
        return _excerpt(value.value)
    kinds = f"{', '.join(value.kinds)}; " if value.kinds else ""
    return f"{kinds}{value.size} bytes, sha256 {value.sha256[:12]}"


def speaker(value: PinnedValue) -> str:
    """Who wrote a message, where that says more than its role."""
    said = {"assistant/message": "the model's answer", "tool/result": "a tool's result"}.get(value.type or "")
    source = value.source if value.source not in (None, "model", "tool") else None
    texts = [text for text in (said, source and f"source {source}") if text]
    return f" ({', '.join(texts)})" if texts else ""


def shown(value: Json) -> str | None:
    """A setting in short; None where it is absent."""
    return None if value is None else _excerpt(value)


def _excerpt(value: Json) -> str:
    from dsh_audit.text.value_diff import excerpt

    return excerpt(value)
