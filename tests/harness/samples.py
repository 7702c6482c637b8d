"""Make ``tests/samples``: bodies of a golden case sent through each capturing tool, with the toy server behind it.

    python -m tests.harness.samples DIRECTORY

The tests read what this wrote once, with the versions in the file names; ``test_captures_fresh`` makes them anew.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.harness import tools
from tests.harness.capture_server import CaptureServer

GOLDEN = Path(__file__).parents[2] / "golden"
CASE = "v0-tools"

_RECORD = """
import json, sys, httpx, vcr
port, case, *cassettes = sys.argv[1:]
for cassette in cassettes:
    kind = "json" if cassette.endswith("json") else "yaml"
    with vcr.VCR(serializer=kind, record_mode="all").use_cassette(cassette):
        for method, path, headers, body in json.load(open(case)):
            httpx.request(method, f"http://127.0.0.1:{port}{path}", headers=headers, content=body.encode())
"""


def requests_of(case: str) -> Iterator[tuple[str, str, dict[str, str], bytes]]:
    """Method, path, headers and body of each captured request of a golden case."""
    for file in sorted((GOLDEN / case / "captures").glob("*.body")):
        meta = json.loads(file.with_suffix("").with_suffix(".meta.json").read_text())
        kept = {name: value for name, value in meta["headers"] if name not in ("host", "connection", "content-length")}
        yield meta["method"], meta["path"], kept, file.read_bytes()


def send(port: int, case: str = CASE) -> None:
    """Post the bodies of a golden case to a loopback port."""
    for method, path, headers, body in requests_of(case):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path, body, headers)
        connection.getresponse().read()
        connection.close()


def record_flows(flows: Path, bundle: Path, *options: str, case: str = CASE) -> None:
    """A flow file of mitmproxy, and beside it what really arrived."""
    with CaptureServer(bundle, []) as server, tools.mitmdump(server.port, flows, *options) as port:
        send(port, case)


def record_cassettes(folder: Path, bundle: Path, *names: str, case: str = CASE) -> None:
    """Cassettes of vcrpy that record httpx."""
    python = tools.ensure_tool("vcrpy", tools.VCRPY, "httpx") / "python"
    wanted = folder / "requests.json"
    items = [(method, path, headers, body.decode()) for method, path, headers, body in requests_of(case)]
    wanted.write_text(json.dumps(items))
    with CaptureServer(bundle, []) as server:
        argv = [str(python), "-c", _RECORD, str(server.port), str(wanted), *(str(folder / name) for name in names)]
        subprocess.run(argv, check=True, timeout=120, stdin=subprocess.DEVNULL)
    wanted.unlink()


def record_trace(trace: Path, bundle: Path, case: str = CASE) -> None:
    """A compact trace of claude-tap in reverse mode."""
    program = str(tools.ensure_tool("claude-tap", tools.CLAUDE_TAP) / "claude-tap")
    home = trace.with_suffix(".home")
    home.mkdir()
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(home), "LANG": "C.UTF-8"}
    port, where = tools.free_port(), "127.0.0.1"
    with CaptureServer(bundle, []) as server:
        argv = [program, "--tap-no-launch", "--tap-host", where, "--tap-port", str(port), "--tap-client", "claude"]
        argv += ["--tap-target", f"http://127.0.0.1:{server.port}", "--tap-proxy-mode", "reverse", "--tap-no-live"]
        with tools.running([*argv, "--tap-no-open"], environment, port, cwd=home) as said:
            send(port, case)
            time.sleep(1)
    (line,) = [line for line in said if "Trace session: " in line]
    ident = line.partition("Trace session: ")[2].strip()
    subprocess.run([program, "export", ident, "-o", str(trace)], check=True, env=environment, timeout=60)


def main(folder: Path) -> None:
    """Write every sample."""
    folder.mkdir(parents=True)
    version = tools.MITMPROXY.partition("==")[2]
    har = folder / f"mitmproxy-{version}.har"
    record_flows(folder / f"mitmproxy-{version}.mitm", folder / "b1", "--set", f"hardump={har}")
    record_cassettes(folder, folder / "b2", "vcrpy-9.4.2.yaml", "vcrpy-9.4.2.json")
    record_trace(folder / "claude-tap-0.1.146.ctap.json", folder / "b3", case="v0-json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
