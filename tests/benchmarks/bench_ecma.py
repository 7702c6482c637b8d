"""Times ``ecma`` against orjson and the json module; run by hand: ``python tests/benchmarks/bench_ecma.py``.

Prints microseconds a call (best of several) and the ratio to orjson; "-" where orjson cannot do it.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from typing import Any

import orjson
from tabulate import tabulate

from dsh_audit.text import ecma

PROSE = 'A sentence, e.g. about "1.5" things:\n\tcaf\u00e9 \U0001f600. '
ROW = {
    "type": "assistant/delta",
    "seq": 41,
    "time": 1760000000000,
    "data": {
        "turn": 3,
        "block": {"kind": "text", "index": 0, "text": "partial "},
        "final": False,
        "usage": None,
    },
}
VALUES: dict[str, Any] = {
    "log row": ROW,
    "one long text": {"content": PROSE * 4000},
    "500 rows": [ROW] * 500,
    "a fraction": {**ROW, "temperature": 0.7},
    "whole floats": {**ROW, "temperature": 1.0},
    "index keys": {**ROW, "map": {"b": 1, "10": 2, "9": 3}},
    "lone surrogate": {**ROW, "text": "cut \ud83d"},
    "short string": "Hello, world",
    "long string": PROSE * 400,
    "900 levels": json.loads("[" * 900 + "]" * 900),
}


def microseconds(call: Callable[[], object]) -> float | None:
    """Best time of a call; None when it refuses."""
    try:
        call()
    except (ValueError, TypeError):
        return None
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    return min(timer.repeat(3, max(1, count // 4))) / max(1, count // 4) * 1e6


def row(
    name: str, ours: Callable[[], object], fast: Callable[[], object], std: Callable[[], object]
) -> list[str]:
    """One line of the table."""
    times = [microseconds(call) for call in (ours, fast, std)]
    ratio = f"{times[0] / times[1]:.1f}" if times[0] and times[1] else "-"
    return [name, *("-" if t is None else f"{t:.2f}" for t in times), ratio]


def main() -> None:
    """Print the table."""
    table = []
    for name, value in VALUES.items():
        text = json.dumps(value).encode() if name == "whole floats" else ecma.stringify(value)
        table.append(
            row(
                f"parse {name}",
                lambda text=text: ecma.parse(text),  # type: ignore[misc]
                lambda text=text: orjson.loads(text),  # type: ignore[misc]
                lambda text=text: json.loads(text),  # type: ignore[misc]
            )
        )
        table.append(
            row(
                f"stringify {name}",
                lambda value=value: ecma.stringify(value),  # type: ignore[misc]
                lambda value=value: orjson.dumps(value),  # type: ignore[misc]
                lambda value=value: json.dumps(value, separators=(",", ":")),  # type: ignore[misc]
            )
        )
    print(tabulate(table, ["", "ecma", "orjson", "json", "ecma/orjson"], colalign=("left", *["right"] * 4)))


if __name__ == "__main__":
    main()
