"""Captures with one or two requests missing: every other one keeps the dispatch and the verdict it had."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from dsh_audit.capture import read_capture
from dsh_audit.cli.common import open_many, read_deployment, read_history
from dsh_audit.replay.judge import PairResult
from dsh_audit.replay.verification import verify

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.glob("*/captures") if len(list(path.glob("*.meta.json"))) > 1)
SEEDS = range(5)
CHECKED = {"identical", "identical-except-unlogged", "same-json"}


def place(pair: PairResult) -> tuple[str | None, int] | None:
    return None if pair.rebuilt is None else (pair.session_id, pair.rebuilt.index)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_the_others_keep_their_place(case: Path) -> None:
    known = case / "deployment.json"
    deployment = read_deployment(str(known) if known.is_file() else None)
    opened, _ = open_many([str(case / "sessions")], None, None)
    histories = [read_history(log, files) for log, files in opened]
    archive = read_capture(case / "captures")
    full = {pair.captured: pair for pair in verify(histories, [archive], deployment).pairs}
    for seed in SEEDS:
        chance = random.Random(f"{case.name} {seed}")
        gone = set(chance.sample(archive.exchanges, min(chance.choice((1, 2)), len(archive.exchanges) - 1)))
        left = replace(archive, exchanges=tuple(one for one in archive.exchanges if one not in gone))
        for pair in verify(histories, [left], deployment).pairs:
            if pair.captured is not None and (before := full[pair.captured]).verdict in CHECKED:
                told = (pair.captured, place(pair), pair.verdict)
                assert told == (pair.captured, place(before), before.verdict), f"seed {seed}, {gone}"
