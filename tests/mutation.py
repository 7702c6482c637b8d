"""Changes one token of the engine at a time and tells which changes no test notices.

``python -m tests.mutation [--seed N] [--count N] [--only TEXT]`` (``make mutants``): takes a sample of all mutants by a
seed that is printed, runs the tests of the mutated package on a copy of the sources, and lists the survivors.
``mutation_equivalents.json`` holds the ones that change nothing anybody can see, with the reason. Not part of CI.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
EQUIVALENTS = Path(__file__).with_name("mutation_equivalents.json")
TIMEOUT_S = 180
ALLOWED_SHARE = 3 / 60

COMMON = ("rules_table", "golden_expected", "golden_cases")
"""Tests of whole runs, after those of the package."""

TESTS = {
    "projection": ("projection_*", "dispatch*", "tool_updates", "formats_later", "migrate"),
    "dispatch": ("dispatch*", "replay_*", "projection_*", "uploads"),
    "wire": ("wire_*", "tool_updates", "extensions", "replay_*", "uploads", "cli_encode", "config"),
    "replay/pairing": ("replay_*", "uploads"),
    "checks": ("checks_*", "cli_cache", "uploads", "diff_runs", "report_cli"),
    "golden": ("golden*", "testing", "diff_runs"),
    "capture": ("capture_*", "replay_verification", "diff_runs"),
}
"""Package → its tests, the nearest first."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Args:
        path: relative to ``src/dsh_audit``.
        start, end: offsets of the replaced bytes.
        line: number from 1, and its text without indentation.
    """

    path: str
    operator: str
    start: int
    end: int
    replacement: str
    line: int
    text: str
    before: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names it as long as its line stays as it is."""
        return self.path, self.text, self.before, self.replacement

    def describe(self) -> str:
        before, after = (" ".join(text.split())[:60] for text in (self.before, self.replacement))
        return f"{self.path}:{self.line}: {self.operator}: {before!r} → {after!r}   in: {self.text}"


class Source:
    """One module: its text and places."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self._starts = [0]
        for line in data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def mutant(self, operator: str, start: int, end: int, replacement: str) -> Mutant:
        line = self.data.count(b"\n", 0, start) + 1
        text = self.data[self._starts[line - 1] : self._starts[line]].decode().strip()
        return Mutant(self.path, operator, start, end, replacement, line, text, self.data[start:end].decode())

    def between(self, operator: str, one: ast.expr, two: ast.expr, old: str, new: str) -> Iterator[Mutant]:
        """The operator between two operands."""
        start, end = self.span(one)[1], self.span(two)[0]
        found = self.data.find(old.encode(), start, end)
        if found >= 0:
            yield self.mutant(operator, found, found + len(old), new)


def mutants_of(path: str, data: bytes) -> list[Mutant]:
    """Every mutant of a module, in the order of the text."""
    source, found = Source(path, data), list[Mutant]()
    todo: list[ast.AST] = [ast.parse(data)]
    while todo:
        node = todo.pop()
        found += _mutants(source, node)
        todo += _children(node)
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """All but annotations, decorators, assertions and documentation: they do nothing that a run would show."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for item in value if isinstance(value, list) else [value]:
            is_text = isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
            if isinstance(item, ast.AST) and not is_text and not isinstance(item, ast.Assert | ast.Import):
                yield item


