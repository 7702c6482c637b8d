"""Digest-only captures: bodies that repeat upstream prose are left out of a recorded bundle.

Such a capture has no `NNNN.body`; its meta keeps `body.size` and `body.sha256` of the true bytes and says in
`body.withheld` why. Nothing is ever replaced inside a body.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = Any

COMPACTION_MARK = "x-deepseek-harness-compact"


def withhold(captures: Path) -> list[str]:
    """Withhold the compaction bodies of a bundle; returns the numbers of the withheld captures."""
    numbers = []
    for meta_file in sorted(captures.glob("*.meta.json")):
        meta = json.loads(meta_file.read_text())
        if any(name.lower() == COMPACTION_MARK for name, _ in meta["headers"]):
            number = meta_file.name.split(".")[0]
            withhold_one(captures, number, "repeats the harness's compaction instruction")
            numbers.append(number)
    return numbers


def withhold_one(captures: Path, number: str, reason: str) -> None:
    """Withhold one body."""
    meta_file = captures / f"{number}.meta.json"
    meta = json.loads(meta_file.read_text())
    meta["body"]["withheld"] = reason
    meta_file.write_text(json.dumps(meta, indent=1) + "\n")
    (captures / f"{number}.body").unlink()
