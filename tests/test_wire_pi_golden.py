"""golden/pi-ai: our body for each request is the one that the real adapter sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsh_audit.text import ecma
from dsh_audit.wire.pi import PiRefusedError
from dsh_audit.wire.pi.json_request import encode_pi_json_request
from tests.harness.pi_cases import CASES

GOLDEN = Path(__file__).parent.parent / "golden" / "pi-ai"
FOLDERS = sorted(path for path in GOLDEN.iterdir() if path.is_dir())


def test_every_case_is_recorded_and_nothing_is_left_over() -> None:
    assert {path.name for path in FOLDERS} == set(CASES)
    for folder in FOLDERS:
        assert {path.name for path in folder.iterdir()} - {"body.json"} == {"input.json"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_body(folder: Path) -> None:
    given = ecma.parse((folder / "input.json").read_bytes())
    expected = folder / "body.json"
    if expected.exists():
        assert encode_pi_json_request(given).to_bytes() == expected.read_bytes()
        return
    with pytest.raises(PiRefusedError) as refused:
        encode_pi_json_request(given)
    assert refused.value.kind == "no-request"
    assert refused.value.rung == "exact"
