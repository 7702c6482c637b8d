"""Random session events for the projection tests, as the raw objects that both runtimes can fold."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dsh_audit.events import APPEND, Event, SurfaceOp

Raw = dict[str, Any]

_APPENDS = ("user/message", "assistant/message", "tool/result")
_VALID = (
    *("append",) * 8,
    *("log-only",) * 3,
    *("request/header",) * 2,
    "request/context",
    *("replace",) * 4,
    *("rewrite",) * 3,
)
_INVALID = (
    "reversed",
    "unknown-start",
    "unknown-end",
    "uncited",
    "no-op",
    "op-on-log-only",
    "sources-on-log-only",
    "empty-sources",
    "duplicate-source",
    "later-source",
    "rewrite-two",
    "rewrite-other-type",
    "rewrite-more",
    "seq",
)


def to_event(raw: Raw) -> Event:
    """The Event of a raw object; endpoints may have the names of any format."""
    op = raw.get("surfaceOp")
    surface_op = None
    if op == "append":
        surface_op = APPEND
    elif op is not None:
        start, end = ("start", "end") if "start" in op else ("startSeq", "endSeq")
        surface_op = SurfaceOp("replace", op[start], op[end])
    sources = raw.get("sourceEventSeqs")
    return Event(
        type=raw["type"],
        seq=raw["seq"],
        time=raw["time"],
        data=raw["data"],
        ignorable=raw.get("ignorable", False),
        source_event_seqs=None if sources is None else tuple(sources),
        surface_op=surface_op,
    )


def text(value: str) -> Raw:
    """A text block."""
    return {"type": "text", "text": value}


def surface_data(kind: str, seq: int, content: list[Any] | None = None) -> Raw:
    """The format 0 payload of a surface event, its text naming the seq."""
    blocks = [text(f"text {seq}")] if content is None else content
    if kind == "user/message":
        return {"role": "user", "content": blocks, "source": {"kind": "user"}, "id": f"m{seq}"}
    if kind == "assistant/message":
        source = {"kind": "model", "provider": "p", "model": "m"}
        message = {"id": f"m{seq}", "role": "assistant", "content": blocks, "source": source}
        return {"turn": 1, "step": 1, "message": message}
    block = {"type": "tool-result", "toolCallId": "c", "content": blocks, "isError": False}
    source = {"kind": "tool", "callId": "c"}
    message = {"role": "user", "content": [block], "source": source, "id": "r"}
    return {"turn": 1, "step": 1, "message": message}


def header_data(model: str, tools: list[Any], *, system: str = "") -> Raw:
    """The payload of a request header."""
    config = {"provider": "p", "model": model, "maxTokens": 100}
    return {"header": {"config": config, "system": system, "tools": tools}, "reason": "change"}


class _Builder:
    """Makes events that are valid by construction, or broken in one named way."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.events: list[Raw] = []
        self.nodes: list[int] = []

    def pick(self, items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def raw(self, kind: str, data: Any) -> Raw:
        return {"type": kind, "seq": len(self.events), "time": 1_000 + len(self.events), "data": data}

    def plain(self, what: str) -> Raw:
        kind = self.pick(_APPENDS)
        if what == "request/header":
            tools = self.pick(([], [{"name": "a", "description": "d", "parameters": {}}]))
            data = header_data(self.pick("xy"), tools, system=self.pick(("", "s")))
            return self.raw("request/header", data)
        if what == "request/context":
            return self.raw("request/context", {"provider": "p", "model": self.pick("xy")})
        if what == "log-only" or (what != "append" and not self.nodes):
            return self.raw(self.pick(("turn/start", "assistant/chunk", "plugin/x")), {"turn": 1})
        data = surface_data(kind, len(self.events), self.pick((None, None, None, [])))
        raw = {**self.raw(kind, data), "surfaceOp": "append"}
        if kind == "assistant/message":
            raw["sourceEventSeqs"] = self.pick(([], list(range(min(2, len(self.events))))))
        return raw

    def replace(self, *, wide: bool = True) -> Raw:
        first = self.draw(st.integers(0, len(self.nodes) - 1))
        last = self.draw(st.integers(first, len(self.nodes) - 1)) if wide else first
        kind = self.pick(_APPENDS[:2])
        raw = self.raw(kind, surface_data(kind, len(self.events)))
        raw["surfaceOp"] = {"op": "replace", "start": self.nodes[first], "end": self.nodes[last]}
        raw["sourceEventSeqs"] = self.nodes[first : last + 1]
        if self.draw(st.booleans()):
            raw["sourceEventSeqs"] = sorted({0, *raw["sourceEventSeqs"]}, reverse=True)
        return raw

    def rewrite(self) -> Raw:
        results = [seq for seq in self.nodes if self.events[seq]["type"] == "tool/result"]
        if not results:
            return self.plain("append")
        seq = self.pick(results)
        data = surface_data("tool/result", len(self.events), [text("short")])
        op = {"op": "replace", "start": seq, "end": seq}
        return {**self.raw("tool/result", data), "surfaceOp": op, "sourceEventSeqs": [seq]}

    def broken(self, how: str) -> Raw:
        raw = self.replace()
        op = raw["surfaceOp"]
        if how == "reversed":
            op["start"], op["end"] = op["end"], op["start"]
        elif how == "unknown-start":
            op["start"] = self.pick((len(self.events), len(self.events) + 5, 0, 1, 2))
        elif how == "unknown-end":
            op["end"] = self.pick((len(self.events), len(self.events) + 5, 0, 1, 2))
        elif how == "uncited":
            raw["sourceEventSeqs"] = raw["sourceEventSeqs"][1:] or [0]
        elif how == "no-op":
            del raw["surfaceOp"]
        elif how in ("op-on-log-only", "sources-on-log-only"):
            raw["type"] = "turn/start"
            del raw["sourceEventSeqs" if how == "op-on-log-only" else "surfaceOp"]
        elif how == "empty-sources":
            raw["sourceEventSeqs"] = []
        elif how == "duplicate-source":
            raw["sourceEventSeqs"] = raw["sourceEventSeqs"] * 2
        elif how == "later-source":
            raw["sourceEventSeqs"] = [*raw["sourceEventSeqs"], len(self.events) + self.pick((0, 1))]
        elif how == "seq":
            raw["seq"] += self.pick((-1, 1, 2))
        else:
            raw = self.broken_rewrite(how)
        return raw

    def broken_rewrite(self, how: str) -> Raw:
        result = self.raw("tool/result", surface_data("tool/result", len(self.events)))
        self.add({**result, "surfaceOp": "append"})
        raw = self.rewrite()
        if how == "rewrite-two":
            raw["surfaceOp"] = {"op": "replace", "start": self.nodes[0], "end": self.nodes[-1]}
            raw["sourceEventSeqs"] = list(self.nodes)
        elif how == "rewrite-other-type":
            seq = self.pick(self.nodes)
            raw["surfaceOp"] = {"op": "replace", "start": seq, "end": seq}
            raw["sourceEventSeqs"] = [seq]
        else:
            message = raw["data"]["message"]
            change = self.pick(("turn", "id", "isError", "extra"))
            if change == "turn":
                raw["data"]["turn"] = 2
            elif change == "isError":
                message["content"][0]["isError"] = self.pick((True, 0))
            else:
                message[change] = "other"
        return raw

    def add(self, raw: Raw) -> None:
        self.events.append(raw)
        op = raw.get("surfaceOp")
        if op == "append":
            self.nodes.append(raw["seq"])
        elif isinstance(op, dict) and op["start"] in self.nodes and op["end"] in self.nodes:
            first, last = self.nodes.index(op["start"]), self.nodes.index(op["end"])
            self.nodes[first : last + 1] = [raw["seq"]]


@st.composite
def valid_events(draw: st.DrawFn, max_size: int = 30) -> list[Raw]:
    """A format 0 event list that every fold accepts."""
    builder = _Builder(draw)
    for _ in range(draw(st.integers(0, max_size))):
        what = builder.pick(_VALID)
        if what == "replace" and builder.nodes:
            builder.add(builder.replace())
        elif what == "rewrite":
            builder.add(builder.rewrite())
        else:
            builder.add(builder.plain(what))
    return builder.events


@st.composite
def broken_events(draw: st.DrawFn) -> list[Raw]:
    """A valid list, then one event that is usually broken, then a few more."""
    builder = _Builder(draw)
    for raw in draw(valid_events(max_size=12)):
        builder.add(raw)
    if builder.nodes:
        builder.add(builder.broken(builder.pick(_INVALID)))
    for _ in range(draw(st.integers(0, 2))):
        builder.add(builder.plain("append"))
    return builder.events
