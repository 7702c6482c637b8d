"""One captured body against its replay: verdict, first difference with its log event, summary of values.

The verdict never claims more than the fidelity of the capture allows. Source: spec dispatch 8.6,
wire-deepseek 9.1, captures 3b.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar

from dsh_audit.capture.exchange import Fidelity
from dsh_audit.difference.requests import describe_body, diff_requests, places_of
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.pointer import (
    MalformedError,
    Member,
    common_start,
    join_pointer,
    locate,
    pointer_at,
    scan_members,
)
from dsh_audit.text.value_diff import MAX_CHANGES, ValueChange, first_key_order_difference
from dsh_audit.wire.body import Body
from dsh_audit.wire.parts import EXTENSION_KEYS

TEXT_NOTE = "verbatim text, compared as UTF-8"
WINDOW_BYTES = 60
MAX_PARSED_BYTES = 64 * 1024 * 1024
"""Larger bodies and extension fields are compared as bytes only."""

# fmt: off
ENVELOPE_FIELDS = frozenset({
    "model", "messages", "stream", "stream_options", "thinking", "reasoning_effort", "tools",
    "temperature", "max_tokens", "stop", "max_completion_tokens", "tool_choice", "parallel_tool_calls",
    "top_p", "top_k", "response_format", "seed", "n", "user", "metadata", "frequency_penalty",
    "presence_penalty", "logprobs", "top_logprobs", "logit_bias", "system", "output_config",
    "stop_sequences", "input", "instructions", "include", "reasoning", "text", "store",
    "prompt_cache_key", "prompt_cache_retention", "max_output_tokens", "prompt_cache_options",
    "service_tier", "previous_response_id", "truncation", "cache_control", "enable_thinking"
})
# fmt: on
"""Names that belong to a base body: one of them behind the replayed members is a difference, no extension."""


class Verdict(StrEnum):
    """What became of a captured request or, for the last, of a dispatch."""

    IDENTICAL = "identical"
    IDENTICAL_EXCEPT_UNLOGGED = "identical-except-unlogged"
    SAME_JSON = "same-json"
    DIFFERENT = "different"
    UNEXPLAINED = "unexplained"
    OTHER = "other"
    NOT_CAPTURED = "not-captured"


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first place where the sides differ.

    Args:
        offset: in the captured body.
        pointer: JSON pointer of the captured value there.
        seq: the log event whose bytes stand there in the replay; None for fixed text and past the end.
        captured: text around it, up to ``WINDOW_BYTES`` on either side.
        replayed: the same of the replay.
        replayed_offset: in the replayed body; differs from ``offset`` only for parsed captures.
    """

    offset: int
    pointer: str
    seq: int | None
    captured: str
    replayed: str
    replayed_offset: int

    JSON: ClassVar = "offset pointer seq captured replayed"


@dataclass(frozen=True, slots=True)
class UnloggedField:
    """Something in a captured body that the log cannot explain: a top-level member after the base body, or a file id.

    Args:
        offset: of the first byte of its name in the captured body; of a file id that of its value.
        size: bytes from there to the end of its value.
        pointer: of a file id.
    """

    name: str
    offset: int
    size: int
    pointer: str | None = None

    JSON: ClassVar = "name offset size pointer?"


@dataclass(frozen=True, slots=True)
class BodyDiff:
    """The comparison of one captured body with its replay.

    Args:
        verdict: one of the first four.
        first_difference: None when the bytes agree as far as they are claimed.
        unlogged: fields left out of the comparison.
        changes: differing values, empty when the values are the same or cannot be parsed.
        notes: what limits or explains the verdict, one line each.
        is_prefix: the captured part agrees with the replay and ends inside it.
    """

    verdict: Verdict
    first_difference: FirstDifference | None = None
    unlogged: tuple[UnloggedField, ...] = ()
    changes: tuple[ValueChange, ...] = ()
    notes: tuple[str, ...] = ()
    is_prefix: bool = False


def diff_body(captured: bytes, replayed: Body, fidelity: Fidelity = Fidelity.RAW) -> BodyDiff:
    """Compare a captured body with its replay.

    Args:
        captured: as ``Exchange.read_body`` gives it.
        replayed: the base body, with those extension fields that could be rebuilt.
        fidelity: of the capture; JSON gives at most ``same-json``, PARTIAL never ``identical``.
    """
    if fidelity is Fidelity.JSON:
        return _diff_parsed(captured, replayed)
    at, size = common_prefix(captured, replayed), replayed.size_bytes
    if fidelity is Fidelity.PARTIAL:
        return _diff_partial(captured, replayed, at)
    notes: tuple[str, ...] = (TEXT_NOTE,) if fidelity is Fidelity.TEXT else ()
    if at == size == len(captured):
        return BodyDiff(Verdict.IDENTICAL, notes=notes)
    if at == size - 1 and captured[at : at + 1] == b",":
        unlogged, problem = _read_tail(captured[at:], at, replayed)
        if unlogged:
            return _except_unlogged(unlogged, notes)
        notes = (*notes, problem)
    return _diff_bytes(captured, replayed, at, notes)


