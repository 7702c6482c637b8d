"""Writes small capture archives for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CHAT = "/v1/chat/completions"
SESSION = "x-deepseek-harness-session-id"
BODY = b'{"model":"toy-1","messages":[{"role":"user","content":"hi"}],"stream":true}'


def write_pair(
    root: Path, name: str, body: bytes | None = BODY, headers: Iterable[tuple[str, str]] = (), **meta: Any
) -> None:
    """One NNNN.body + NNNN.meta.json."""
    record = {"method": "POST", "path": CHAT, "headers": [list(pair) for pair in headers], **meta}
    (root / f"{name}.meta.json").write_text(json.dumps(record))
    if body is not None:
        (root / f"{name}.body").write_bytes(body)


def har_entry(text: str | None = BODY.decode(), **request: Any) -> dict[str, Any]:
    """One HAR entry of a chat request."""
    post = {} if text is None else {"postData": {"mimeType": "application/json", "text": text}}
    base = {"method": "POST", "url": f"https://api.example{CHAT}", "headers": [], "bodySize": -1}
    return {"request": base | post | request, "response": {"status": 200}}


def write_har(path: Path, *entries: Any) -> Path:
    """A HAR file of these entries."""
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": list(entries)}}))
    return path
