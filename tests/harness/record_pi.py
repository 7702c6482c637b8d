"""Record golden/pi-ai: each case's request with the body that the real adapter sent for it.

    python -m tests.harness.record_pi [NAME…]

``input.json`` is the request in the form that ``dsh-audit encode`` takes, ``body.json`` the exact body; a case in which
nothing was sent has no ``body.json``. Nothing leaves the machine: fetch is replaced by a recorder.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.harness.pi_cases import CASES, IMAGES, Case
from tests.harness.pi_oracle import SUBJECTS, PiOracle, pi_oracle

GOLDEN = Path(__file__).parents[2] / "golden" / "pi-ai"


def record(name: str, case: Case, oracle: PiOracle) -> None:
    """Write one case."""
    request = case.request()
    answer = oracle.ask(request)
    if answer["model"] is None:
        raise RuntimeError(f"{name}: {answer['error']}")
    given: dict[str, Any] = {key: value for key, value in request.items() if key != "modelPatch"}
    if case.model_patch:
        given["resolvedModel"] = answer["model"]
    if any(block["type"] == "image" for message in case.messages for block in message["content"]):
        given["images"] = IMAGES
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "input.json").write_text(json.dumps(given, indent=1) + "\n", "ascii")
    if answer["body"] is not None:
        (folder / "body.json").write_bytes(answer["body"].encode("utf-8", "surrogatepass"))


def main(names: list[str]) -> None:
    """Record the named cases, or all."""
    for subject in SUBJECTS:
        chosen = {name: CASES[name] for name in names or CASES if CASES[name].pi == subject.pi}
        with pi_oracle(subject) as oracle:
            for name, case in chosen.items():
                record(name, case, oracle)


if __name__ == "__main__":
    main(sys.argv[1:])
