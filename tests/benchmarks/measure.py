"""Commands as fresh processes, with what they cost; two sides run them in turn."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_NEVER_PASSED = ("PYTHON", "DSH_", "CI", "GITHUB_", "DEEPSEEK_")


class BenchError(Exception):
    """A command failed or answered wrongly: its time would mean nothing."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds (user + system) and peak memory of a process and its children, and its standard output."""

    cpu_s: float
    rss_mb: float
    out: bytes


def environment() -> dict[str, str]:
    """The caller's, without what changes how either side runs."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_NEVER_PASSED)}


def run_process(command: Sequence[str], folder: Path, accepted: Sequence[int] = (0,)) -> Cost:
    """Run to the end; the answer goes to a file, so that nobody waits for a reader."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        process = subprocess.Popen(command, cwd=folder, env=environment(), **streams)  # type: ignore[call-overload]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode not in accepted:
            err.seek(0)
            said = err.read().decode("utf-8", "replace")[-500:]
            raise BenchError(f"exit {process.returncode}: {' '.join(command)}\n{said}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read())


@dataclass(frozen=True, slots=True)
class Side:
    """One installation of the tool, by its Python."""

    name: str
    python: str

    def command(self, *words: str) -> list[str]:
        return [self.python, "-m", "dsh_audit", *words]

    def script(self, path: Path, *words: str) -> list[str]:
        return [self.python, str(path), *words]


NEW = Side("new", sys.executable)


def in_turn(jobs: Sequence[Callable[[], Cost]], runs: int) -> list[list[Cost]]:
    """Costs a job: A B C A B C …, so that a busy minute meets all of them alike."""
    rounds = [[job() for job in jobs] for _ in range(runs)]
    return [list(costs) for costs in zip(*rounds, strict=True)]


def median_s(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.cpu_s for cost in costs)


def net_s(costs: Sequence[Cost], base: Sequence[Cost]) -> float:
    """Median CPU less that of the base, at least a millisecond: less cannot be told from nothing."""
    return max(median_s(costs) - median_s(base), 0.001)


def exponent(small_s: float, large_s: float, factor: float) -> float:
    """p where the cost grows as size to the power of p."""
    return math.log(large_s / small_s) / math.log(factor)
