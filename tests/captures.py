"""Writes capture bundles for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def write_bundle(
    folder: Path, bodies: Iterable[bytes], session: str = "toy-1", path: str = "/v1/chat/completions"
) -> Path:
    """One ``NNNN.body`` and ``NNNN.meta.json`` a body."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(bodies):
        headers = [["authorization", "Bearer sk-secret"], ["x-deepseek-harness-session-id", session]]
        meta = {"method": "POST", "path": path, "headers": headers}
        (folder / f"{number:04}.body").write_bytes(body)
        (folder / f"{number:04}.meta.json").write_text(json.dumps(meta), "utf-8")
    return folder
