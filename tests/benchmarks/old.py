"""The commit that figures are compared with, installed in an environment of its own."""

from __future__ import annotations

import subprocess
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from tests.benchmarks.measure import BenchError, Side, environment

COMMIT = "2f4f4b4"
ROOT = Path(__file__).parents[2]


def named_side(checkout: Path) -> Side:
    """A ready checkout with its ``.venv``."""
    python = checkout.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        raise BenchError(f"{checkout}: no .venv/bin/python here")
    return Side("old", str(python))


def installed_side(folder: Path, commit: str) -> Side:
    """Check the commit out below ``folder`` and install it, with the libraries in the versions that this side runs."""
    checkout = folder / "old"
    checkout.mkdir()
    source = folder / "old.tar"
    _run(["git", "-C", str(ROOT), "archive", "-o", str(source), commit])
    _run(["tar", "-xf", str(source), "-C", str(checkout)])
    venv.create(checkout / ".venv", with_pip=True)
    installed = [f"{dist.name}=={dist.version}" for dist in metadata.distributions() if dist.name != "dsh-audit"]
    (folder / "constraints.txt").write_text("\n".join(installed) + "\n", "utf-8")
    side = named_side(checkout)
    pip = [side.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "-c", str(folder / "constraints.txt"), str(checkout)])
    return side


def compile_package(side: Side) -> None:
    """Both sides start from byte code."""
    code = "import compileall, dsh_audit as d; compileall.compile_dir(d.__path__[0], quiet=1)"
    _run([side.python, "-c", code])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command[:6])} … failed: {done.stderr[-500:]}")
