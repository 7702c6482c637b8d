"""The benchmarks' own parts: the logs they run on are fixed to the byte, and their arithmetic is right."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import orjson
import pytest

from tests.benchmarks import floor
from tests.benchmarks.make_log import Shape, frames, write_log, write_sessions
from tests.benchmarks.measure import BenchError, Cost, exponent, in_turn, net_s, run_process
from tests.benchmarks.table import Limit, Row, insert_table, render_table

SHARED_ENV = "DSH_AUDIT_SHARED"
"""Environment variable with the folder that has tools/make_log.py, another generator of the same logs."""

SHAPES = {
    "v0-plain": (Shape("v0", 40), "25a9162a25e3c0deb786aa1c8d36bf881ddb6405f0eb1266e2a27668414a2fd3"),
    "v0-unpacked": (Shape("v0", 17, packed=False), "9c2aca9a59a0eac216692a24006e484f3a3791d1248e7e9e5cde2aef82bf6351"),
    "v0-many-chunks": (Shape("v0", 5, chunks=300), "357ff3057787c9c3fff06734cd1bf6a8732765e1ef6bb64e2baef5c40b75776c"),
    "v0-runs-too-short-to-pack": (
        Shape("v0", 8, turn=7, chunks=2),
        "eecba364ca135e6674c94bf0552b16dd128bc7c187a51c24fa6101b63441ab7c",
    ),
    "v4-two-updates": (Shape("v4", 230), "da0c8751a8a2e4a914ce571cd944f11aac756779ef51130b2f90b2d1398b0031"),
    "v4-short-turns": (Shape("v4", 110, turn=4), "a8d481c332ff24a2fc26157ab8658f23055a5ab2d1acd9c78384e5712ee7805d"),
    "pi-completions": (Shape("pi-completions", 17), "1626296825348bf792707b94fc26b24921ee3d376a09df775cf69c07c80c8de6"),
    "pi-anthropic": (Shape("pi-anthropic", 17), "0d003996938fe20d7bfff803ddb8fbd47ccc2647348e55b51574b8a73497cf62"),
    "pi-responses": (Shape("pi-responses", 17), "13cd963b8b8a30559600c1022582d3b37ef989a70205f9df46d16542c298d1f2"),
}
"""Name → a shape and the SHA-256 of its frames, before compression, with a zero byte between two."""


@pytest.mark.parametrize("name", SHAPES)
def test_a_log_is_the_same_bytes_everywhere(name: str, tmp_path: Path) -> None:
    shape, expected = SHAPES[name]
    assert hashlib.sha256(b"\0".join(frames(shape))).hexdigest() == expected
    plain, packed = write_log(shape, tmp_path / "plain", plain=True), write_log(shape, tmp_path)
    assert plain.read_bytes() == b"".join(frames(shape))
    rows = plain.read_bytes().splitlines()
    assert floor.parse_rows(packed) == floor.parse_rows(plain) == len(rows)
    assert orjson.loads(rows[0])["id"] == shape.id


def test_sessions_differ_in_their_ids_only(tmp_path: Path) -> None:
    paths = write_sessions(Shape("v0", 2), tmp_path, 3, plain=True)
    assert [path.parent.name for path in paths] == ["v0-2", "v0-2-1", "v0-2-2"]
    texts = [path.read_text("utf-8").replace(f'"{path.parent.name}"', '"ID"', 1) for path in paths]
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.skipif(SHARED_ENV not in os.environ, reason=f"{SHARED_ENV} names no other generator")
@pytest.mark.parametrize("name", SHAPES)
def test_the_other_generator_writes_the_same_files(name: str, tmp_path: Path) -> None:
    shape, _ = SHAPES[name]
    script = Path(os.environ[SHARED_ENV]) / "tools" / "make_log.py"
    options = [
        "--turn",
        shape.turn,
        "--chunks",
        shape.chunks,
        "--sessions",
        2,
        *([] if shape.packed else ["--unpacked"]),
    ]
    words = [sys.executable, script, shape.kind, shape.steps, tmp_path / "other", *options]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    for path in write_sessions(shape, tmp_path / "own", 2):
        assert path.read_bytes() == (tmp_path / "other" / path.relative_to(tmp_path / "own")).read_bytes()


def costs(*cpu_s: float) -> list[Cost]:
    return [Cost(each, 10.0, b"") for each in cpu_s]


def test_what_start_up_costs_is_taken_off() -> None:
    assert net_s(costs(1.0, 9.0, 1.2), costs(0.2, 0.2, 0.3)) == pytest.approx(1.0)
    assert net_s(costs(0.2), costs(0.3)) == 0.001


@pytest.mark.parametrize(("small", "large", "factor", "power"), [(1, 8, 8, 1), (0.5, 32, 8, 2), (3, 3, 4, 0)])
def test_exponents(small: float, large: float, factor: float, power: float) -> None:
    assert exponent(small, large, factor) == pytest.approx(power)


def test_jobs_run_in_turn() -> None:
    order: list[str] = []

    def job(name: str, cpu_s: float) -> Cost:
        order.append(name)
        return Cost(cpu_s, 10.0, b"")

    first, second = in_turn([lambda: job("a", 1), lambda: job("b", 2)], 3)
    assert order == [name for name, _ in zip(cycle("ab"), range(6), strict=False)]
    assert [cost.cpu_s for cost in first + second] == [1, 1, 1, 2, 2, 2]


def test_a_process_is_charged_with_its_children(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.15: pass"
    cost = run_process(
        [sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"], tmp_path
    )
    assert cost.cpu_s >= 0.15 and cost.rss_mb > 1
    assert run_process([sys.executable, "-c", "print('said')"], tmp_path).out == b"said\n"
    with pytest.raises(BenchError, match="exit 3"):
        run_process([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_the_table_tells_what_is_met() -> None:
    rows = [
        Row("fast", (Limit(0.5),), (0.5,), "1 s → 0.5 s", 3.04),
        Row("slow", (Limit(0.4), Limit(250, "MB")), (0.3, 251.0), "9 s → 3 s"),
        Row("upstream", (Limit(14, "×", at_least=True),), (13.9,), "2 s"),
    ]
    assert [row.ok for row in rows] == [True, False, False]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in render_table(rows).splitlines()]
    assert cells[2] == ["fast", "≤ 0.5 of old", "0.5", "1 s → 0.5 s", "3.0", "ok"]
    assert cells[3] == ["slow", "≤ 0.4 of old, ≤ 250 MB", "0.3, 251", "9 s → 3 s", "", "miss"]
    assert cells[4] == ["upstream", "≥ 14 ×", "13.9", "2 s", "", "miss"]


def test_the_table_goes_between_its_marks() -> None:
    text = "# A\n\n<!-- speed -->\n\nold\n\n<!-- /speed -->\n\nmore\n"
    written = insert_table(text, "new")
    assert written == text.replace("old", "new")
    assert insert_table(written, "new") == written
