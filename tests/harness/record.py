"""Record golden cases anew: python -m tests.harness.record [CASE…]

Without names every case is recorded. A case's `expected/` and any other file of ours in its folder stay.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.harness.cases import CASES
from tests.harness.drive import run_case
from tests.harness.rpc import RpcError
from tests.harness.withhold import withhold

Json = Any

GOLDEN = Path(__file__).parents[2] / "golden"
ROOT = Path("/srv/toy")
"""Where recorded runs live, so that logs and bodies name no path of the machine."""
RECORDED = ("sessions", "captures", "home")


def record(case: Json, golden: Path = GOLDEN, root: Path = ROOT) -> list[str]:
    """Run one case and put what it left into `golden/<case>/`; returns what went wrong."""
    target = golden / case["case"]
    with tempfile.TemporaryDirectory(prefix="dsh-audit-record-") as name:
        out = Path(name)
        outcome = run_case(case, out, root)
        withhold(out / "captures")
        for part in RECORDED:
            shutil.rmtree(target / part, ignore_errors=True)
            if (out / part).is_dir():
                shutil.copytree(out / part, target / part)
    text = json.dumps({**case, "happened": outcome.lines}, indent=1, ensure_ascii=True)
    (target / "case.json").write_text(text + "\n")
    if "deployment" in case:
        (target / "deployment.json").write_text(json.dumps(case["deployment"], indent=1) + "\n")
    return outcome.failures


def main(names: list[str]) -> int:
    """Record the named cases, or all."""
    failed = 0
    for name in names or [name for name, case in CASES.items() if not case.get("fresh_only")]:
        try:
            problems = record(CASES[name])
        except RpcError as error:
            problems = [str(error)]
        failed += bool(problems)
        bodies = len(list((GOLDEN / name / "captures").glob("*.meta.json")))
        print(f"{name}: {bodies} captures", *problems, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
