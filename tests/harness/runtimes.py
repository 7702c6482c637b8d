"""The official runtime wheels as oracle: install each version once, outside the repository.

The wheel holds one self-contained executable, so no Node and no other package is needed. We speak its
JSON-RPC protocol ourselves (rpc.py), not with the Python SDK, because the cases kill processes, send
lone surrogates and bound every wait.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DISTRIBUTION = "deepseek-harness-runtime-bin"


@dataclass(frozen=True, slots=True)
class Runtime:
    """What differs between the released runtimes.

    Args:
        version: wheel version.
        log_format: format version that it writes.
        protocol: what the DeepSeek adapter speaks.
        has_profiles: started by profile and patch files; before that by one complete composition file.
        resumes: the server has a resume call; before that the toy plugin turns a create into a resume.
    """

    version: str
    log_format: int
    protocol: Literal["chat", "messages"]
    has_profiles: bool
    resumes: bool


RUNTIMES = {
    r.version: r
    for r in (
        Runtime("0.1.1rc1", 0, "chat", has_profiles=False, resumes=False),
        Runtime("0.1.2rc1", 0, "chat", has_profiles=True, resumes=False),
        Runtime("0.1.5rc1", 3, "chat", has_profiles=True, resumes=False),
        Runtime("0.2.1rc2", 4, "messages", has_profiles=True, resumes=True),
    )
}


class RuntimeUnavailableError(RuntimeError):
    """The runtime could not be installed."""


def cache_root() -> Path:
    """Directory of all installed runtimes: DSH_AUDIT_RUNTIMES, else below the user's cache directory."""
    configured = os.environ.get("DSH_AUDIT_RUNTIMES")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dsh-audit" / "runtimes"


def ensure_runtime(version: str, attempts: int = 5) -> Path:
    """Directory with one installed runtime version; installs it on first use.

    The installation happens beside the final place and is renamed into it, so that a broken one is never used
    and two processes may race.

    Raises:
        RuntimeUnavailableError: pip failed `attempts` times.
    """
    target = cache_root() / version
    if executable(target).is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    failure = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(min(60.0, 2.0**attempt))
        failure = _install(version, target)
        if executable(target).is_file():
            return target
    raise RuntimeUnavailableError(f"{DISTRIBUTION}=={version}: {failure}")


def executable(target: Path) -> Path:
    """The executable inside an installed runtime directory; may not exist."""
    folder = target / "deepseek_harness_runtime" / "runtime"
    names = ("deepseek-harness-sdk-runtime-linux-x64", "dsh-jsonrpc-agent-pkg-linux-x64")
    return next((folder / name for name in names if (folder / name).is_file()), folder / names[0])


def _install(version: str, target: Path) -> str:
    staging = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=target.parent))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    command += ["--retries", "5", "--timeout", "60", "--target", str(staging), f"{DISTRIBUTION}=={version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
        if done.returncode:
            return done.stderr.strip()[-2000:]
        if not executable(target).is_file():
            shutil.rmtree(target, ignore_errors=True)
            staging.rename(target)
        return ""
    except (subprocess.TimeoutExpired, OSError) as error:
        return str(error)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
