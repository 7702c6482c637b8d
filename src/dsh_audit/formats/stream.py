"""Packed output chunks: chunk rows of formats 0 and 1, stream records of format 2 and later.

Both pack runs of deltas of one block. A chunk row stands for several ``assistant/chunk`` events; a stream is
a member of the settlement event. Source: spec session-log 4.2, 6; dsh-session 0.1.1-rc.2 (chunk rows),
dsh-llm of 0.2.1-rc.2 (stream).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TypeAlias

from dsh_audit.events import Event, Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import (
    MAX_SAFE_INTEGER,
    is_count,
    is_lossless,
    is_number,
    is_object,
    is_safe_integer,
    require_object,
)
from dsh_audit.record import dataclass

TimedChunk: TypeAlias = tuple[int, dict[str, Json]]
"""Time in ms and chunk."""

CHUNK_ROWS = frozenset({"text-chunks", "reasoning-chunks", "tool-call-chunks"})
MIN_RUN = 3
"""Shortest run that the writer packs into a chunk row."""

_DELTAS = {
    "text-delta": "text-chunks",
    "reasoning-delta": "reasoning-chunks",
    "tool-call-delta": "tool-call-chunks",
}
_DELTA_KEYS = {
    "text-chunks": [{"type", "index", "text"}],
    "reasoning-chunks": [{"type", "index", "text"}],
    "tool-call-chunks": [
        {"type", "index", "id", "argumentsDelta"},
        {"type", "index", "id", "name", "argumentsDelta"},
    ],
}


def _is_gap(value: Json) -> bool:
    # JavaScript's isSafeInteger takes −0 for one, and adding it changes nothing.
    return is_safe_integer(value) or (type(value) is float and value == 0.0)


def _members(run: dict[str, Json], kind: str, label: str) -> list[str]:
    key = "args" if kind == "tool-call-chunks" else "texts"
    members = run[key]
    if not isinstance(members, list) or set(map(type, members)) != {str}:
        raise FormatError(f"malformed {label}: {key} must be a non-empty string array")
    return members


def _times(time0: int, gaps: Json, count: int, label: str) -> list[int]:
    if not isinstance(gaps, list) or not all(map(_is_gap, gaps)):
        raise FormatError(f"malformed {label}: dt must be an array of safe integers")
    if len(gaps) != count - 1:
        raise FormatError(f"malformed {label}: dt length {len(gaps)} does not match {count} members")
    times = list(itertools.accumulate(map(int, gaps), initial=time0))
    if max(times) > MAX_SAFE_INTEGER or min(times) < -MAX_SAFE_INTEGER:
        raise FormatError(f"malformed {label}: member times must stay safe integers")
    return times


def _deltas(kind: str, run: dict[str, Json], members: list[str]) -> Iterator[dict[str, Json]]:
    index = run["index"]
    if kind != "tool-call-chunks":
        delta = "text-delta" if kind == "text-chunks" else "reasoning-delta"
        for text in members:
            yield {"type": delta, "index": index, "text": text}
        return
    head = {"type": "tool-call-delta", "index": index, "id": run["id"]}
    if "name" in run:
        head["name"] = run["name"]
    for fragment in members:
        yield {**head, "argumentsDelta": fragment}


def expand_chunk_row(row: dict[str, Json], *, line: int = 0) -> tuple[Event, ...]:
    """The ``assistant/chunk`` events of a packed row, with the released reader's checks.

    Raises:
        FormatError: the row is malformed; then none of its members count.
    """
    kind = row["type"]
    label = f"{kind} storage row"
    if row.keys() != {"type", "seq0", "time0", "data"}:
        raise FormatError(f"malformed {label}: envelope must be exactly type, seq0, time0, data")
    seq0, time0 = _whole(row["seq0"]), _whole(row["time0"])
    if not is_count(seq0):
        raise FormatError(f"malformed {label}: seq0 must be a non-negative safe integer")
    if not is_safe_integer(time0):
        raise FormatError(f"malformed {label}: time0 must be a safe integer")
    data = _check_run_data(kind, row["data"], label)
    members = _members(data, kind, label)
    times = _times(time0, data["dt"], len(members), label)
    if seq0 + len(members) - 1 > MAX_SAFE_INTEGER:
        raise FormatError(f"malformed {label}: member seqs must stay safe integers")
    turn, step = data["turn"], data["step"]
    deltas = zip(itertools.count(seq0), times, _deltas(kind, data, members), strict=False)
    return tuple(
        [
            Event("assistant/chunk", seq, time, {"turn": turn, "step": step, "chunk": chunk}, line=line)
            for seq, time, chunk in deltas
        ]
    )


def _whole(value: Json) -> Json:
    return 0 if type(value) is float and value == 0.0 else value


def _check_run_data(kind: str, value: Json, label: str) -> dict[str, Json]:
    if not is_object(value):
        raise FormatError(f"malformed {label}: data must be an object")
    payload = {"id", "args"} if kind == "tool-call-chunks" else {"texts"}
    exact = {"turn", "step", "index", "dt"} | payload
    named = kind == "tool-call-chunks" and "name" in value
    if value.keys() != (exact | {"name"} if named else exact):
        raise FormatError(f"malformed {label}: data has missing or unexpected members")
    if kind == "tool-call-chunks" and not (isinstance(value["id"], str) and isinstance(value.get("name", ""), str)):
        raise FormatError(f"malformed {label}: id (and name when present) must be strings")
    if not all(is_number(value[key]) for key in ("turn", "step", "index")):
        raise FormatError(f"malformed {label}: turn, step and index must be numbers")
    return value


# Packing into chunk rows


def _packable(event: Event) -> str | None:
    """Row type of an event that may join a run: its whole shape is the expected one; else None."""
    if event.type != "assistant/chunk" or event.ignorable or not is_count(event.seq):
        return None
    if event.surface_op is not None or event.source_event_seqs is not None or not is_safe_integer(event.time):
        return None
    data = event.data
    if not is_object(data) or data.keys() != {"turn", "step", "chunk"}:
        return None
    if not is_number(data["turn"]) or not is_number(data["step"]):
        return None
    chunk = data["chunk"]
    if not is_object(chunk) or not is_number(chunk.get("index")):
        return None
    tag = chunk.get("type")
    kind = _DELTAS.get(tag) if isinstance(tag, str) else None
    if kind is None or set(chunk) not in _DELTA_KEYS[kind]:
        return None
    texts = (value for key, value in chunk.items() if key not in ("type", "index"))
    return kind if all(isinstance(text, str) for text in texts) else None


def _joins(last: Event, event: Event) -> bool:
    gap = event.time - last.time
    if event.seq != last.seq + 1 or abs(gap) > MAX_SAFE_INTEGER:
        return False
    one, other = last.data, event.data
    if (one["turn"], one["step"]) != (other["turn"], other["step"]):
        return False
    return _same_block(one["chunk"], other["chunk"])


def _same_block(one: dict[str, Json], other: dict[str, Json]) -> bool:
    return all(one.get(key) == other.get(key) for key in ("type", "index", "id", "name"))


def _chunk_row(kind: str, run: list[Event]) -> dict[str, Json]:
    first = run[0]
    chunk = first.data["chunk"]
    gaps = [event.time - before.time for before, event in itertools.pairwise(run)]
    data = {
        "turn": first.data["turn"],
        "step": first.data["step"],
        "index": chunk["index"],
        "dt": gaps,
    }
    if kind == "tool-call-chunks":
        data["id"] = chunk["id"]
        if "name" in chunk:
            data["name"] = chunk["name"]
        data["args"] = [event.data["chunk"]["argumentsDelta"] for event in run]
    else:
        data["texts"] = [event.data["chunk"]["text"] for event in run]
    return {"type": kind, "seq0": first.seq, "time0": first.time, "data": data}


def pack_chunk_runs(events: Iterable[Event]) -> Iterator[Event | dict[str, Json]]:
    """Pack one append batch for storage: each run of three or more deltas of one block becomes a chunk row.

    Args:
        events: one batch in order of seq; a run never crosses a batch.

    Returns:
        Events that stay as they are, and chunk rows.
    """
    run: list[Event] = []
    kind: str | None = None
    for event in events:
        packable = _packable(event)
        if run and packable is not None and packable == kind and _joins(run[-1], event):
            run.append(event)
            continue
        yield from _flush(kind, run)
        run, kind = [], packable
        if packable is None:
            yield event
        else:
            run = [event]
    yield from _flush(kind, run)


def _flush(kind: str | None, run: list[Event]) -> Iterator[Event | dict[str, Json]]:
    if kind is not None and len(run) >= MIN_RUN:
        yield _chunk_row(kind, run)
    else:
        yield from run


# Stream records of format 2 and later


def expand_stream(stream: Json) -> Iterator[TimedChunk]:
    """The chunks of a settlement event's stream, with the time of each.

    Raises:
        FormatError: a record is malformed.
    """
    if not isinstance(stream, list):
        raise FormatError("stream must be an array")
    for each in stream:
        entry = require_object(each, "stream record")
        kind = entry.get("type")
        if kind == "chunk":
            yield _raw_chunk(entry)
            continue
        if not isinstance(kind, str) or kind not in CHUNK_ROWS:
            raise FormatError(f"unsupported stream record {kind!r}")
        yield from _expand_record(kind, entry)


def _raw_chunk(entry: dict[str, Json]) -> TimedChunk:
    if entry.keys() != {"type", "time", "chunk"}:
        raise FormatError("a chunk stream record must contain exactly type, time, chunk")
    if not is_safe_integer(_whole(entry["time"])):
        raise FormatError("a stream record's time must be a safe integer")
    if not is_object(entry["chunk"]) or not is_lossless(entry["chunk"]):
        raise FormatError("a raw stream chunk must be a lossless JSON object")
    return _whole(entry["time"]), entry["chunk"]


def _expand_record(kind: str, entry: dict[str, Json]) -> Iterator[TimedChunk]:
    label = f"{kind} stream record"
    tool = kind == "tool-call-chunks"
    exact = {"type", "time0", "index", "dt"} | ({"id", "args"} if tool else {"texts"})
    if entry.keys() != (exact | {"name"} if tool and "name" in entry else exact):
        raise FormatError(f"malformed {label}: missing or unexpected members")
    members = _members(entry, kind, label)
    if tool and not all(isinstance(entry.get(key, "-"), str) and entry.get(key, "-") for key in ("id", "name")):
        raise FormatError(f"malformed {label}: id and name must be non-empty strings")
    time0 = _whole(entry["time0"])
    if not is_safe_integer(time0) or not is_count(entry["index"]):
        raise FormatError(f"malformed {label}: time0 and index must be safe integers")
    times = _times(time0, entry["dt"], len(members), label)
    yield from zip(times, _deltas(kind, entry, members), strict=True)


@dataclass(slots=True)
class StreamPacker:
    """Packs the chunks of one attempt, one at a time, into stream records.

    Attributes:
        records: what has been packed so far; the last record may still grow.
    """

    records: list[dict[str, Json]] = field(default_factory=list)
    _last_time: int = 0

    def push(self, time: int, chunk: dict[str, Json]) -> None:
        """Add a chunk: it extends the last record where that is a run of the same block, else opens one.

        Raises:
            FormatError: no chunk that a stream can hold.
        """
        tag = chunk.get("type")
        kind = _DELTAS.get(tag) if isinstance(tag, str) else None
        _check_chunk(time, tag, kind, chunk)
        if kind is None or (kind == "tool-call-chunks" and "" in (chunk["id"], chunk.get("name"))):
            self.records.append({"type": "chunk", "time": time, "chunk": chunk})
            self._last_time = time
            return
        tool = kind == "tool-call-chunks"
        text = chunk["argumentsDelta" if tool else "text"]
        last = self.records[-1] if self.records else None
        gap = time - self._last_time
        if last is not None and _continues(last, kind, chunk) and abs(gap) <= MAX_SAFE_INTEGER:
            last["dt"].append(gap)
            last["args" if tool else "texts"].append(text)
        else:
            self.records.append(_open_record(kind, time, chunk, text))
        self._last_time = time


def _check_chunk(time: int, tag: Json, kind: str | None, chunk: dict[str, Json]) -> None:
    if not is_safe_integer(time) or not is_lossless(chunk):
        raise FormatError("a stream chunk must be lossless JSON at a safe integer time")
    if kind is None:
        if tag not in ("block-start", "block-end", "usage", "finish"):
            raise FormatError(f"unknown stream chunk type {tag!r}")
        return
    if not is_count(chunk.get("index")):
        raise FormatError(f"{tag} index must be a non-negative safe integer")
    texts = [chunk.get("text")]
    if kind == "tool-call-chunks":
        texts = [chunk.get("id"), chunk.get("name", ""), chunk.get("argumentsDelta")]
    if not all(isinstance(text, str) for text in texts):
        raise FormatError(f"{tag} has a text member that is no string")


def _continues(last: dict[str, Json], kind: str, chunk: dict[str, Json]) -> bool:
    if last["type"] != kind or last["index"] != chunk["index"]:
        return False
    # A delta of text may carry members that are dropped here, also one called name.
    if kind != "tool-call-chunks":
        return True
    return last["id"] == chunk["id"] and last.get("name") == chunk.get("name")


def _open_record(kind: str, time: int, chunk: dict[str, Json], text: str) -> dict[str, Json]:
    opened: dict[str, Json] = {"type": kind, "time0": time, "index": chunk["index"], "dt": []}
    if kind != "tool-call-chunks":
        opened["texts"] = [text]
        return opened
    opened["id"] = chunk["id"]
    if "name" in chunk:
        opened["name"] = chunk["name"]
    opened["args"] = [text]
    return opened


def pack_stream(chunks: Iterable[TimedChunk]) -> list[dict[str, Json]]:
    """Pack timed chunks into stream records; ``expand_stream`` gives them back."""
    packer = StreamPacker()
    for time, chunk in chunks:
        packer.push(time, chunk)
    return packer.records
