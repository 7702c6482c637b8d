"""Which delivery marker belongs to which call, where a title or compaction races a step or a size cap cuts fields."""

from __future__ import annotations

import pytest

from dsh_audit.dispatch.scan import scan_dispatches
from dsh_audit.events import Event, Json

_MARKER = "session-log-deepseek/delivery-accepted"
_SHORT = {
    "step": "step/start", "ask": "session/title-llm-request", "done": "assistant/attempt", "end": "turn/end",
    "start": "compaction/start", "stop": "compaction/end", "named": "session/title", "note": "goal/note",
}  # fmt: skip
_STREAM = [{"type": "text-chunks", "time0": 0, "index": 0, "dt": [], "texts": ["x"]}]
_DATA: dict[str, Json] = {
    "step": {"turn": 1, "step": 1},
    "done": {"turn": 1, "step": 1, "stream": _STREAM},
    "named": {"title": "T", "source": {"kind": "provider"}},
    "start": {"compactionId": "c", "turn": 1},
    "stop": {"compactionId": "c", "turn": 1, "error": "no"},
    "end": {"turn": 1, "reason": {"kind": "completed"}},
}


def owners(words: str) -> dict[str, list[tuple[int, ...]]]:
    """Kind of dispatch → the markers of each; a number is a marker with that ``throughSeq``."""
    events = [
        Event(_MARKER, seq, 7, {"sessionId": "s", "sessionFormatVersion": 4, "throughSeq": int(word)})
        if word.isdigit()
        else Event(_SHORT[word], seq, 7, _DATA.get(word, {}))
        for seq, word in enumerate(words.split())
    ]
    found: dict[str, list[tuple[int, ...]]] = {}
    for prepared in scan_dispatches(events, 4):
        found.setdefault(prepared.dispatch.kind, []).append(prepared.dispatch.marker_seqs)
    return found


@pytest.mark.parametrize(
    ("words", "step", "title"),
    [
        ("step ask 0 1 done named", (2,), (3,)),
        ("step ask 1 0 done named", (3,), (2,)),
        # Both calls saw the opening of the title; the order of the answers is all there is.
        ("step ask 1 done 1 named", (2,), (4,)),
        ("step ask 1 named 1 done", (4,), (2,)),
        ("step ask 1 1 done named", (2, 3), (2, 3)),
        ("step ask 1 done end", (2,), ()),
        # A cap cut both fields before the opening of the title.
        ("step note ask 0 done 0 named", (3,), (5,)),
        ("step note ask 0 0 done named", (3,), (4,)),
        ("step note ask 0 named 0 done", (5,), (3,)),
        # The title alone sent a field, or alone left a marker.
        ("step note ask done 2 named", (), (4,)),
        ("step note ask done 0 named", (), (4,)),
    ],
)
def test_a_title_beside_a_step(words: str, step: tuple[int, ...], title: tuple[int, ...]) -> None:
    assert owners(words) == {"step": [step], "title": [title]}


def test_a_capped_compaction() -> None:
    assert owners("step 0 done start 2 stop") == {"step": [(1,)], "compaction": [(4,)]}
    assert owners("step 0 done note start 3 stop") == {"step": [(1,)], "compaction": [(5,)]}


def test_a_marker_between_two_steps_is_the_title_s() -> None:
    found = owners("step ask 0 done 0 step 3 done named")
    assert found == {"step": [(2,), (6,)], "title": [(4,)]}