def diff_rest(
    rest: bytes, at: int, base: Body, fields: frozenset[str], fidelity: Fidelity = Fidelity.RAW
) -> BodyDiff | None:
    """Compare a captured body that is known to start with its replay by what follows the replay's last member.

    Args:
        rest: from there on, the captured closing brace included.
        at: where it starts in the captured body.
        base: the base body of the replay.
        fields: extension fields that the replay has behind it.

    Returns:
        None when what follows is no list of extension fields, so that the whole body has to be looked at.
    """
    notes: tuple[str, ...] = (TEXT_NOTE,) if fidelity is Fidelity.TEXT else ()
    if rest == b"}":
        return BodyDiff(Verdict.IDENTICAL, notes=notes)
    unlogged, _problem = _read_tail(rest, at, base, fields) if rest[:1] == b"," else ((), "")
    return _except_unlogged(unlogged, notes) if unlogged else None


def _except_unlogged(unlogged: tuple[UnloggedField, ...], notes: tuple[str, ...]) -> BodyDiff:
    large = [field.name for field in unlogged if field.size > MAX_PARSED_BYTES]
    notes += tuple(f"{name} is too large to be parsed" for name in large)
    return BodyDiff(Verdict.IDENTICAL_EXCEPT_UNLOGGED, unlogged=unlogged, notes=notes)


def common_prefix(captured: bytes, replayed: Body) -> int:
    """How many bytes at the start are the same."""
    at = 0
    for part in replayed.parts():
        if not captured.startswith(part.data, at):
            return at + common_start(captured[at : at + len(part.data)], part.data)
        at += len(part.data)
    return at


def _read_tail(
    rest: bytes, at: int, replayed: Body, fields: frozenset[str] = frozenset()
) -> tuple[tuple[UnloggedField, ...], str]:
    """The fields after the base body; empty, with the reason, when they are no extension fields."""
    try:
        members = list(scan_members(rest, 0))
        for member in members:
            _check_value(rest, member)
    except MalformedError as error:
        return (), f"what follows the base body is malformed at byte {at + error.at}"
    taken = ENVELOPE_FIELDS | fields
    for member in members:
        if member.name in taken or _is_base_member(replayed, member.name):
            return (), f"what follows the base body holds {member.name!r}, which is no extension field"
        taken |= {member.name}
    return tuple(_unlogged(member, at) for member in members), ""


def _check_value(data: bytes, member: Member) -> None:
    if member.end - member.value_start > MAX_PARSED_BYTES:
        return
    try:
        ecma.parse(data[member.value_start : member.end])
    except ecma.EcmaSyntaxError as error:
        raise MalformedError(member.value_start + error.at) from None


def _is_base_member(replayed: Body, name: str) -> bool:
    base = replayed.to_bytes()
    if ecma.stringify(name) + b":" not in base:
        return False
    return any(member.name == name for member in scan_members(base, 1))


def _unlogged(member: Member, at: int = 0) -> UnloggedField:
    return UnloggedField(member.name, at + member.start, member.end - member.start)


def _diff_bytes(captured: bytes, replayed: Body, at: int, notes: tuple[str, ...]) -> BodyDiff:
    base = replayed.to_bytes()
    first = _first_difference(captured, replayed, base, at, at)
    values = _compare_values(captured, base)
    if not values.is_same:
        return BodyDiff(Verdict.DIFFERENT, first, changes=values.changes, notes=(*notes, *values.notes))
    if values.unlogged and _without_tail_members(captured, values.unlogged) == base:
        return BodyDiff(Verdict.IDENTICAL_EXCEPT_UNLOGGED, unlogged=values.unlogged, notes=notes)
    return BodyDiff(Verdict.SAME_JSON, first, values.unlogged, notes=(*notes, *values.notes))


def _without_tail_members(captured: bytes, fields: tuple[UnloggedField, ...]) -> bytes | None:
    """The captured bytes without extension fields that stand among others at the end; None when they do not."""
    names = [member.name for member in scan_members(captured, captured.index(b"{") + 1)]
    tail = names[names.index(fields[0].name) :]
    if len(set(tail)) != len(tail) or not set(tail).issubset(EXTENSION_KEYS):
        return None
    for field in reversed(fields):
        captured = captured[: field.offset - 1] + captured[field.offset + field.size :]
    return captured


