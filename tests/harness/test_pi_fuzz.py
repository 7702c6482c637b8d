"""Our pi-ai bodies against those of the real adapter and package, on random requests.

Oracle: dsh-llm-pi-ai 0.1.0-rc.8 over pi-ai 0.82.1, driven by ``node/pi_oracle.mjs`` with fetch replaced by a
recorder.
Set PI_FUZZ_SEED to repeat a run and PI_FUZZ_COUNT to change its length.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsh_audit import ecma
from dsh_audit.wire.pi import ImageVersion, PiRefusedError, encode_pi_request, resolve_model
from dsh_audit.wire.pi.catalogue import read_catalog
from dsh_audit.wire.pi.profile import Catalogue
from tests.harness.oracle_packages import ensure_node_oracle, script_command
from tests.harness.pi_requests import PROBED_ROUTES, random_request

SCRIPT = Path(__file__).parent / "node" / "pi_oracle.mjs"
COUNT = int(os.environ.get("PI_FUZZ_COUNT", "2600"))
MIN_BODIES = 0.8


class PiOracle:
    """A Node process that answers one request a line."""

    def __init__(self, package_set: str) -> None:
        command = script_command(SCRIPT, package_set)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def ask(self, request: Any) -> Any:
        self.stdin.write(json.dumps(request).replace("Infinity", "1e400").encode() + b"\n")
        self.stdin.flush()
        return ecma.parse(self.stdout.readline())

    def close(self) -> None:
        self.stdin.close()
        self.process.wait(timeout=10)
        self.stdout.close()


@pytest.fixture(scope="module")
def oracle() -> Iterator[PiOracle]:
    process = PiOracle("rc8")
    yield process
    process.close()


@pytest.fixture(scope="module")
def catalogues() -> dict[str, Catalogue]:
    root = ensure_node_oracle() / "rc8"
    found = {provider: read_catalog(root, provider) for provider in PROBED_ROUTES}
    return {provider: catalogue for provider, catalogue in found.items() if catalogue is not None}


def read_image(attachment: dict[str, Any]) -> ImageVersion:
    """What the oracle answers for every attachment."""
    size = attachment["width"], attachment["height"]
    return ImageVersion(bytes((1, 2, 3, 255)), attachment["mediaType"], *size)


def encode(request: Any, catalogues: dict[str, Catalogue]) -> tuple[dict[str, Any], bytes | None, str]:
    """(resolved model, body or None, why there is none)."""
    request = ecma.parse(json.dumps(request).replace("Infinity", "1e400"))
    route, options, profile = request["route"], request["options"], request["profile"]
    model = resolve_model(route, options["model"], profile, catalogues.get(route))
    try:
        body = encode_pi_request(
            options,
            model,
            profile=profile,
            key=request["key"],
            env=request["env"],
            read_image=read_image,
            image_handles=False,
        )
    except PiRefusedError as refusal:
        assert refusal.kind == "no-request", refusal
        return model, None, refusal.message
    return model, body.to_bytes(), ""


def test_bodies_equal_those_of_the_real_adapter(
    oracle: PiOracle, catalogues: dict[str, Catalogue], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("PI_FUZZ_SEED", str(time.time_ns() % 1_000_000_007)))
    rng = Random(seed)
    models = {provider: catalogue.models for provider, catalogue in catalogues.items()}
    tally: Counter[str] = Counter()
    for index in range(COUNT):
        request = random_request(rng, models)
        place = f"seed {seed}, request {index}: {json.dumps(request)}"
        answer = oracle.ask(request)
        model, body, reason = encode(request, catalogues)
        assert answer["model"] == model, f"{answer['error']}\n{place}"
        expected = None if answer["body"] is None else answer["body"].encode("utf-8", "surrogatepass")
        assert body == expected, f"{reason}\n{answer['error']}\n{place}"
        tally[f"{model['api']}{'' if body else ', nothing sent'}"] += 1
    with capsys.disabled():
        print(f"\npi-ai 0.82.1, seed {seed}: {COUNT} requests, 0 differ; {dict(sorted(tally.items()))}")
    sent = sum(count for name, count in tally.items() if "nothing" not in name)
    assert sent >= COUNT * MIN_BODIES
