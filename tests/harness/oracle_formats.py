"""The released session formats as oracle: their JavaScript, cut out of the runtime of 0.2.1, run under Node.

The steps up to format 3 exist as npm packages, but the step to format 4 and the stream packer of the released
packages exist only inside the runtime's executable, as plain module text. The texts stay in the cache directory.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dsh_audit.text import ecma
from tests.harness.oracle_packages import ensure_node_oracle, node_binary, run_script
from tests.harness.runtimes import ensure_runtime, executable

RUNTIME = "0.2.1rc2"
SCRIPT = Path(__file__).parent / "node" / "formats.mjs"
STORAGE_SCRIPT = SCRIPT.with_name("storage.mjs")

# Package name → start of the export line that ends its module.
_MODULES = {
    "dsh-session-format": b"export { SessionFormatError, SessionFormatEventCollector,",
    "dsh-session-format-v0-to-v1": b"export { RELEASED_V0_EVENT_DISPOSITIONS,",
    "dsh-session-format-v1-to-v2": b"export { RELEASED_V2_EVENT_DISPOSITIONS,",
    "dsh-session-format-v2-to-v3": b"export { assertReleasedV3Header,",
    "dsh-session-format-v3-to-v4": b"export { RELEASED_V3_EVENT_TYPES,",
}
_STREAM_MARK = b"export class AssistantStreamAccumulator"
_STREAM_END = b"//# sourceMappingURL=assistant-stream.js.map"


def ensure_format_oracle() -> Path:
    """Directory with a ``node_modules`` of the released formats; filled on first use."""
    root = ensure_node_oracle()
    place = root / f"bundle-{RUNTIME}"
    place.mkdir(exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            _fill(place / "node_modules" / "@deepseek-ai")
            (place / "complete").touch()
    return place


def _fill(scope: Path) -> None:
    with executable(ensure_runtime(RUNTIME)).open("rb") as file:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for name, export in _MODULES.items():
            _write_package(scope / name, _cut_module(text, export))
        _write_package(scope / "dsh-llm", _cut_stream(text))
    (scope / "dsh-llm" / "assembler.js").write_text("export class BlockAssembler {}\n", "utf-8")
    link = scope / "dsh-util-values"
    link.unlink(missing_ok=True)
    link.symlink_to(Path("../../../formats/node_modules/@deepseek-ai/dsh-util-values"), target_is_directory=True)


def _write_package(directory: Path, source: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    manifest = {"name": f"@deepseek-ai/{directory.name}", "type": "module", "exports": "./index.js"}
    (directory / "package.json").write_text(json.dumps(manifest), "utf-8")
    (directory / "index.js").write_bytes(source)


def _cut_module(text: mmap.mmap, export: bytes) -> bytes:
    """A bundled module: from its first import line to its one export line."""
    at = text.find(export)
    end = text.find(b"\n", at)
    start = text.rfind(b"\nimport ", 0, at)
    while True:
        previous = text.rfind(b"\n", 0, start)
        if not text[previous + 1 : start].startswith(b"import "):
            return text[start + 1 : end + 1]
        start = previous


def _cut_stream(text: mmap.mmap) -> bytes:
    at = text.find(_STREAM_MARK)
    return text[text.rfind(b"\nimport { assertNever", 0, at) + 1 : text.find(_STREAM_END, at)]


def raw_text(value: Any) -> str:
    """JSON text that keeps −0 and infinite numbers, which JSON.stringify does not."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{ecma.stringify_text(key)}:{raw_text(value[key])}" for key in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(raw_text, value)) + "]"
    if ecma.is_negative_zero(value):
        return "-0"
    return "1e400" if value == float("inf") else ecma.stringify_text(value)


def ask(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send requests to one run of ``formats.mjs``; see its head for their shape."""
    place = ensure_format_oracle()
    script = place / SCRIPT.name
    script.write_bytes(SCRIPT.read_bytes())
    command = [str(node_binary(place.parent)), str(script)]
    done = subprocess.run(command, input=_lines(requests), capture_output=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode("utf-8", "replace")[-2000:])
    return _answers(done.stdout)


def ask_storage(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send requests to one run of ``storage.mjs``; see its head for their shape."""
    return _answers(run_script(STORAGE_SCRIPT, package_set="rc2", stdin=_lines(requests)))


def _lines(requests: Sequence[dict[str, Any]]) -> bytes:
    return "".join(raw_text(each) + "\n" for each in requests).encode()


def _answers(output: bytes) -> list[dict[str, Any]]:
    return [ecma.parse(line) for line in output.split(b"\n")[:-1]]