def _mutants(source: Source, node: ast.AST) -> Iterator[Mutant]:
    match node:
        case ast.Compare():
            operands = [node.left, *node.comparators]
            for operator, one, two in zip(node.ops, operands, operands[1:], strict=False):
                yield from source.between("comparison", one, two, *COMPARISONS[type(operator)])
        case ast.BoolOp():
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from source.between("boolean", node.values[0], node.values[1], old, new)
        case ast.UnaryOp(op=ast.Not()):
            start, _ = source.span(node)
            yield source.mutant("not", start, start + len("not"), "")
        case ast.BinOp() if type(node.op) in ARITHMETIC and not isinstance(node.left, ast.Constant):
            yield from source.between("arithmetic", node.left, node.right, *ARITHMETIC[type(node.op)])
        case ast.Constant(value=bool()):
            yield source.mutant("constant", *source.span(node), str(not node.value))
        case ast.Constant(value=int()):
            assert isinstance(node.value, int)
            yield source.mutant("integer", *source.span(node), str(node.value + 1))
        case ast.Return(value=ast.expr()) if not _is_none(node.value):
            yield source.mutant("return", *source.span(node), "return None")
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield source.mutant("statement", *source.span(node), "pass")
        case ast.Continue() | ast.Break():
            other = "break" if isinstance(node, ast.Continue) else "continue"
            yield source.mutant("loop", *source.span(node), other)
        case ast.Call() if len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
            (start, end), (start2, end2) = source.span(node.args[0]), source.span(node.args[1])
            first, comma, second = source.data[start:end], source.data[end:start2], source.data[start2:end2]
            if first != second:
                yield source.mutant("arguments", start, end2, (second + comma + first).decode())


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def all_mutants() -> list[Mutant]:
    package = ROOT / "src" / "dsh_audit"
    paths = sorted(path for folder in TESTS for path in (package / folder).rglob("*.py"))
    found = (mutants_of(path.relative_to(package).as_posix(), path.read_bytes()) for path in paths)
    return [mutant for mutants in found for mutant in mutants]


def files_for(path: str) -> list[str]:
    """The test files for a mutant, the nearest first."""
    folder = next(folder for folder in TESTS if path.startswith(f"{folder}/"))
    files = [file for name in (*TESTS[folder], *COMMON) for file in sorted((ROOT / "tests").glob(f"test_{name}.py"))]
    files.sort(key=lambda file: Path(path).stem not in file.stem)
    return list(dict.fromkeys(file.relative_to(ROOT).as_posix() for file in files))


def run_tests(copy: Path, files: list[str]) -> tuple[str, float]:
    """``passed``, ``failed`` or ``timeout``, and how long it took; the package is imported from the copy."""
    started = time.monotonic()
    env = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            verdict = "failed" if process.wait(TIMEOUT_S) else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            verdict = "timeout"
    return verdict, time.monotonic() - started


def try_mutant(mutant: Mutant, copy: Path) -> tuple[str, float]:
    """The verdict of the tests on one mutant; the copy is as before afterwards."""
    path = copy / "src" / "dsh_audit" / mutant.path
    data = path.read_bytes()
    try:
        changed = data[: mutant.start] + mutant.replacement.encode() + data[mutant.end :]
        compile(changed, mutant.path, "exec")
        path.write_bytes(changed)
        return run_tests(copy, files_for(mutant.path))
    finally:
        path.write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the sample (default: a new one)")
    parser.add_argument("--count", type=int, default=60, help="mutants to try (default: 60)")
    parser.add_argument("--only", default="", help="modules whose path contains this")
    options = parser.parse_args()
    os.nice(5)
    known = {tuple(row["mutant"]): row["reason"] for row in json.loads(EQUIVALENTS.read_bytes())}
    every = [mutant for mutant in all_mutants() if options.only in mutant.path]
    sample = random.Random(options.seed).sample(every, min(options.count, len(every)))
    print(f"seed {options.seed}: {len(sample)} of {len(every)} mutants", flush=True)
    survivors, equivalent = list[Mutant](), 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "schemas", copy / "schemas")
        for path in {mutant.path.split("/")[0]: mutant.path for mutant in sample}.values():
            if run_tests(copy, files_for(path))[0] != "passed":
                raise SystemExit(f"the tests of {path} do not pass without a mutant")
        for number, mutant in enumerate(sorted(sample, key=lambda one: (one.path, one.start)), 1):
            if mutant.key in known:
                verdict, seconds, equivalent = "equivalent", 0.0, equivalent + 1
            else:
                verdict, seconds = try_mutant(mutant, copy)
            if verdict == "passed":
                survivors.append(mutant)
            print(f"{number:3} {verdict:10} {seconds:5.1f} s  {mutant.describe()}", flush=True)
    print(f"\nseed {options.seed}: {len(survivors)} of {len(sample)} survive; {equivalent} are equivalent")
    for mutant in survivors:
        print(f"  {mutant.describe()}\n    {json.dumps({'mutant': mutant.key, 'reason': ''}, ensure_ascii=False)}")
    return int(len(survivors) > ALLOWED_SHARE * len(sample))


if __name__ == "__main__":
    raise SystemExit(main())
