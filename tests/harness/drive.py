"""Run one scripted case against a real runtime and leave its sessions and captures.

A case is a dict (JSON types only):
    case, shows       name; what it is for
    runtime           wheel version
    state             first state of the toy plugin: {tools, system, config}
    script            replies, see replies.py
    compression, pack, profile, persona, no_checkpoints, title_max_tokens
    cache_grain       report usage from a true prefix cache of this grain
    deployment        what dsh-audit must be told to verify the case
    base_url_from_env true: the harness is pointed at the server by DEEPSEEK_BASE_URL alone
    fresh_only        true: never recorded, because the data holds upstream prose
    leftover          true: how many replies are asked for differs between releases
    phases            each a new process on the same home:
        do            operations, below
        runtime       another version from here on
        rows, insert  patches by row id, added rows
        provider, model, effort, max_tokens, resume, persona, env
An operation is a list whose first member names it:
    prompt TEXT|BLOCKS [SESSION] [{"hanging": [operation, ...]}]    "hanging": done while the reply hangs
    state {tools, system, config}     cancel SESSION     compact SESSION     title SESSION     kill
    sleep SECONDS
    fork {id, through, meta, options} [SESSION]     child TEXT ID: a prompt to a session made by fork
    append SESSION TYPE DATA [INTENT]     resume SESSION     truncate SESSION BYTES (between processes)
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.capture_server import CaptureServer
from tests.harness.compose import Places, build_launch
from tests.harness.prefix_cache import PrefixCache
from tests.harness.rpc import RpcClient, RpcError
from tests.harness.runtimes import RUNTIMES

Json = Any
Through = Callable[[int], contextlib.AbstractContextManager[int]]

PLUGIN = Path(__file__).parent / "toy_plugin"


@dataclass(slots=True)
class Outcome:
    """What happened, for assertions: one line an operation, and replies nobody asked for."""

    lines: list[str] = field(default_factory=list)
    unused: list[Json] = field(default_factory=list)
    may_leave: bool = False

    @property
    def failures(self) -> list[str]:
        """Operations that ended in an error, and replies left over."""
        failed = [line for line in self.lines if "!" in line.split(" ", 1)[0]]
        return failed + [f"unused {reply}" for reply in self.unused if not self.may_leave]


def run_case(case: Json, out_dir: Path, root: Path | None = None, through: Through = contextlib.nullcontext) -> Outcome:
    """Run a case; `out_dir` gets `sessions/`, `captures/` and what else the home holds for an audit.

    Args:
        root: directory for home, working directory and files of the run; a temporary one by default. Its
            path shows in the logs.
        through: a proxy before the server's port, as a context that gives its own port.
    """
    outcome = Outcome(may_leave=case.get("leftover", False))
    with _root(root) as base, _server(case, out_dir / "captures") as server, through(server.port) as port:
        places = Places(base / "home", base / "ws", base / "run", port)
        for folder in (places.home, places.cwd, places.work / "nobody"):
            folder.mkdir(parents=True)
        shutil.copytree(PLUGIN, places.work / "plugin")
        (places.work / "state.json").write_text(json.dumps(case.get("state", {})))
        for index, phase in enumerate(case["phases"]):
            _Phase(case, {**phase, "index": index}, places, server, outcome).run()
        outcome.unused = server.unused
        _collect(places.home, out_dir)
    return outcome


class _Phase:
    """One process and the operations on it."""

    def __init__(self, case: Json, phase: Json, places: Places, server: CaptureServer, outcome: Outcome) -> None:
        self.case, self.phase, self.places = case, phase, places
        self.server, self.outcome = server, outcome
        self.killed = False
        self.client: RpcClient | None = None
        self.runtime = RUNTIMES[phase.get("runtime", case["runtime"])]

    def run(self) -> None:
        """Start the process, do the operations, end the process."""
        try:
            for operation in self.phase["do"]:
                self._do(operation)
        finally:
            self._stop()

    def _do(self, operation: Json) -> None:
        name, *arguments = operation
        try:
            said = getattr(self, f"_op_{name}")(*arguments)
        except RpcError as error:
            if not self.killed:
                self.outcome.lines.append(f"{name}! {error}")
                raise
            said = "killed"
        self.outcome.lines.append(f"{name} {said if said is not None else ''}")

    def _start(self) -> RpcClient:
        if self.client is not None:
            return self.client
        (self.places.work / "toy-port").unlink(missing_ok=True)
        launch = build_launch(self.runtime, self.case, self.phase, self.places)
        self.client = RpcClient(launch.argv, launch.env, self.places.cwd)
        setting = {name: self.phase.get(name, self.case.get(name)) for name in ("max_tokens", "effort")}
        hello = {
            "cwd": str(self.places.cwd),
            "provider": self.phase.get("provider", self.case.get("provider", "deepseek-official")),
            "model": self.phase.get("model", self.case.get("model", "deepseek-flash")),
        }
        hello |= {"maxTokens": setting["max_tokens"]} if setting["max_tokens"] else {}
        hello |= {"reasoningEffort": setting["effort"]} if setting["effort"] else {}
        self.client.call("initialize", hello)
        return self.client

    def _stop(self) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None

    def _op_prompt(self, content: Json, session: str = "sess-1", options: Json = None) -> str:
        client = self._start()
        self.server.hanging.clear()
        self.server.go_on.clear()
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        start = client.prompt(session, blocks)
        hanging = (options or {}).get("hanging")
        if hanging is not None:
            if not self.server.hanging.wait(60):
                raise RpcError("no reply hangs")
            for operation in hanging:
                self._do(operation)
            self.server.go_on.set()
        if self.killed:
            return "killed"
        return client.wait_idle(session, start)

    def _op_kill(self) -> None:
        client = self._start()
        self.killed = True
        client.kill()

    def _op_sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _op_resume(self, session: str) -> None:
        self._start().call("session/resume", {"sessionId": session})

    def _op_state(self, state: Json) -> Json:
        return self._call({"do": "state", "state": state})

    def _op_cancel(self, session: str = "sess-1") -> Json:
        return self._call({"do": "cancel", "session": session})

    def _op_compact(self, session: str = "sess-1") -> Json:
        return self._call({"do": "compact", "session": session})

    def _op_title(self, session: str = "sess-1") -> Json:
        return self._call({"do": "title", "session": session})

    def _op_fork(self, child: Json, session: str = "sess-1") -> Json:
        return self._call({"do": "fork", "session": session, "child": child})

    def _op_append(self, session: str, kind: str, data: Json, intent: Json = None) -> Json:
        command = {"do": "append", "session": session, "type": kind, "data": data}
        return self._call(command | ({"intent": intent} if intent else {}))

    def _op_child(self, text: str, session: str) -> str:
        client = self._start()
        start = len(client.notes)
        self._call({"do": "prompt", "session": session, "text": text, "id": f"message-{session}-{start}"})
        return client.wait_idle(session, start)

    def _op_truncate(self, session: str, size: int) -> None:
        (log,) = [p for p in self.places.home.glob(f"sessions/*/{session}/session*") if p.suffix != ".lock"]
        data = log.read_bytes()
        log.write_bytes(data[: len(data) - size])

    def _call(self, command: Json) -> Json:
        self._start()
        port_file = self.places.work / "toy-port"
        deadline = time.monotonic() + 20
        while not (port_file.is_file() and port_file.read_text()):
            if time.monotonic() > deadline:
                raise RpcError("the toy plugin did not start")
            time.sleep(0.02)
        url = f"http://127.0.0.1:{port_file.read_text()}/"
        request = urllib.request.Request(url, json.dumps(command).encode())
        with urllib.request.urlopen(request, timeout=90) as response:
            answer = json.loads(response.read())
        if "error" in answer:
            raise RpcError(f"toy command {command['do']}: {answer['error']}")
        return answer["said"]


def _server(case: Json, captures: Path) -> CaptureServer:
    cache = PrefixCache(case["cache_grain"]) if "cache_grain" in case else None
    return CaptureServer(captures, case["script"], int(case.get("title_max_tokens", 64)), cache)


@contextlib.contextmanager
def _root(root: Path | None) -> Iterator[Path]:
    if root is None:
        with tempfile.TemporaryDirectory(prefix="dsh-audit-run-") as name:
            yield Path(name)
        return
    root.mkdir(parents=True)
    try:
        yield root
    finally:
        shutil.rmtree(root)


def _collect(home: Path, out_dir: Path) -> None:
    ignore = shutil.ignore_patterns("session.lock")
    for name in ("sessions", "attachments", "cache/attachments", "llm-deepseek"):
        if (home / name).is_dir():
            target = out_dir / (name if name == "sessions" else f"home/{name}")
            shutil.copytree(home / name, target, dirs_exist_ok=True, ignore=ignore)
