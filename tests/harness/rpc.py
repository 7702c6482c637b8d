"""A small client for the runtime's JSON-RPC protocol: one JSON object a line over stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = Any


class RpcError(RuntimeError):
    """The runtime answered with an error, did not answer in time, or died."""


class RpcClient:
    """One runtime process in its own process group; `close` always reaps the whole group."""

    def __init__(self, argv: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.notes: list[tuple[str, Json]] = []
        self.stderr: list[str] = []
        self._answers: queue.Queue[Json] = queue.Queue()
        self._changed = threading.Condition()
        self._ended = False
        self._next = 0
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        self._threads = [
            threading.Thread(target=f, daemon=True) for f in (self._read_stdout, self._read_stderr)
        ]
        for thread in self._threads:
            thread.start()

    def call(self, method: str, params: Json, timeout: float = 60.0) -> Json:
        """Send one request and wait for its answer. Calls are not concurrent."""
        self._next += 1
        row = {"jsonrpc": "2.0", "id": str(self._next), "method": method, "params": params}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=timeout)
        except (OSError, queue.Empty) as error:
            raise RpcError(f"{method}: no answer ({error!r}); {self._tail()}") from error
        if answer is None:
            raise RpcError(f"{method}: the runtime ended; {self._tail()}")
        if "error" in answer:
            raise RpcError(f"{method}: {answer['error']}; {self._tail()}")
        return answer.get("result")

    def prompt(self, session: str, blocks: list[Json]) -> int:
        """Queue a prompt; returns the position in `notes` to wait from."""
        start = len(self.notes)
        self.call("session/prompt", {"sessionId": session, "contentBlocks": blocks})
        return start

    def wait_idle(self, session: str, start: int, timeout: float = 90.0) -> str:
        """Wait until the session is idle after the prompt queued at `start`; returns how the turn ended."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                ended = _turn_end(self.notes, session, start)
                if ended is not None:
                    return ended
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise RpcError(f"session {session} did not become idle; {self._tail()}")
                self._changed.wait(left)

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)

    def close(self) -> None:
        """Shut down in order, then end whatever is left of the process group."""
        with contextlib.suppress(RpcError):
            if self._process.poll() is None:
                self.call("shutdown", None, timeout=10)
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self.kill()
        for thread in self._threads:
            thread.join(5)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if "method" in row:
                with self._changed:
                    self.notes.append((row["method"], row.get("params") or {}))
                    self._changed.notify_all()
            else:
                self._answers.put(row)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._answers.put(None)

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.stderr.append(line.decode("utf-8", "replace").rstrip())

    def _tail(self) -> str:
        return f"exit {self._process.poll()}, stderr: " + "\n".join(self.stderr[-30:])


def _turn_end(notes: list[tuple[str, Json]], session: str, start: int) -> str | None:
    reason, received = "", False
    for method, payload in notes[start:]:
        if payload.get("sessionId") != session:
            continue
        event = payload.get("event") or {}
        received = received or event.get("type") == "agent/inbox/spliced"
        if event.get("type") == "turn/end":
            reason = str((event["data"].get("reason") or {}).get("kind"))
        if received and method == "session.status" and payload.get("status") == "idle":
            return reason
    return None