def _diff_partial(captured: bytes, replayed: Body, at: int) -> BodyDiff:
    base = replayed.to_bytes()
    is_whole = at == len(captured) == len(base)
    first = None if is_whole else _first_difference(captured, replayed, base, at, at)
    values = _compare_values(captured, base)
    if values.is_same:
        note = "the capture does not prove that this is what was sent"
        return BodyDiff(Verdict.SAME_JSON, first, values.unlogged, notes=(note, *values.notes))
    is_prefix = at == len(captured) < len(base)
    note = "the capture is partial"
    if is_prefix:
        note = f"the capture is cut: its {at} bytes agree with the replay"
    changes = () if is_prefix else values.changes
    return BodyDiff(Verdict.DIFFERENT, first, changes=changes, notes=(note,), is_prefix=is_prefix)


def _diff_parsed(captured: bytes, replayed: Body) -> BodyDiff:
    note = "captured as parsed JSON: not byte-comparable; offsets are in its text as JavaScript prints it"
    base = replayed.to_bytes()
    values = _compare_values(captured, base)
    result = BodyDiff(Verdict.SAME_JSON, None, values.unlogged, notes=(note, *values.notes))
    if values.is_same:
        return result
    path = values.changes[0].path if values.changes else ()
    first = _first_difference(captured, replayed, base, _near(captured, path), _near(base, path))
    return replace(result, verdict=Verdict.DIFFERENT, first_difference=first, changes=values.changes)


def _near(data: bytes, path: tuple[str | int, ...]) -> int:
    """The offset of the value at a path, or of the container that lacks it."""
    at = locate(data, path)
    return at if at is not None else locate(data, path[:-1]) or 0


def _first_difference(captured: bytes, replayed: Body, base: bytes, at: int, replayed_at: int) -> FirstDifference:
    return FirstDifference(
        offset=at,
        pointer=pointer_at(captured, at),
        seq=replayed.seq_at(replayed_at) if replayed_at < len(base) else None,
        captured=window(captured, at),
        replayed=window(base, replayed_at),
        replayed_offset=replayed_at,
    )


def window(data: bytes, at: int) -> str:
    """Text around an offset, cut at whole characters where it is UTF-8."""
    start, end = max(0, at - WINDOW_BYTES), min(len(data), at + WINDOW_BYTES)
    while start < at and data[start] & 0xC0 == 0x80:
        start += 1
    while at < end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[start:end].decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _Values:
    is_same: bool
    notes: tuple[str, ...]
    unlogged: tuple[UnloggedField, ...] = ()
    changes: tuple[ValueChange, ...] = ()


def _compare_values(captured: bytes, base: bytes) -> _Values:
    """Compare the JSON values; extension fields that only the capture has are set aside."""
    if len(captured) > MAX_PARSED_BYTES:
        return _Values(False, ("too large to compare values",))
    try:
        left = ecma.parse(captured)
    except ecma.EcmaSyntaxError as error:
        return _Values(False, (f"the captured body is not JSON at byte {error.at}",))
    right, whole = ecma.parse(base), left
    extra: tuple[str, ...] = ()
    if isinstance(left, dict) and isinstance(right, dict):
        extra = tuple(name for name in EXTENSION_KEYS if name in left and name not in right)
        left = {name: value for name, value in left.items() if name not in extra}
    if not ecma.same_json(left, right):
        return _Values(False, (), changes=_changes(left, right))
    path = first_key_order_difference(left, right)
    note = "only white space, escapes or the spelling of numbers differ"
    if path is not None:
        note = f"key order differs, first in the object at {join_pointer(path) or 'the top'}"
    unlogged = tuple(map(_unlogged, _members_named(captured, extra)))
    if extra:
        note = f"besides {', '.join(extra)}, {note}"
    is_printed_alike = path is None and ecma.stringify(whole) == captured
    return _Values(True, () if is_printed_alike else (note,), unlogged)


def _changes(captured: Json, replayed: Json) -> tuple[ValueChange, ...]:
    """The first places that differ, in the order of the captured members."""
    found = list(places_of(diff_requests(describe_body(replayed), describe_body(captured))))
    order = {name: index for index, name in enumerate(captured)} if isinstance(captured, dict) else {}
    found.sort(key=lambda place: order.get(str(place.path[0]), len(order)) if place.path else 0)
    return tuple(found[:MAX_CHANGES])


def _members_named(data: bytes, names: tuple[str, ...]) -> Iterator[Member]:
    if names:
        yield from (m for m in scan_members(data, data.index(b"{") + 1) if m.name in names)
