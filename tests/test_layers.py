"""The import order is the architecture: each module imports only from earlier layers, and the core does no I/O."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dsh_audit"

LAYERS = (
    ("record",),
    ("errors", "finding", "text", "events"),
    ("rules",),
    ("attachments",),
    ("formats",),
    ("log",),
    ("projection",),
    ("dispatch",),
    ("releases",),
    ("deployment", "profile_shapes"),
    ("request",),
    ("wire",),
    ("difference",),
    ("capture",),
    ("replay",),
    ("checks", "pricing", "golden"),
    ("audit",),
    ("report",),
    ("cli", "session", "types", "testing", "pytest_plugin"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

_EDGE = """
cli pytest_plugin
attachments/store capture/bundle capture/files golden/store log/locate log/strays log/zip_export report/html_page
wire/pi/catalogue
"""
_OUTSIDE = """
asyncio ctypes curses fcntl getpass glob http httpx importlib.resources locale multiprocessing os random requests
secrets select shutil signal socket subprocess tempfile threading time urllib.request uuid zoneinfo
"""
_PATHS = """
read_text read_bytes write_text write_bytes iterdir glob rglob stat lstat exists is_file is_dir is_symlink mkdir rmdir
unlink rename touch resolve absolute expanduser chmod symlink_to hardlink_to cwd home
"""
EDGE, OUTSIDE, PATHS = (frozenset(names.split()) for names in (_EDGE, _OUTSIDE, _PATHS))
"""EDGE is where the disk, the terminal and the environment are reached for; all else is handed bytes and values."""
BUILTINS = frozenset(("open", "input", "print", "breakpoint", "exec", "eval"))
CLOCK = frozenset(("now", "today", "utcnow"))
STREAMS = frozenset(("stdin", "stdout", "stderr", "argv"))


def modules() -> list[Path]:
    top = {SOURCE / "__main__.py", SOURCE / "__init__.py"}
    return sorted(path for path in SOURCE.rglob("*.py") if path not in top)


def layer_of(path: Path) -> str:
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module in ("dsh_audit", "importlib"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_from_earlier_layers(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"{own} has no place in the layers"
    for name in imports(ast.parse(path.read_text("utf-8"))):
        if name.startswith("dsh_audit.") and not name.startswith("dsh_audit.__"):
            other = name.split(".")[1]
            assert RANK[other] <= RANK[own], f"{own} imports {name}"


def reaches(tree: ast.AST) -> list[str]:
    """What a module does with the outside: imports, calls and streams, in order."""
    found = [name for name in sorted(imports(tree)) if name in OUTSIDE or name.split(".")[0] in OUTSIDE]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in BUILTINS:
                found.append(f"{called.id}()")
            elif isinstance(called, ast.Attribute):
                # A stream that was handed in is opened without arguments; who names a mode opens a file.
                is_open = called.attr == "open" and bool(node.args or node.keywords)
                if is_open or called.attr in PATHS | CLOCK:
                    found.append(f".{called.attr}()")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sys":
            found += [f"sys.{node.attr}"] if node.attr in STREAMS else []
    return found


def uses_outside(path: Path) -> bool:
    """Whether the module does anything that only an edge may."""
    return bool(reaches(ast.parse(path.read_text("utf-8"))))


def is_edge(path: Path) -> bool:
    """Whether the module is, or is in, one of the edges."""
    name = path.relative_to(SOURCE).with_suffix("").as_posix()
    return name in EDGE or name.split("/")[0] in EDGE


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_input_output_or_clock_outside_the_edge(path: Path) -> None:
    if not is_edge(path):
        # The methods of a dataclass are written as text, here as in the standard library.
        written = ["exec()"] if path == SOURCE / "record.py" else []
        assert reaches(ast.parse(path.read_text("utf-8"))) == written


@pytest.mark.parametrize("path", [path for path in modules() if is_edge(path)], ids=lambda path: path.stem)
def test_the_edge_sends_nothing_and_reads_no_clock(path: Path) -> None:
    network = {"http", "httpx", "random", "requests", "socket", "time", "urllib.request"}
    found = reaches(ast.parse(path.read_text("utf-8")))
    assert not network & set(found) and not {f".{name}()" for name in CLOCK} & set(found)


def test_rooms_and_edges_are_there() -> None:
    rooms = {layer_of(path) for path in modules()}
    assert set(RANK) == rooms
    edges = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in modules() if uses_outside(path)}
    assert edges | {name.split("/")[0] for name in edges} >= EDGE


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open('x')", ["open()"]),
        ("from pathlib import Path\nPath('x').read_bytes()", [".read_bytes()"]),
        ("path.open('rb')", [".open()"]),
        ("source.open()", []),
        ("import os.path", ["os.path"]),
        ("from os import environ", ["os"]),
        ("import time\ntime.time()", ["time"]),
        ("import datetime\ndatetime.datetime.now()", [".now()"]),
        ("import sys\nsys.stdout.write('')\nsys.maxsize", ["sys.stdout"]),
        ("from importlib import resources", ["importlib.resources"]),
    ],
)
def test_the_rule_finds(source: str, found: list[str]) -> None:
    assert reaches(ast.parse(source)) == found


def test_modules_and_functions_stay_small() -> None:
    too_long = [
        f"{path.relative_to(SOURCE)}: {count} lines"
        for path in modules()
        if (count := len(path.read_text("utf-8").splitlines())) > 400
    ]
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= 60:
                too_long.append(f"{path.relative_to(SOURCE)}: {node.name}")
    assert not too_long
