"""All figures in one table: python -m tests.benchmarks [--runs N] [--only NAME] [--large] [--commit REV | --old DIR]

Old is commit 2f4f4b4, or another, in an environment of its own, run in turn with this one. CPU is user + system of
fresh processes, less that of the same command on a log of five steps; figures are medians. A floor is the least that
reading costs (floor.py): of the log in a new process; of the log warm, for what runs warm; of the log and all bodies,
for verify. Nothing here fails on a figure: the table says ok or miss.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.bench import Bench
from tests.benchmarks.measure import NEW, BenchError
from tests.benchmarks.old import COMMIT, ROOT, compile_package, installed_side, named_side
from tests.benchmarks.rows import ROWS
from tests.benchmarks.table import Row, insert_table, render_line, render_table

_ONLY_LARGE = "large"


def main() -> None:
    """Measure the rows that were asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="rounds that medians are of (7)")
    parser.add_argument("--only", action="append", choices=ROWS, help="these rows; repeatable")
    parser.add_argument("--large", action="store_true", help="also 600,000 events: many minutes")
    parser.add_argument("--each", action="store_true", help="a row for every command's start, not only the worst")
    parser.add_argument("--commit", default=COMMIT, metavar="REV", help=f"compare with this commit ({COMMIT})")
    parser.add_argument("--old", type=Path, metavar="DIR", help="a ready checkout of it, with a .venv")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    given = parser.parse_args()
    names = given.only or [name for name in ROWS if given.large or name != _ONLY_LARGE]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="dsh-audit-bench-") as folder:
        try:
            old = named_side(given.old) if given.old else installed_side(Path(folder), given.commit)
            for side in (old, NEW):
                compile_package(side)
            bench = Bench(Path(folder), old, given.runs)
            for name in names:
                for n, row in enumerate(ROWS[name](bench)):
                    if name == "start" and n and not given.each:
                        break
                    rows.append(row)
                    print(render_line(row), file=sys.stderr, flush=True)
        except BenchError as error:
            print(error, file=sys.stderr)
            sys.exit(2)
        finally:
            print(render_table(rows))
    if given.write:
        readme = ROOT / "README.md"
        readme.write_text(insert_table(readme.read_text("utf-8"), render_table(rows)), "utf-8")


if __name__ == "__main__":
    main()
