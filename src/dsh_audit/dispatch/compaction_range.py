"""The range that a failed compaction would have replaced, computed again: it is not logged. Spec dispatch 5.3.

The harness walks from the newest message back until what it keeps has the price it retains, then on to the next place
that leaves no tool call without its result. Both the retention and the prices may differ from what is known here, so
every balanced place is a candidate: the computed one first, then the longer ranges; a price that the error states goes
before.
"""

from __future__ import annotations

import re

from dsh_audit.events import Event, Json, ShapeError
from dsh_audit.projection.messages import derive_event_message
from dsh_audit.projection.rejection import ProjectionError
from dsh_audit.projection.shapes import check_message
from dsh_audit.projection.state import Snapshot
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

_STATED_PRICE = re.compile(r">= ?(\d+)\)")
_MAX_CANDIDATES = 64
DEFAULT_RATIO = 0.16


@dataclass(frozen=True, slots=True)
class Retention:
    """What a pressure compaction leaves alone at the end of the history, and its output limit; deployment values.

    Args:
        tokens: a fixed count; None to use the ratio.
        ratio: of the context window of the request context.
        output_limit: of the compaction call; None where the deployment does not tell.
        default_limit: that limit where no log row shows one either.
        reserves_output: the ratio is taken of what the output limit leaves of the window (0.2.1).
    """

    tokens: int | None = None
    ratio: float = DEFAULT_RATIO
    output_limit: int | None = None
    default_limit: int = 8192
    reserves_output: bool = False

    def of(self, snapshot: Snapshot, output_limit: int) -> int:
        """Tokens to retain."""
        if self.tokens is not None:
            return self.tokens
        context = snapshot.request_context
        window = context.data.get("contextWindow") if context is not None else None
        if not isinstance(window, int | float):
            return 0
        return max(0, int((window - output_limit * self.reserves_output) * self.ratio))


def find_ranges(
    snapshot: Snapshot, start: Event, error: Json, retention: Retention, output_limit: int, *, overflow: bool
) -> tuple[tuple[int, ...], ...]:
    """Possible shadowed ranges, best first, each the seqs of its nodes.

    Args:
        snapshot: folds at ``compaction/start``.
        start: that event; a null ``turn`` marks a manual run.
        error: the ``error`` of ``compaction/end``; a "not smaller" error states the price of the range.
        retention: of a pressure run; manual and overflow runs retain nothing.
        output_limit: of the call.
        overflow: the run follows a context overflow.

    Returns:
        none where a message has a shape that cannot be priced.
    """
    try:
        messages = [(node.seq, _checked(node)) for node in snapshot.surface]
    except (ShapeError, ProjectionError):
        return ()
    first = 1 if messages and snapshot.surface[0].type == "system/message" else 0
    prices = [price_message(message) for _, message in messages]
    cuts = _balanced_cuts([message for _, message in messages], first)
    manual = isinstance(start.data, dict) and start.data.get("turn") is None
    best = _retained_cut(prices, cuts, 0 if manual or overflow else retention.of(snapshot, output_limit))
    ordered = sorted(cuts, key=lambda cut: (cut != best, -cut))
    stated = _STATED_PRICE.search(error) if isinstance(error, str) else None
    if stated:
        price = int(stated.group(1))
        ordered.sort(key=lambda cut: sum(prices[first:cut]) != price)
    seqs = [seq for seq, _ in messages]
    return tuple(tuple(seqs[first:cut]) for cut in ordered[:_MAX_CANDIDATES])


def _checked(node: Event) -> dict[str, Json] | None:
    message = derive_event_message(node)
    if message is not None:
        check_message(message, node.seq)
    return message


def _retained_cut(prices: list[int], cuts: list[int], retain: int) -> int | None:
    total, cut = 0, len(prices)
    for index in range(len(prices) - 1, -1, -1):
        total += prices[index]
        cut = index
        if total >= retain:
            break
    return max((candidate for candidate in cuts if candidate <= cut), default=None)


def _balanced_cuts(messages: list[Json], first: int) -> list[int]:
    """Indexes with at least one node before them and no tool call before whose result is at or after them."""
    open_calls: set[str] = set()
    results = _result_positions(messages)
    cuts: list[int] = []
    for index, message in enumerate(messages):
        if index > first and not open_calls:
            cuts.append(index)
        for block in _blocks(message):
            if block.get("type") == "tool-call" and results.get(block.get("id"), -1) > index:
                open_calls.add(block["id"])
        open_calls.difference_update(_result_ids(message))
    return cuts


def _result_positions(messages: list[Json]) -> dict[Json, int]:
    return {ident: index for index, message in enumerate(messages) for ident in _result_ids(message)}


def _result_ids(message: Json) -> list[str]:
    if not isinstance(message, dict):
        return []
    if message.get("role") == "tool":
        return [message["toolCallId"]]
    return [block["toolCallId"] for block in _blocks(message) if block.get("type") == "tool-result"]


def _blocks(message: Json) -> list[Json]:
    content = message.get("content") if isinstance(message, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def price_message(message: Json) -> int:
    """The harness's own estimate of a message in tokens; 0 when the node yields none.

    Source: spec dispatch 5.3 (price of a node). Lengths are UTF-16 code units.
    """
    if message is None:
        return 0
    if message.get("role") == "system":
        return _quarter(sum(ecma.length(block.get("text", "")) for block in _blocks(message))) + 4
    return 4 + sum(_price_block(block) for block in _blocks(message))


def _price_block(block: Json) -> int:
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        return _quarter(ecma.length(block["text"])) + 4
    if kind == "tool-call":
        return _quarter(ecma.length(block["name"])) + _quarter(ecma.length(block["arguments"])) + 4
    if kind == "tool-result":
        return 4 + sum(_price_block(inner) for inner in _blocks(block))
    plain = {key: value for key, value in block.items() if key != "offloaded"}
    return 4 + _quarter(ecma.length(ecma.stringify_text(plain)))


def _quarter(length: int) -> int:
    return -(-length // 4)
