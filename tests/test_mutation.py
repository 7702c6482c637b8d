from __future__ import annotations

import ast
import json

import pytest

from tests.mutation import EQUIVALENTS, TESTS, files_for, mutants_of

CASES = [
    ("x = a < b <= c", ["a <= b <= c", "a < b < c"]),
    ("x = (a) == (b or c)", ["(a) != (b or c)", "(a) == (b and c)"]),
    ("x = a is not None and b not in c", ["a is None and b not in c", "a is not None or b not in c",
                                         "a is not None and b in c"]),
    ("x = not a", [" a"]),
    ("x = a + b - 1", ["a - b - 1", "a + b + 1", "a + b - 2"]),
    ("x = 'a' + b", []),
    ("x = True", ["False"]),
    ("x = f(a, b, c)", ["f(b, a, c)"]),
    ("x = f(a, a), f(*a, b), f('é', b)", ["f(a, a), f(*a, b), f(b, 'é')"]),
]  # fmt: skip
STATEMENTS = [
    ("def f(a: int = 0) -> bool:\n    'doc'\n    return a", ["return None", "a: int = 1"]),
    ("f(a)\nx += y\nassert a == b", ["pass\nx +=", "f(a)\npass"]),
    ("for x in y:\n    break", ["continue"]),
    ("@d(1)\nclass A:\n    pass", []),
]


@pytest.mark.parametrize(("text", "expected"), [*CASES, *STATEMENTS], ids=[case[0] for case in [*CASES, *STATEMENTS]])
def test_mutants(text: str, expected: list[str]) -> None:
    data = text.encode()
    changed = [data[: m.start] + m.replacement.encode() + data[m.end :] for m in mutants_of("a.py", data)]
    assert len(changed) == len(expected)
    assert all(any(part in result.decode() for result in changed) for part in expected)
    for result in changed:
        ast.parse(result)


def test_every_package_has_tests_and_every_equivalent_a_reason() -> None:
    for folder in TESTS:
        assert len(files_for(f"{folder}/x.py")) > 5
    rows = json.loads(EQUIVALENTS.read_bytes())
    assert all(len(row["mutant"]) == 4 and len(row["reason"]) > 10 for row in rows)
    assert rows == sorted(rows, key=lambda row: row["mutant"])
