"""JSON Schema of the rows of a format, made from the same shapes that check payloads.

``schemas/rows-vN.schema.json`` holds the result. It describes what the current writer of a format writes, payload
members included; the reader accepts more (old dialects, further payload members, unknown types).
"""

from __future__ import annotations

from dsh_audit.events import Json
from dsh_audit.formats import FORMATS
from dsh_audit.formats.payload_events import payload_shapes
from dsh_audit.formats.payload_messages import BLOCK, message_source
from dsh_audit.formats.shapes import (
    ANY,
    ARRAY,
    BOOLEAN,
    COUNT,
    OBJECT,
    POSITIVE,
    SAFE_INTEGER,
    STRING,
    TEXT,
    Shape,
    array,
    literal,
    named,
    open_record,
    record,
)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TRUE = literal(True)
_RUN = {"turn": COUNT, "step": COUNT, "index": COUNT, "dt": array(SAFE_INTEGER)}
_PACKED = {"seq0": COUNT, "time0": SAFE_INTEGER}
_SOURCES = Shape(
    ANY.check,
    {"type": "array", "items": {"anyOf": [COUNT.schema, array(COUNT, at_least=2, at_most=2).schema]}},
)


def row_schema(version: int) -> dict[str, Json]:
    """Schema of one row, of any kind, of a log of the format."""
    rows = {"session": _session_header(version)}
    if version < 2:
        rows |= _packed_rows()
    rows |= {kind: _event(version, kind) for kind in sorted(FORMATS[version].known_types)}
    branches = [{"if": _is(kind), "then": {"$ref": f"#/$defs/rows/{_pointer(kind)}"}} for kind in rows]
    unknown: dict[str, Json] = {
        "if": {"properties": {"type": {"enum": list(rows)}}},
        "else": _envelope(TEXT, ANY, surface="opaque", version=version).schema,
    }
    return {
        "$schema": _DIALECT,
        "title": f"Row of a session log of format {version}",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"type": "string"}},
        "allOf": [*branches, unknown],
        "$defs": {
            "block": BLOCK.schema if version < 3 else _open_block().schema,
            "source": message_source(version).schema if version < 3 else _open_source().schema,
            "rows": {kind: shape.schema for kind, shape in rows.items()},
        },
    }


def _is(kind: str) -> dict[str, Json]:
    return {"properties": {"type": {"const": kind}}}


def _pointer(kind: str) -> str:
    return kind.replace("~", "~0").replace("/", "~1")


def _session_header(version: int) -> Shape:
    seeding = {"seedLength": COUNT} if version < 2 else {}
    required = {"isSeeded": BOOLEAN} if version >= 2 else {}
    return record(
        {
            "type": literal("session"),
            "version": literal(version),
            "id": STRING,
            "createdAt": COUNT,
            **required,
            "delegationDepth": COUNT,
        },
        {
            "cwd": STRING,
            "parentSession": STRING,
            **seeding,
            "origin": literal("subagent"),
            "agentPreset": STRING,
        },
    )


def _packed_rows() -> dict[str, Shape]:
    texts = record({**_RUN, "texts": array(STRING, at_least=1)})
    calls = record({**_RUN, "id": STRING, "args": array(STRING, at_least=1)}, {"name": STRING})
    return {
        kind: record({"type": literal(kind), **_PACKED, "data": data})
        for kind, data in (("text-chunks", texts), ("reasoning-chunks", texts), ("tool-call-chunks", calls))
    }


def _event(version: int, kind: str) -> Shape:
    surface = "required" if kind in FORMATS[version].surface_types else "none"
    return _envelope(literal(kind), _payload(version, kind), surface=surface, version=version)


def _envelope(kind: Shape, data: Shape, *, surface: str, version: int) -> Shape:
    required = {"type": kind, "seq": COUNT, "time": SAFE_INTEGER, "data": data}
    optional: dict[str, Shape] = {"ignorable": _TRUE}
    if surface == "required":
        required["surfaceOp"] = _surface_op(version)
        optional["sourceEventSeqs"] = _SOURCES
    elif surface == "opaque":
        optional |= {"surfaceOp": ANY, "sourceEventSeqs": _SOURCES}
    return record(required, optional)


def _surface_op(version: int) -> Shape:
    start, end = ("start", "end") if version < 3 else ("startSeq", "endSeq")
    replace = record({"op": literal("replace"), start: COUNT, end: COUNT})
    return Shape(ANY.check, {"anyOf": [{"const": "append"}, replace.schema]})


def _payload(version: int, kind: str) -> Shape:
    """Exact in formats 0 to 2; from format 3 on what the reader itself asks, and open beyond."""
    if version < 3:
        return payload_shapes(version).get(kind, OBJECT)
    return _later_payloads(version).get(kind, ANY)


def _open_block() -> Shape:
    return open_record({"type": TEXT})


def _open_source() -> Shape:
    return open_record({"kind": TEXT})


def _message(role: str, source: Shape, **members: Shape) -> Shape:
    content = array(named("block", _open_block))
    return open_record({"id": TEXT, "role": literal(role), "content": content, "source": source, **members})


def _later_payloads(version: int) -> dict[str, Shape]:
    step = {"turn": COUNT, "step": COUNT}
    any_source = named("source", _open_source)
    model = open_record({"kind": literal("model"), "provider": TEXT, "model": TEXT})
    tool = open_record({"kind": literal("tool"), "callId": TEXT})
    result = _message("user", tool) if version == 3 else _message("tool", tool, toolCallId=TEXT)
    prompt = open_record({"kind": literal("plugin" if version == 3 else "system-prompt")})
    placed = {"turn": POSITIVE, "step": POSITIVE}
    header = open_record({"config": open_record({"provider": TEXT, "model": TEXT})})
    reason = literal("initial", "resume", "change", "series")
    return {
        "user/message": _message("user", any_source),
        "assistant/message": open_record({**step, "message": _message("assistant", model), "stream": ARRAY}),
        "assistant/attempt": open_record({**step, "stream": ARRAY}),
        "tool/result": open_record({"message": result}),
        "system/message": open_record({**placed, "message": _message("system", prompt)}),
        "developer/message": open_record({**placed, "message": _message("developer", any_source)}),
        "request/header": open_record({"header": header, "reason": reason}),
        "turn/start": open_record({"turn": COUNT}),
        "turn/end": open_record({"turn": COUNT, "reason": open_record({"kind": TEXT})}),
        "step/start": open_record(step),
        "step/end": open_record(step),
    }
