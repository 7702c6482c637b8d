"""The real pi-ai adapters of four releases as one oracle: a request in, the recorded body out.

0.82.1 comes from npm with dsh-llm-pi-ai 0.1.0-rc.8, the later ones from inside the runtime wheels.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dsh_audit.text import ecma
from dsh_audit.wire.pi import ImageSource, ImageVersion, PiRefusedError, encode_pi_request, resolve_model
from dsh_audit.wire.pi.profile import Catalogue
from tests.harness.oracle_packages import ensure_node_oracle, placed_command
from tests.harness.pi_requests import Release
from tests.harness.runtime_js import ensure_runtime_js

SCRIPT = Path(__file__).parent / "node" / "pi_oracle.mjs"
_HANDLE_ID = f"sha256:{'ab' * 32}"
_IMAGE = bytes((1, 2, 3, 255))


@dataclass(frozen=True, slots=True)
class Subject:
    """One release under test.

    Args:
        pi: version of pi-ai.
        wheel: runtime wheel that holds it; None for the packages of npm.
    """

    pi: str
    wheel: str | None
    release: Release

    def root(self) -> Path:
        """The directory whose ``node_modules`` hold the release; installed on first use."""
        return ensure_node_oracle() / "rc8" if self.wheel is None else ensure_runtime_js(self.wheel)


SUBJECTS = (
    Subject("0.82.1", None, Release()),
    Subject("0.84.4", "0.1.2rc1", Release("v0", has_budgets=True)),
    Subject("0.85.1", "0.1.5rc1", Release("v3", has_budgets=True, has_output_flags=True)),
    Subject("1.3.0", "0.2.1rc2", Release("v4", has_budgets=True, has_output_flags=True)),
)


@dataclass(frozen=True, slots=True)
class PiOracle:
    """A Node process that answers one request a line."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def ask(self, request: Any) -> Any:
        """What the real adapter does: body, url, headers, error, model, handle (node/pi_oracle.mjs)."""
        self.stdin.write(json.dumps(request).replace("Infinity", "1e400").encode() + b"\n")
        self.stdin.flush()
        return ecma.parse(self.stdout.readline())


@contextmanager
def pi_oracle(subject: Subject) -> Iterator[PiOracle]:
    """Run the oracle of one release."""
    command = placed_command(SCRIPT, subject.root())
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        yield PiOracle(process.stdin, process.stdout)
        process.stdin.close()


def read_image(attachment: dict[str, Any]) -> ImageVersion:
    """What the oracle answers for every attachment."""
    return ImageVersion(_IMAGE, attachment["mediaType"], attachment["width"], attachment["height"])


def encode(
    request: Any, catalogue: Catalogue | None, subject: Subject, handle: str | None
) -> tuple[dict[str, Any], bytes | None, str]:
    """Our side of the same request: (resolved model, body or None, why there is none)."""
    request = ecma.parse(json.dumps(request).replace("Infinity", "1e400"))

    def handle_of(attachment: dict[str, Any], _version: ImageVersion) -> str | None:
        return handle and handle.replace(_HANDLE_ID, attachment["attachmentId"])

    route, options, profile = request["route"], request["options"], request["profile"]
    model = resolve_model(route, options["model"], profile, catalogue)
    try:
        body = encode_pi_request(
            options,
            model,
            profile=profile,
            key=request["key"],
            env=request["env"],
            version=subject.pi,
            images=ImageSource(read_image, handle_of),
        )
    except PiRefusedError as refusal:
        assert refusal.kind == "no-request", refusal
        return model, None, refusal.message
    return model, body.to_bytes(), ""
