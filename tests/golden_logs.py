"""Ways in which a later run of a session may differ, as edits of its rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsh_audit.text import ecma

Rows = list[dict[str, Any]]
Edit = Callable[[Rows], None]

GOLDEN = Path(__file__).parent.parent / "golden"
TOOLS_LOG = GOLDEN / "v0-tools" / "sessions" / "--srv-toy-ws--" / "sess-1" / "session.jsonl"


def read_rows(path: Path) -> Rows:
    """The rows of a plain log."""
    return [ecma.parse(line) for line in path.read_bytes().split(b"\n") if line]


def write_rows(path: Path, rows: Rows) -> None:
    """A plain log over the rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(ecma.stringify(row) + b"\n" for row in rows))


def edited(path: Path, target: Path, edit: Edit) -> Path:
    """A copy of a log with its rows edited."""
    rows = copy.deepcopy(read_rows(path))
    edit(rows)
    write_rows(target, rows)
    return target


def header_of(rows: Rows) -> dict[str, Any]:
    header: dict[str, Any] = next(row for row in rows if row["type"] == "request/header")["data"]["header"]
    return header


def nothing(rows: Rows) -> None:
    """The same run."""


def add_tool(rows: Rows) -> None:
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    header_of(rows)["tools"].append({"name": "weather", "description": "Tell the weather.", "parameters": parameters})


def remove_tool(rows: Rows) -> None:
    del header_of(rows)["tools"][1]


def reorder_tools(rows: Rows) -> None:
    tools = header_of(rows)["tools"]
    tools.append(tools.pop(0))


def redefine_tool(rows: Rows) -> None:
    header_of(rows)["tools"][2]["description"] = "Echo a good while later."


def edit_prompt(rows: Rows) -> None:
    header_of(rows)["system"] += "\n\nNever enter the third house."


def change_effort(rows: Rows) -> None:
    header_of(rows)["config"]["reasoningEffort"] = "max"


def change_model(rows: Rows) -> None:
    header_of(rows)["config"]["model"] = "deepseek-v4-pro"


def change_message(rows: Rows) -> None:
    message = next(row for row in rows if row["type"] == "user/message")["data"]
    message["content"][0]["text"] = "Visit the gardens"


def change_result(rows: Rows) -> None:
    result = next(row for row in rows if row["type"] == "tool/result")["data"]["message"]
    result["content"][0]["content"][0]["text"] = "echo:{}"


def cut_last_turn(rows: Rows) -> None:
    last = max(index for index, row in enumerate(rows) if row["type"] == "turn/start")
    del rows[last:]


EDITS: dict[str, tuple[Edit, str, str, str | None]] = {
    # cause, part of the message, pointer into the first body
    "tool-added": (add_tool, "tool-added", "tool added: weather", "/tools/3"),
    "tool-removed": (remove_tool, "tool-removed", "tool removed: echo", "/tools/1"),
    "tools-reordered": (reorder_tools, "tools-reordered", "tools reordered: boom", "/tools/0"),
    "tool-redefined": (redefine_tool, "tool-redefined", "tool redefined: slow", "/tools/2"),
    "prompt-edited": (edit_prompt, "prompt-edited", "system prompt edited", "/messages/0/content"),
    "effort": (change_effort, "setting-changed", 'reasoningEffort "high" → "max"', "/reasoning_effort"),
    "model": (change_model, "route-changed", 'model "deepseek-flash" → "deepseek-v4-pro"', "/model"),
    "message-changed": (change_message, "message-changed", "user message changed", "/messages/1"),
    "result-changed": (change_result, "message-changed", "(a tool's result)", "/messages/3"),
    "turn-gone": (cut_last_turn, "request-removed", "request 4 (step 2.1)", None),
}
"""Name → edit, and the cause, message and pointer that a check must give."""
