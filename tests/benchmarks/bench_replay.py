"""Replay of a long session beside the least that any reader must do, as ratios.

Run: python -m tests.benchmarks.bench_replay

Figures are CPU seconds of this process, the best of three, on a made session of 450 steps.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable

import orjson
import zstandard

from dsh_audit.deployment import Deployment
from dsh_audit.log.container import ContainerStats, iter_rows
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Replay
from tests.logs import SessionV0, log_of

STEPS = 450


def long_session(steps: int = STEPS) -> bytes:
    """One turn of many tool calls, each with a result of 700 characters."""
    session = SessionV0()
    session.start_turn()
    session.start_step()
    session.user("Go on until done.")
    session.header()
    for step in range(steps):
        if step:
            session.start_step()
        call = {"type": "tool-call", "id": f"c{step}", "name": "add", "arguments": '{"a":1}'}
        session.answer(f"Step {step}.", [call])
        session.result(f"c{step}", "result " * 100)
        session.end_step()
    session.end_turn()
    return session.zstd()


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    data = long_session()

    def decode() -> int:
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
        return sum(orjson.loads(line) is not None for line in reader.read().split(b"\n") if line)

    def rows() -> int:
        found = iter_rows(io.BytesIO(data), len(data), ContainerStats())
        return sum(orjson.loads(row.data) is not None for row in found)

    def replay() -> list[str]:
        log = log_of(data, "session.jsonl.zstd")
        bodies = (item.encoded.body for item in Replay(build_history(log), Deployment()))
        return [body.sha256() for body in bodies if body is not None]

    def afresh() -> list[str]:
        log = log_of(data, "session.jsonl.zstd")
        bodies = (item.encoded.body for item in Replay(build_history(log), Deployment()))
        return [hashlib.sha256(body.to_bytes()).hexdigest() for body in bodies if body is not None]

    assert replay() == afresh()
    base = best(decode)
    names = ("decompress and parse every row", "the same with places", "replay and digest", "replay, each body afresh")
    for name, seconds in zip(names, (base, best(rows), best(replay), best(afresh)), strict=True):
        print(f"{name:<32} {seconds * 1000:8.0f} ms  {seconds / base:6.1f}×")


if __name__ == "__main__":
    main()
