"""One request against another, part by part: the only comparison of requests, and the only words for what it finds.

A request is a list of items: settings, tools, system texts, messages in order, extension fields. Where they come from
does not matter: a rebuilt body, a captured one, the request as logged, or a golden case that kept digests only. Tools
and settings are paired by name, texts and messages by what they say and then by who says it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal, TypeAlias

from dsh_audit.difference.sequences import diff_keys
from dsh_audit.events import Json, as_list, as_object
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.alignment import longest_increasing
from dsh_audit.text.pointer import join_pointer
from dsh_audit.text.value_diff import ValueChange, excerpt, find_changes, first_key_order_difference, shorten
from dsh_audit.wire.parts import EXTENSION_KEYS, Part

Kind = Literal["setting", "tool", "system", "message", "tail"]
ChangeKind = Literal["added", "removed", "changed", "moved", "respelled"]
"""``respelled``: the same value, printed in another way."""
Path: TypeAlias = tuple[str | int, ...]

KINDS: tuple[Kind, ...] = ("tool", "system", "message", "setting", "tail")
"""In the order in which a provider caches them; the last two are no part of the prompt."""

MARKER = "cache_control"
"""Markers of what to cache: the model does not see them, so that they count as settings."""

_MAX_DEEP = 50
"""Changed messages of one comparison that are looked into; the others are told as a whole."""

_ROUTE = ("provider", "model", "protocol")
_SETTINGS = {
    "max_tokens": "maxTokens",
    "max_completion_tokens": "maxTokens",
    "max_output_tokens": "maxTokens",
    "reasoning_effort": "reasoningEffort",
    "reasoning": "reasoningEffort",
    "thinking": "reasoningEffort",
    "output_config": "reasoningEffort",
    "stop_sequences": "stop",
}
"""Members of bodies by the setting that they print."""

_WHAT = {
    ("tool", "added"): "tool-added",
    ("tool", "removed"): "tool-removed",
    ("tool", "moved"): "tools-reordered",
    ("tool", "changed"): "tool-redefined",
    ("prompt", "changed"): "prompt-edited",
    ("message", "added"): "message-inserted",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One named part of a request.

    Args:
        name: of a setting or tool; who speaks a message (``user``, ``assistant``, ``tool``, ``system``, ``developer``).
        key: equal where the same is said.
        load: gives the value; None where only the key is known.
        path: names and indices that lead to it in the body, or in the request as logged.
        seq: the log event it comes from.
    """

    kind: Kind
    name: str
    key: Hashable
    load: Callable[[], Json] | None = field(default=None, compare=False, repr=False)
    path: Path = ()
    seq: int | None = None

    @property
    def value(self) -> Json:
        """None where it is not known."""
        return None if self.load is None else self.load()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Args:
        names: of the settings or tools, the speaker of a message; several for tools in another order.
        before, after: either side; None where it is absent.
        places: where inside it the values differ, with paths in the later request (in the earlier one for what only
            that has) and ``captured`` for the later side; empty where the values are not known.
        cause: why, see causes.py; empty where nobody asked.
    """

    part: Kind
    kind: ChangeKind
    names: tuple[str, ...]
    before: Item | None = None
    after: Item | None = None
    places: tuple[ValueChange, ...] = ()
    cause: str = ""

    @property
    def what(self) -> str:
        """What was done, in one word for machines."""
        kind = "changed" if self.kind == "respelled" else self.kind
        name = self.names[0] if self.names else ""
        if self.part == "setting":
            return "route-changed" if name in _ROUTE else "setting-changed"
        if self.part == "tail":
            return "extension-changed"
        is_prompt = self.part == "system" or (self.part, name) == ("message", "system")
        subject = "prompt" if is_prompt else self.part
        return _WHAT.get((subject, kind), f"{subject}-{kind}")

    @property
    def words(self) -> str:
        """What was done to what, the same in every report: ``tool added: weather``."""
        subject, verb = self.what.split("-")
        names = ", ".join(self.names)
        if self.part == "tool":
            return f"{subject} {verb}: {names}"
        if subject == "prompt":
            return f"system prompt {verb}"
        return f"{names} message {verb}" if subject == "message" else f"{names} {verb}"

    @property
    def path(self) -> Path:
        """The first place that differs, in the later request; in the earlier one for what only that has."""
        if self.places:
            return self.places[0].path
        item = self.after or self.before
        return item.path if item is not None else ()

    @property
    def pointer(self) -> str:
        """``path`` as a JSON pointer."""
        return join_pointer(self.path)

    @property
    def seq(self) -> int | None:
        """The event that brought it; of the earlier log for what only that has."""
        item = self.after or self.before
        return item.seq if item is not None else None


def diff_requests(before: Iterable[Item], after: Iterable[Item]) -> list[Change]:
    """Everything that differs, in the order of ``KINDS``.

    What only follows from another change is not told again: the message that announces a tool, and cache markers, which
    stand on whatever comes last.
    """
    sides: tuple[dict[Kind, list[Item]], ...] = tuple({kind: [] for kind in KINDS} for _ in range(2))
    for side, items in zip(sides, (before, after), strict=True):
        for item in items:
            side[item.kind].append(item)
    found: list[Change] = []
    for kind in KINDS:
        old, new = (side[kind] for side in sides)
        found += diff_texts(old, new) if kind in ("system", "message") else diff_named(old, new)
    told = list(without_echoes(found))
    return [change for change in told if change.names != (MARKER,)] or told


def places_of(changes: Iterable[Change]) -> Iterator[ValueChange]:
    """Each place that differs, with the words for it; what is only printed in another way has none."""
    for change in changes:
        yield from (replace(place, what=change.words) for place in change.places)


def without_echoes(changes: Iterable[Change]) -> Iterator[Change]:
    """The changes without the messages that announce a tool which was added or removed."""
    listed = list(changes)
    is_told = any(change.part == "tool" and change.kind in ("added", "removed") for change in listed)
    for change in listed:
        if not (is_told and change.part == "message" and change.names == ("developer",)):
            yield change


def diff_named(before: Sequence[Item], after: Sequence[Item]) -> Iterator[Change]:
    """Differences of settings or tools, paired by name; one change for all that stand in another order."""
    old, new = _keyed(before), _keyed(after)
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            yield _one_sided(old[key], "removed")
        elif key not in old:
            yield _one_sided(new[key], "added")
        elif (change := _changed(old[key], new[key])) is not None:
            yield change
    if after and after[0].kind == "tool":
        places = {key: place for place, key in enumerate(old)}
        stayed = [key for key in new if key in places]
        kept = {index for index, _ in longest_increasing([(i, places[key]) for i, key in enumerate(stayed)])}
        moved = [key for index, key in enumerate(stayed) if index not in kept]
        if moved:
            was = [key for key in old if key in new]
            first = new[next(key for key, other in zip(stayed, was, strict=True) if key != other)]
            orders = (shorten(", ".join(item.name for item in side)) for side in (after, before))
            place = ValueChange("changed", first.path, *orders)
            yield Change("tool", "moved", tuple(new[key].name for key in moved), None, first, (place,))


def _keyed(items: Sequence[Item]) -> dict[tuple[Hashable, int], Item]:
    """Tools by name and how many of that name stand before, settings by the member that holds them."""
    keyed: dict[tuple[Hashable, int], Item] = {}
    counts: Counter[Hashable] = Counter()
    for item in items:
        name = item.name if item.kind == "tool" else item.path or item.name
        keyed[name, counts[name]] = item
        counts[name] += 1
    return keyed


def diff_texts(before: Sequence[Item], after: Sequence[Item]) -> Iterator[Change]:
    """Differences of two lists of messages or system texts, in order of place."""
    keys = [item.key for item in before], [item.key for item in after]
    for number, edit in enumerate(diff_keys(*keys, lambda i, j: before[i].name == after[j].name)):
        old = None if edit.left is None else before[edit.left]
        new = None if edit.right is None else after[edit.right]
        if old is not None and new is not None:
            change = _moved(old, new) if edit.kind == "moved" else _changed(old, new, is_deep=number < _MAX_DEEP)
            if change is not None:
                yield change
        elif old is not None:
            yield _one_sided(old, "removed")
        elif new is not None:
            yield _one_sided(new, "added")


def _moved(old: Item, new: Item) -> Change:
    place = ValueChange("changed", new.path, *(f"at {join_pointer(item.path)}" for item in (new, old)))
    return Change(new.kind, "moved", (new.name,), old, new, (place,))


def _one_sided(item: Item, kind: Literal["added", "removed"]) -> Change:
    before, after = (None, item) if kind == "added" else (item, None)
    places: tuple[ValueChange, ...] = ()
    if item.load is not None:
        text = excerpt(item.load())
        sides = (text, None) if kind == "added" else (None, text)
        places = (ValueChange("only-captured" if kind == "added" else "only-replayed", item.path, *sides),)
    return Change(item.kind, kind, (item.name,), before, after, places)


def _changed(old: Item, new: Item, *, is_deep: bool = True) -> Change | None:
    if old.key == new.key:
        return None
    change = Change(new.kind, "changed", (new.name,), old, new)
    if old.load is None or new.load is None:
        return change
    left, right = new.load(), old.load()
    if ecma.same_json(left, right):
        at = first_key_order_difference(left, right)
        return replace(change, kind="respelled", after=new if at is None else replace(new, path=(*new.path, *at)))
    if not is_deep:
        return replace(change, places=(ValueChange("changed", new.path, excerpt(left), excerpt(right)),))
    found = find_changes(left, right)
    places = tuple(replace(place, path=(*new.path, *place.path)) for place in found)
    return _of_blocks(replace(change, places=places), right, left)


def _of_blocks(change: Change, old: Json, new: Json) -> Change:
    """A change inside a turn that several messages share: what was done to the one that it concerns."""
    if change.part != "message" or change.after is None:
        return change
    depth = len(change.after.path)
    inner = [place.path[depth:] for place in change.places]
    if not all(len(path) > 1 and path[0] == "content" and isinstance(path[1], int) for path in inner):
        return change
    kinds = {place.kind for place, path in zip(change.places, inner, strict=True) if len(path) == 2}
    sides = (old, new) if kinds == {"only-replayed"} else (new, old)
    speakers = {who for path in inner if (who := _speaker_of_block(sides[0], path[1])) is not None}
    if len(speakers) == 1:
        change = replace(change, names=(min(speakers),))
    if change.names[0] != "assistant" and len(kinds) == 1 and all(len(path) == 2 for path in inner):
        kind: ChangeKind = {"only-captured": "added", "only-replayed": "removed"}.get(kinds.pop(), "changed")  # type: ignore[assignment]
        return replace(change, kind=kind)
    return change


def _speaker_of_block(message: Json, index: str | int) -> str | None:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list) or not isinstance(index, int) or index >= len(content):
        return None
    return speaker({"role": message.get("role"), "content": [content[index]]})


def speaker(message: Json) -> str:
    """Who speaks a message, logged or on the wire, whatever its protocol calls him."""
    if not isinstance(message, Mapping):
        return ""
    role, content = message.get("role"), as_list(message.get("content"))
    types = {str(as_object(block).get("type")).replace("_", "-") for block in content}
    if (role == "user" and types == {"tool-result"}) or message.get("type") == "function_call_output":
        return "tool"
    if role in ("system", "developer"):
        return "developer" if types & {"tool-addition", "tool-removal"} else "system"
    return role if isinstance(role, str) else "assistant"


def describe_body(body: Json) -> Iterator[Item]:
    """The items of a body of any protocol; cache markers apart from what they stand on."""
    for item in _described(body):
        if item.kind not in ("tool", "system", "message") or f'"{MARKER}":'.encode() not in item.key:  # type: ignore[operator]
            yield item
            continue
        markers: list[tuple[Path, Json]] = []
        plain = _unmarked(item.value, item.path, markers)
        yield value_item(item.kind, item.name, plain, item.path)
        yield from (value_item("setting", MARKER, value, (*path, MARKER)) for path, value in markers)


def _unmarked(value: Json, path: Path, markers: list[tuple[Path, Json]]) -> Json:
    """A tool, message or list of blocks without its markers; one text block for a marker's sake is that text."""
    if isinstance(value, list):
        return [_unmarked(block, (*path, index), markers) for index, block in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    found = len(markers)
    if MARKER in value:
        markers.append((path, value[MARKER]))
    plain = {name: item for name, item in value.items() if name != MARKER}
    if isinstance(content := plain.get("content"), list):
        plain["content"] = _unmarked(content, (*path, "content"), markers)
        only = plain["content"][0] if len(content) == 1 else None
        if len(markers) > found and isinstance(only, Mapping) and only.keys() == {"type", "text"}:
            plain["content"] = only["text"]
    return plain


def _described(body: Json) -> Iterator[Item]:
    if not isinstance(body, Mapping):
        yield value_item("setting", "", body, ())
        return
    for name, value in body.items():
        if name in EXTENSION_KEYS:
            yield value_item("tail", name, value, (name,))
        elif name == "tools" and isinstance(value, list):
            for index, tool in enumerate(value):
                yield value_item("tool", tool_name(tool), tool, (name, index))
        elif name in ("messages", "input") and isinstance(value, list):
            yield from describe_messages(value, name)
        elif name in ("system", "instructions"):
            yield value_item("system", "system", value, (name,))
        else:
            yield value_item("setting", _SETTINGS.get(name, str(name)), value, (name,))


def describe_messages(messages: Sequence[Json], name: str = "messages") -> Iterator[Item]:
    """The items of a list of messages; system texts that lead it are the prompt."""
    is_leading = True
    for index, message in enumerate(messages):
        who = speaker(message)
        is_leading = is_leading and who == "system"
        yield value_item("system" if is_leading else "message", who, message, (name, index))


def value_item(kind: Kind, name: str, value: Json, path: Path = (), seq: int | None = None) -> Item:
    """An item that is one JSON value."""
    return Item(kind, name, ecma.stringify(value), partial(_given, value), path, seq)


def _given(value: Json) -> Json:
    return value


def part_item(part: Part) -> Item:
    """One message of a body."""
    try:
        value = ecma.parse(part.value)
    except ecma.EcmaSyntaxError:  # a mark, or a capture that is no JSON from here on
        value = None
    return value_item("message", speaker(value), value, part.path, part.seqs[0])


def tool_name(tool: Json) -> str:
    """The name of a tool definition, in whatever envelope."""
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    return str(inner.get("name", "")) if isinstance(inner, Mapping) else ""
