"""Golden folders agree with the scripts that recorded them, and their bundles with themselves."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.harness.cases import CASES

GOLDEN = Path(__file__).parents[1] / "golden"
FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/case.json"))


def test_every_scripted_case_is_recorded() -> None:
    recorded = {folder.name for folder in FOLDERS}
    assert recorded == {name for name, case in CASES.items() if not case.get("fresh_only")}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case_was_recorded_from_its_script(folder: Path) -> None:
    recorded = json.loads((folder / "case.json").read_text())
    recorded.pop("happened")
    assert recorded == json.loads(json.dumps(CASES[folder.name]))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_bundle_agrees_with_itself(folder: Path) -> None:
    metas = sorted(folder.glob("captures/*.meta.json"))
    bodies = {path.stem for path in folder.glob("captures/*.body")}
    for number, meta_file in enumerate(metas):
        meta = json.loads(meta_file.read_text())["body"]
        assert meta_file.name == f"{number:04d}.meta.json"
        if "withheld" in meta:
            continue
        body = (folder / "captures" / f"{number:04d}.body").read_bytes()
        bodies.remove(f"{number:04d}")
        assert (len(body), hashlib.sha256(body).hexdigest()) == (meta["size"], meta["sha256"])
    assert bodies == set()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case_names_no_path_of_the_machine(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            assert re.search(rb"(?<![A-Za-z0-9_.])/(tmp|root|home|work)/", file.read_bytes()) is None, file
