"""The scripted cases by name; each module lists its own."""

from __future__ import annotations

from typing import Any

from tests.harness.cases import basic, drift, extras, full, history, images, pi

Json = Any

CASES: dict[str, Json] = {
    case["case"]: case for module in (basic, history, extras, drift, full, images, pi) for case in module.CASES
}
