"""What a single event must satisfy to join the surface, by format version; no state but what is passed in.

Source: dsh-session, surface, releases 0.1.0-rc.8 and 0.1.1-rc.2 (v0), 0.1.5-rc.1 (v3), 0.2.1-rc.2 (v4); spec
session-log 3.2, 6 (v2), 7, 8. Order of the checks is upstream's: it decides which reason is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from dsh_audit.events import SURFACE_TYPES, SURFACE_TYPES_V3, SURFACE_TYPES_V4, Event, Json, SurfaceOp
from dsh_audit.projection.equality import same_value
from dsh_audit.projection.rejection import ProjectionError, Rejection

_MAX_SAFE = 2**53 - 1
_TOOL_CHANGES = ("tool-addition", "tool-removal")


def surface_types(version: int) -> frozenset[str]:
    """Event types that form the surface of a format version."""
    if version >= 4:
        return SURFACE_TYPES_V4
    return SURFACE_TYPES_V3 if version == 3 else SURFACE_TYPES


def refuse(event: Event, rejection: Rejection, reason: str) -> NoReturn:
    """Raise the ProjectionError of one event."""
    raise ProjectionError(rejection, reason, event.seq)


def message_of(event: Event) -> dict[str, Json]:
    """The message a surface event carries, as logged.

    Raises:
        ProjectionError: the payload has no message with a content list.
    """
    data = event.data
    message = data.get("message") if event.type != "user/message" and isinstance(data, dict) else data
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        refuse(event, Rejection.MALFORMED, f"{event.type} has no message with a content list")
    return message


def check_log_only(event: Event, version: int) -> None:
    """An event off the surface carries no surface fields (v3 and later: unless it may be ignored)."""
    if event.surface_op is None and event.source_event_seqs is None:
        return
    if version >= 3 and event.ignorable:
        return
    if event.surface_op is not None:
        refuse(event, Rejection.OP_ON_LOG_ONLY, f"{event.type} has a surfaceOp but is no surface event")
    refuse(event, Rejection.SOURCES_ON_LOG_ONLY, f"{event.type} has sourceEventSeqs but is no surface event")


def check_op(event: Event, version: int) -> SurfaceOp:
    """The surface operation of a surface event, valid by itself."""
    op = event.surface_op
    if op is None:
        refuse(event, Rejection.OP_MISSING, f"{event.type} is a surface event without surfaceOp")
    if op.op == "append":
        return op
    if op.op != "replace" or not (_is_seq(op.start) and _is_seq(op.end)):
        refuse(event, Rejection.OP_INVALID, f"{event.type} has an invalid surfaceOp")
    assert op.start is not None and op.end is not None
    if version >= 3 and max(op.start, op.end) >= event.seq:
        reason = f"replacement of {op.start} to {op.end} names an event that is not earlier"
        refuse(event, Rejection.ENDPOINT_NOT_EARLIER, reason)
    return op


def check_sources(event: Event, version: int) -> None:
    """``sourceEventSeqs``, if present, names earlier events, each once; where it may be (empty) varies."""
    sources = event.source_event_seqs
    if sources is None:
        return
    is_assistant = event.type == "assistant/message"
    if version >= 2 and is_assistant:
        refuse(event, Rejection.SOURCES_ON_ASSISTANT, "assistant/message has sourceEventSeqs")
    if not sources:
        if is_assistant:
            return
        refuse(event, Rejection.SOURCES_EMPTY, "sourceEventSeqs is empty")
    if not all(map(_is_seq, sources)):
        refuse(event, Rejection.SOURCE_INVALID, "sourceEventSeqs holds something that is not a seq")
    if len(set(sources)) != len(sources):
        refuse(event, Rejection.SOURCE_DUPLICATE, "sourceEventSeqs holds a seq twice")
    if max(sources) >= event.seq:
        later = next(seq for seq in sources if seq >= event.seq)
        refuse(event, Rejection.SOURCE_NOT_EARLIER, f"sourceEventSeqs names seq {later}, not an earlier one")


def find_range(event: Event, op: SurfaceOp, positions: Mapping[int, int]) -> tuple[int, int]:
    """First and last position of the replaced range, inclusive.

    Args:
        positions: seq of each node → its position in the surface.
    """
    if op.start is None or op.start not in positions:
        refuse(event, Rejection.START_NOT_FOUND, f"replacement starts at seq {op.start}, not on the surface")
    if op.end is None or op.end not in positions:
        refuse(event, Rejection.END_NOT_FOUND, f"replacement ends at seq {op.end}, not on the surface")
    first, last = positions[op.start], positions[op.end]
    if first > last:
        reason = f"replacement starts at seq {op.start} (node {first}), after its end {op.end} (node {last})"
        refuse(event, Rejection.RANGE_REVERSED, reason)
    return first, last


def check_replacement(event: Event, first: int, shadowed: Sequence[Event], head: Event, version: int) -> None:
    """What a replacement may put in the place of a range.

    Args:
        first: position of the range's first node.
        shadowed: the nodes of the range, in order.
        head: node 0 of the surface.
    """
    cited = set(event.source_event_seqs or ())
    missing = [node.seq for node in shadowed if node.seq not in cited]
    if missing:
        reason = f"sourceEventSeqs lacks {len(missing)} of the replaced nodes, first seq {missing[0]}"
        refuse(event, Rejection.SHADOWED_NOT_CITED, reason)
    if event.type == "tool/result":
        _check_rewrite(event, shadowed, version)
    is_guarded = first == 0 and head.type == "system/message"
    if is_guarded and (event.type != "system/message" or len(shadowed) != 1):
        reason = "only a system/message over exactly node 0 may replace the system prompt"
        refuse(event, Rejection.SYSTEM_HEAD, reason)


def _check_rewrite(event: Event, shadowed: Sequence[Event], version: int) -> None:
    if len(shadowed) != 1:
        refuse(event, Rejection.REWRITE_NOT_ONE, f"a tool/result replaces {len(shadowed)} nodes, not one")
    original = shadowed[0]
    if original.type != "tool/result":
        reason = f"a tool/result replaces seq {original.seq}, which is {original.type}"
        refuse(event, Rejection.REWRITE_NOT_TOOL_RESULT, reason)
    if not same_value(_without_content(original, version), _without_content(event, version)):
        reason = f"a tool/result changes more of seq {original.seq} than its content"
        refuse(event, Rejection.REWRITE_CHANGES_MORE, reason)


def _without_content(event: Event, version: int) -> Json:
    message = message_of(event)
    if version >= 4:
        return {**event.data, "message": {**message, "content": None}}
    first = message["content"][0] if message["content"] else {}
    block = {**first, "content": None} if isinstance(first, dict) else {"content": None}
    return {**event.data, "message": {**message, "content": [block]}}


def check_developer(event: Event, headers: Mapping[int, Event]) -> None:
    """A developer message (v4): its tool changes, and the request header that defines the added tools.

    Args:
        headers: every earlier ``request/header`` by seq.

    Source: dsh-session 0.2.1-rc.2, surface; spec session-log 8.
    """
    message = message_of(event)
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    changes = [block for block in blocks if block.get("type") in _TOOL_CHANGES]
    added = [block for block in changes if block["type"] == "tool-addition"]
    if message.get("role") != "developer":
        refuse(event, Rejection.DEVELOPER_MALFORMED, "the message of a developer/message has another role")
    if not all(isinstance(block.get("toolName"), str) and block["toolName"] for block in changes):
        refuse(event, Rejection.DEVELOPER_MALFORMED, "a tool change names no tool")
    if any("tool" in block for block in added):
        refuse(event, Rejection.DEVELOPER_MALFORMED, "a tool addition holds a definition of its own")
    header_seq = event.data.get("headerSeq")
    if not (_is_seq(header_seq) if added else "headerSeq" not in event.data):
        refuse(event, Rejection.DEVELOPER_MALFORMED, "headerSeq must be there exactly when tools are added")
    if not added:
        return
    header = headers.get(header_seq)
    if header is None:
        refuse(event, Rejection.DEVELOPER_HEADER, f"headerSeq {header_seq} is no earlier request/header")
    for block in added:
        _check_definition(event, header, block["toolName"])


def _check_definition(event: Event, header: Event, name: str) -> None:
    tools = header.data["header"].get("tools") or []
    found = [tool for tool in tools if isinstance(tool, dict) and tool.get("name") == name]
    if len(found) != 1:
        reason = f"added tool {name!r} is defined {len(found)} times in the request header {header.seq}"
        refuse(event, Rejection.DEVELOPER_TOOL, reason)
    tool = found[0]
    if not isinstance(tool.get("description"), str) or not isinstance(tool.get("parameters"), dict):
        refuse(event, Rejection.DEVELOPER_TOOL, f"added tool {name!r} is not completely defined")
    if tool.get("deferLoading", True) is not True:
        refuse(event, Rejection.DEVELOPER_TOOL, f"added tool {name!r} has a deferLoading that is not true")


def _is_seq(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_SAFE
