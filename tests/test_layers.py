"""The import order is the architecture: each module imports only from earlier layers, and the core does no I/O."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dsh_audit"

LAYERS = (
    ("errors", "finding", "text", "events"),
    ("rules",),
    ("formats",),
    ("log",),
    ("projection",),
    ("dispatch",),
    ("deployment",),
    ("request",),
    ("attachments",),
    ("wire",),
    ("capture",),
    ("replay",),
    ("checks", "pricing", "golden"),
    ("audit",),
    ("report",),
    ("cli", "testing", "pytest_plugin"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

EDGES = {"locate", "cli", "pytest_plugin", "golden"}
FORBIDDEN = {"socket", "urllib.request", "http", "subprocess", "requests", "httpx", "random", "locale"}
CLOCK_CALLS = {"time", "now", "today", "utcnow", "monotonic", "perf_counter"}


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
            if node.module == "dsh_audit":
                found |= {f"dsh_audit.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_from_earlier_layers(path: Path) -> None:
    own = layer_of(path)
    assert own in RANK, f"{own} has no place in the layers"
    for name in imports(ast.parse(path.read_text("utf-8"))):
        if name.startswith("dsh_audit."):
            other = name.split(".")[1]
            assert RANK[other] <= RANK[own], f"{own} imports {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_reaches_for_the_network_or_the_clock(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert not imports(tree) & FORBIDDEN
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK_CALLS:
            owner = node.func.value
            assert not (isinstance(owner, ast.Name) and owner.id in {"time", "datetime", "date"}), ast.dump(node)


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
