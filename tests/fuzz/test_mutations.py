"""Seeded damage to the golden logs: whatever the bytes, no command ends in an internal error."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run

GOLDEN = Path(__file__).parents[2] / "golden"
LOGS = sorted(path for path in GOLDEN.glob("*/sessions/**/session*.jsonl") if path.stat().st_size < 200_000)
ODD: list[Any] = [None, True, 0, -1, 1.5, 1e308, "", "\ud800", "\0", [], {}, [1], {"a": 1}, 2**53]
COMMANDS = ("sessions", "inspect", "requests", "drift", "cache", "uploads", "lint", "render --request 0", "export")
ROUNDS = int(os.environ.get("DSH_AUDIT_FUZZ_ROUNDS", "40"))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each container of a value with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *places(value[key])]
    return found


def spoil(data: bytes, rnd: random.Random) -> bytes:
    """The log with a member of another type, or with bytes flipped, cut or repeated."""
    rows = data.split(b"\n")
    at = rnd.randrange(len(rows) - 1)
    if rnd.random() < 0.75 and rows[at].startswith(b"{"):
        value = json.loads(rows[at])
        owner, key = rnd.choice(places(value))
        owner[key] = rnd.choice(ODD)
        rows[at] = json.dumps(value).encode()
        return b"\n".join(rows)
    cut, size = rnd.randrange(len(data)), rnd.randint(1, 40)
    return data[:cut] + rnd.choice([b"", bytes([data[cut] ^ 1]), data[cut : cut + size] * 2]) + data[cut + size :]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_logs_are_never_our_error(seed: int, tmp_path: Path) -> None:
    rnd = random.Random(seed)
    for _ in range(ROUNDS):
        source = rnd.choice(LOGS)
        (log := tmp_path / source.name).write_bytes(spoil(source.read_bytes(), rnd))
        for command in rnd.sample(COMMANDS, 3):
            done = run("--debug", *command.split(), log)
            assert done.returncode in (0, 1, 2) and b"Traceback" not in done.stderr, (seed, source, command)
        log.unlink()


@pytest.mark.parametrize("option", ["LOG", "--deployment", "--prices", "--capture", "--constant", "-o", "--home"])
def test_a_name_that_no_file_can_have_is_told(option: str) -> None:
    log, name = str(LOGS[0]), "a\0b"
    arguments = {
        "LOG": ["inspect", name], "--prices": ["cache", log, "--prices", name], "-o": ["inspect", log, "-o", name],
        "--capture": ["verify", log, "--capture", name], "--home": ["requests", log, "--home", name],
        "--constant": ["requests", log, "--constant", f"compaction-instruction={name}"],
        "--deployment": ["requests", log, "--deployment", name],
    }[option]  # fmt: skip
    done = run(*arguments)
    assert done.returncode == 2 and b"internal" not in done.stderr and b"error" in done.stderr.lower()
