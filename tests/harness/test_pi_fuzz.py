"""Our pi-ai bodies against those of the real adapters and packages, on random requests.

Oracle: dsh-llm-pi-ai 0.1.0-rc.8 over pi-ai 0.82.1 from npm, and the adapters with their pi-ai inside the
runtime wheels of later releases, all driven by ``node/pi_oracle.mjs`` with fetch replaced by a recorder.
Set PI_FUZZ_SEED to repeat a run and PI_FUZZ_COUNT to change its length.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from random import Random

import pytest

from dsh_audit.wire.pi.catalogue import read_catalog
from dsh_audit.wire.pi.profile import Catalogue
from tests.harness.pi_oracle import SUBJECTS, Subject, encode, pi_oracle
from tests.harness.pi_requests import PROBED_ROUTES, random_request

MIN_SENT = 0.8
COUNTS = {"0.82.1": 2600}
OTHER_COUNT = 1000


def read_catalogues(subject: Subject) -> dict[str, Catalogue]:
    """The catalogues of the routes that requests use."""
    found = {provider: read_catalog(subject.root(), provider) for provider in PROBED_ROUTES}
    return {provider: catalogue for provider, catalogue in found.items() if catalogue is not None}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.pi)
def test_bodies_equal_those_of_the_real_adapter(subject: Subject, capsys: pytest.CaptureFixture[str]) -> None:
    catalogues = read_catalogues(subject)
    models = {provider: catalogue.models for provider, catalogue in catalogues.items()}
    seed = int(os.environ.get("PI_FUZZ_SEED", str(time.time_ns() % 1_000_000_007)))
    count = int(os.environ.get("PI_FUZZ_COUNT", str(COUNTS.get(subject.pi, OTHER_COUNT))))
    rng = Random(seed)
    tally: Counter[str] = Counter()
    with pi_oracle(subject) as oracle:
        for index in range(count):
            request = random_request(rng, models, subject.release)
            answer = oracle.ask(request)
            catalogue = catalogues.get(request["route"])
            model, body, reason = encode(request, catalogue, subject, answer["handle"])
            expected = None if answer["body"] is None else answer["body"].encode("utf-8", "surrogatepass")
            if (model, body) != (answer["model"], expected):
                place = f"pi-ai {subject.pi}, seed {seed}, request {index}: {json.dumps(request)}"
                assert model == answer["model"], f"{answer['error']}\n{place}"
                assert body == expected, f"{reason}\n{answer['error']}\n{place}"
            tally[f"{model['api']}{'' if body else ', nothing sent'}"] += 1
    with capsys.disabled():
        print(f"\npi-ai {subject.pi}, seed {seed}: {count} requests, 0 differ; {dict(sorted(tally.items()))}")
    sent = sum(number for name, number in tally.items() if "nothing" not in name)
    assert sent >= count * MIN_SENT
