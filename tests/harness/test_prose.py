"""Golden data holds no prose of the harness, only facts and short framing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.harness.cases import CASES
from tests.harness.prose import find_prose

GOLDEN = Path(__file__).parents[2] / "golden"


def test_golden_repeats_no_upstream_prose() -> None:
    own = json.dumps(list(CASES.values()), ensure_ascii=False) + (GOLDEN / "README.md").read_text()
    assert find_prose(GOLDEN, own) == {}
