"""Capturing tools as people use them, each version in an environment of its own outside the repository."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.harness.runtimes import cache_root

MITMPROXY = "mitmproxy==12.3.1" if sys.version_info >= (3, 12) else "mitmproxy==11.0.2"
VCRPY = "vcrpy==9.4.2"
CLAUDE_TAP = "claude-tap==0.1.146"


class ToolUnavailableError(RuntimeError):
    """The tool could not be installed."""


def ensure_tool(name: str, *requirements: str) -> Path:
    """The environment with a tool, made on first use: its ``bin`` directory."""
    target = cache_root().parent / "tools" / f"{name}-py{sys.version_info[0]}.{sys.version_info[1]}"
    if not (target / "complete").is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target):
            if not (target / "complete").is_file():
                _install(target, requirements)
    return target / "bin"


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[None]:
    import fcntl

    with target.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(target: Path, requirements: tuple[str, ...]) -> None:
    """A virtual environment knows its place, so it is made there; a file says when it is complete."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(target)], check=True, capture_output=True, timeout=300)
    pip = [str(target / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for attempt in range(4):
        time.sleep(attempt * 4)
        done = subprocess.run(
            [*pip, *requirements], capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL
        )
        if done.returncode == 0:
            (target / "complete").touch()
            return
    raise ToolUnavailableError(f"{requirements}: {done.stderr.strip()[-2000:]}")


@contextlib.contextmanager
def mitmdump(upstream: int, flows: Path, *options: str) -> Iterator[int]:
    """mitmdump as a reverse proxy before a loopback port, writing a flow file; gives the port it listens on."""
    program = ensure_tool("mitmproxy", MITMPROXY) / "mitmdump"
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="dsh-audit-mitm-") as confdir:
        argv = [str(program), "--mode", f"reverse:http://127.0.0.1:{upstream}", "--listen-host", "127.0.0.1"]
        argv += ["--listen-port", str(port), "-w", str(flows), "--set", f"confdir={confdir}", *options]
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": confdir, "LANG": "C.UTF-8"}
        with running(argv, environment, port):
            yield port


@contextlib.contextmanager
def running(argv: list[str], environment: dict[str, str], port: int, cwd: Path | None = None) -> Iterator[list[str]]:
    """A server on a port; gives the lines it said, complete once it was interrupted."""
    said: list[str] = []
    with tempfile.TemporaryFile() as output:
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
        with subprocess.Popen(argv, env=environment, cwd=cwd, **streams) as process:
            try:
                _wait_for(port, process)
                yield said
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                output.seek(0)
                said += output.read().decode("utf-8", "replace").splitlines()


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise ToolUnavailableError("the server did not start")
