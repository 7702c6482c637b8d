"""What dsh-audit prints for every recorded case, kept in ``golden/<case>/expected/``.

``python -m tests.expected --update [CASE…]`` writes the files again; ``tests/test_golden_expected.py`` compares them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cli import run

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(path.parent for path in GOLDEN.glob("*/case.json"))


def sessions_of(case: Path) -> dict[str, list[int]]:
    """Session id → format versions of its log files, in order."""
    found: dict[str, list[int]] = {}
    for log in sorted(case.glob("sessions/*/*/session*.jsonl*")):
        version = log.name.split(".")[1]
        found.setdefault(log.parent.name, []).append(int(version[1:]) if version.startswith("v") else 0)
    return {ident: sorted(versions) for ident, versions in sorted(found.items())}


def commands_of(case: Path) -> dict[str, list[str]]:
    """Name of an output → the command that prints it, with paths relative to the case."""
    known = ["--deployment", "deployment.json"] if (case / "deployment.json").is_file() else []
    known += ["--home", "home"] if (case / "home" / "attachments").is_dir() else []
    captures = ["--capture", "captures"] if (case / "captures").is_dir() else []
    commands = {name: [name, "sessions", *known] for name in ("cache", "uploads")}
    if captures:
        commands["verify"] = ["verify", "sessions", *captures, *known]
        commands["uploads-captured"] = [*commands["uploads"], *captures]
    sessions = sessions_of(case)
    for ident, versions in sessions.items():
        for version in versions:
            name = f"-{ident}" if len(sessions) > 1 else ""
            chosen = ["--session", ident] if name else []
            if version != versions[-1]:
                name, chosen = f"{name}-v{version}", [*chosen, "--generation", str(version)]
            for command in ("requests", "drift"):
                commands[command + name] = [command, "sessions", *chosen, *known]
    return dict(sorted(commands.items()))


def outputs_of(case: Path) -> dict[str, bytes]:
    """File name in ``expected/`` → its content, from running every command of the case."""
    files, statuses = {}, {}
    for name, command in commands_of(case).items():
        with contextlib.chdir(case):
            done = run("--no-config", *command, "--format", "json")
        statuses[name] = {"command": " ".join(command), "exit": done.returncode, "stderr": done.stderr.decode()}
        if done.stdout:
            files[f"{name}.json"] = done.stdout
    return {"commands.json": pretty(statuses), **files}


def pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def kept(case: Path) -> dict[str, bytes]:
    """The files that ``expected/`` holds now."""
    return {path.name: path.read_bytes() for path in sorted((case / "expected").glob("*"))}


def update(cases: Iterable[Path]) -> None:
    """Write what is printed now; remove what is left over; say what changed."""
    for case in cases:
        now, before = outputs_of(case), kept(case)
        (case / "expected").mkdir(exist_ok=True)
        for name in sorted(now.keys() | before.keys()):
            path = case / "expected" / name
            if name not in now:
                path.unlink()
            elif now[name] != before.get(name):
                path.write_bytes(now[name])
            else:
                continue
            print(path.relative_to(GOLDEN))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.expected", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true", required=True, help="write what is printed now")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases; all without any")
    options = parser.parse_args(arguments)
    if os.environ.get("CI"):
        parser.error("expected outputs are never updated in CI")
    unknown = sorted(set(options.cases) - {case.name for case in CASES})
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}")
    update(case for case in CASES if not options.cases or case.name in options.cases)


if __name__ == "__main__":
    main(sys.argv[1:])
