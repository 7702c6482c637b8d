"""The least work that reading can cost, in CPU seconds of this process: the yardstick that moves with the machine.

Run: python floor.py cold LOG | warm LOG | bodies DIR. The work on a log: decompress every frame with one decoder, split
into rows, ``orjson.loads`` of each; on bodies: read each file and take its SHA-256. Imports are done before the clock
starts; ``warm`` and ``bodies`` are medians after two untimed rounds.
"""

from __future__ import annotations

import hashlib
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
import zstandard

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def parse_rows(path: Path) -> int:
    """Number of rows, each of them parsed."""
    data = path.read_bytes()
    if data.startswith(_ZSTD_MAGIC):
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            data = reader.read()
    rows = [orjson.loads(line) for line in data.split(b"\n") if line]
    return len(rows)


def digest_bodies(folder: Path) -> int:
    """Number of bodies, each of them read and hashed."""
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in sorted(folder.glob("*.body"))]
    return len(digests)


def once(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def warm(work: Callable[[], object], runs: int = 15) -> float:
    """Median CPU seconds of runs after two untimed ones."""
    for _ in range(2):
        work()
    return statistics.median(once(work) for _ in range(runs))


def main(mode: str, name: str) -> None:
    path = Path(name)
    if mode == "bodies":
        print(warm(lambda: digest_bodies(path)))
    else:
        print((once if mode == "cold" else warm)(lambda: parse_rows(path)))


if __name__ == "__main__":
    main(*sys.argv[1:])
