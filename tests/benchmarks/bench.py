"""What every row works with: the two sides, their logs and bundles, and runs in turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.make_log import PI_APIS, Shape, write_log
from tests.benchmarks.measure import NEW, BenchError, Cost, Side, in_turn, net_s, run_process
from tests.benchmarks.old import ROOT

HERE = Path(__file__).parent
GOLDEN = ROOT / "golden"
BASE_STEPS = 5

_PROTOCOLS = {"v0": "deepseek-chat-completions", "v4": "deepseek-messages", **PI_APIS}
_FINDINGS = (0, 1)

Job = Callable[[], Cost]
Words = list[str | Path]


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything lies below ``folder``; ``runs`` is the number of rounds that medians are of."""

    folder: Path
    old: Side
    runs: int
    new: Side = NEW

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.old, self.new

    def log(self, shape: Shape) -> Path:
        """The log of a shape, written when it is first asked for."""
        kind = "packed" if shape.packed else "unpacked"
        root = self.folder / "logs" / f"{kind}-{shape.chunks}"
        found = list(root.glob(f"--srv-toy--/{shape.id}/*"))
        return found[0] if found else write_log(shape, root)

    def bundle(self, shape: Shape) -> Path:
        """A capture of the tool's own bodies of this log."""
        folder = self.folder / "bundles" / shape.id
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            run_process(self.new.script(HERE / "library.py", "bundle", str(self.log(shape)), str(folder)), self.folder)
        return folder

    def job(self, side: Side, *words: str | Path) -> Job:
        """One command of the tool; findings are an answer, too."""
        command = side.command(*map(str, words))
        return lambda: run_process(command, self.folder, _FINDINGS)

    def python(self, side: Side, script: str, *words: str | Path) -> Job:
        """A script of this folder that prints CPU seconds first: those count, not the process."""
        command = side.script(HERE / script, *map(str, words))

        def run() -> Cost:
            cost = run_process(command, self.folder)
            return Cost(float(cost.out.split()[0]), cost.rss_mb, cost.out)

        return run

    def costs(self, *jobs: Job) -> list[list[Cost]]:
        return in_turn(jobs, self.runs)

    def compare(self, words: Words, base: Words, *more: Job) -> Compared:
        """Both sides' net CPU of a command, the same with a short log taken off; ``more`` runs in between."""
        jobs = [self.job(side, *line) for line in (words, base) for side in self.sides]
        costs = self.costs(*jobs, *more)
        old, new, old_base, new_base = costs[:4]
        peak = tuple(max(cost.rss_mb for cost in each) for each in (old, new))
        return Compared(net_s(old, old_base), net_s(new, new_base), (peak[0], peak[1]), costs[4:])

    def requests(self, shape: Shape) -> Words:
        """The command that rebuilds every request of a shape."""
        return ["requests", *deployment(shape), self.log(shape)]

    def json(self, side: Side, *words: str | Path) -> Any:
        return json.loads(run_process(side.command(*map(str, words), "--format", "json"), self.folder, _FINDINGS).out)

    def check_requests(self, shape: Shape, *sides: Side) -> None:
        """Every request is rebuilt, over the protocol that the kind stands for, and the sides agree on each digest."""
        answers = []
        for side in sides:
            requests = self.json(side, *self.requests(shape))["requests"]
            protocols = {request["protocol"] for request in requests}
            if len(requests) != shape.steps or protocols != {_PROTOCOLS[shape.kind]}:
                raise BenchError(f"{side.name} {shape.id}: {len(requests)} requests over {protocols}")
            answers.append([request["body"]["sha256"] for request in requests])
        if any(answer != answers[0] for answer in answers):
            raise BenchError(f"{shape.id}: the sides rebuild different bodies")


@dataclass(frozen=True, slots=True)
class Compared:
    """Net CPU seconds of both sides, their peak memory in MB, and the costs of what ran in between."""

    old_s: float
    new_s: float
    peak_mb: tuple[float, float]
    more: list[list[Cost]]

    @property
    def ratio(self) -> float:
        return self.new_s / self.old_s


def deployment(shape: Shape) -> Words:
    """The options that a kind's log needs."""
    return ["--deployment", GOLDEN / f"v4-{shape.kind}" / "deployment.json"] if shape.is_pi else []
