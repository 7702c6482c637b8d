"""What only the library can do, run by either side's own Python: all digests in one process, and bodies as captures.

Run: python library.py digests LOG | bundle LOG DIR. ``digests`` prints the median CPU seconds of warm
rounds and the digest of all digests; ``bundle`` writes a capture bundle of the log's own bodies.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dsh_audit

_ROUNDS, _UNTIMED = 7, 2
PATHS = {0: "/v1/chat/completions", 4: "/v1/messages"}


def bodies(log: str) -> Iterator[Any]:
    """The body of each request; the older commit has no ``open_session``."""
    api: Any = dsh_audit
    if "open_session" in api.__all__:
        for request in api.open_session(log).requests():
            yield request.body
    else:
        opened = api.open_log(api.read_sessions(log)[0].choose())
        for request in api.Replay(api.build_history(opened), api.Deployment()):
            yield request.extended(request.encoded.body).body


def time_digests(log: str) -> None:
    times = []
    for _ in range(_ROUNDS + _UNTIMED):
        start = time.process_time()
        digests = [body.sha256() for body in bodies(log)]
        times.append(time.process_time() - start)
    print(statistics.median(times[_UNTIMED:]), hashlib.sha256("".join(digests).encode()).hexdigest())


def write_bundle(log: str, folder: str) -> None:
    path = Path(log)
    out = Path(folder)
    out.mkdir(parents=True)
    meta = {
        "method": "POST",
        "path": PATHS[4 if ".v4." in path.name else 0],
        "headers": [["content-type", "application/json"], ["x-deepseek-harness-session-id", path.parent.name]],
        "status": 200,
    }
    for n, body in enumerate(bodies(log)):
        (out / f"{n:04}.body").write_bytes(body.to_bytes() if hasattr(body, "to_bytes") else bytes(body))
        (out / f"{n:04}.meta.json").write_text(json.dumps(meta), "utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "digests":
        time_digests(sys.argv[2])
    else:
        write_bundle(sys.argv[2], sys.argv[3])
