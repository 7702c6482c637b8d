"""The schemas of rows: what is shipped is what the shapes say, and it tells good rows from bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dsh_audit.formats import FORMATS
from dsh_audit.formats.schema import row_schema
from tests.format_rows import HEADERS, Row, answer, chunk, header, result, row, turn_end, user

SCHEMAS = Path(__file__).parent.parent / "schemas"


def shipped(version: int) -> Any:
    return json.loads((SCHEMAS / f"rows-v{version}.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("version", FORMATS)
def test_shipped_schemas_are_current(version: int) -> None:
    """To renew: ``python -m tests.test_formats_schema``."""
    made = row_schema(version)
    Draft202012Validator.check_schema(made)
    assert shipped(version) == made


def errors(version: int, value: Row) -> list[str]:
    found = Draft202012Validator(shipped(version)).iter_errors(value)
    return ["/".join(map(str, error.absolute_path)) for error in found]


TEXTS = {"turn": 1, "step": 1, "index": 0, "dt": [0, -1], "texts": ["a", "", "b"]}

GOOD: list[tuple[int, Row]] = [
    *((version, HEADERS[version]) for version in FORMATS),
    *((version, turn_end(3)) for version in FORMATS),
    *((version, row("x/y", 3, None, ignorable=True)) for version in FORMATS),
    (0, {"type": "text-chunks", "seq0": 0, "time0": 0, "data": TEXTS}),
    (0, chunk(0, "text-delta", index=0, text="a")),
    (0, answer(4, "c", sourceEventSeqs=[0, [1, 3]])),
    (1, result(4, "c")),
    (0, header(1, system="s", tools=[])),
    (2, user(1, surfaceOp={"op": "replace", "start": 0, "end": 0}, sourceEventSeqs=[0])),
    (3, user(1, surfaceOp={"op": "replace", "startSeq": 0, "endSeq": 0}, sourceEventSeqs=[0])),
    (3, result(4, "c")),
]
BAD: list[tuple[int, Row, str]] = [
    (0, {**HEADERS[0], "createdAt": -1}, "createdAt"),
    (2, HEADERS[2] | {"isSeeded": None}, "isSeeded"),
    (0, row("turn/end", 3, {"turn": -1, "reason": {"kind": "completed"}}), "data/turn"),
    (0, row("turn/end", 3, {"turn": 1, "reason": {"kind": "completed", "x": 1}}), "data/reason"),
    (0, user(3, surfaceOp="prepend"), "surfaceOp"),
    (0, {"type": "text-chunks", "seq0": 0, "time0": 0, "data": {**TEXTS, "texts": []}}, "data/texts"),
    (0, chunk(0, "text-delta", index=0, text=1), "data/chunk/text"),
    (0, header(1, tools=[{"name": ""}]), "data/header/tools/0/name"),
    (3, header(1) | {"surfaceOp": "append"}, ""),
    (4, result(4, "c"), "data/message/role"),
    (4, row("x/y", 3, {}, extra=1), ""),
]


@pytest.mark.parametrize(("version", "value"), GOOD)
def test_good_rows(version: int, value: Row) -> None:
    assert errors(version, value) == []


@pytest.mark.parametrize(("version", "value", "place"), BAD)
def test_bad_rows(version: int, value: Row, place: str) -> None:
    assert place in errors(version, value)


def main() -> None:
    for version in FORMATS:
        text = json.dumps(row_schema(version), indent=1) + "\n"
        (SCHEMAS / f"rows-v{version}.schema.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
