from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import dsh_audit


def test_every_public_name_is_there_and_documented() -> None:
    for name in dsh_audit.__all__:
        value = getattr(dsh_audit, name)
        assert inspect.getdoc(value), name


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(dsh_audit.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert seen == {name: f"dsh_audit.{home}" for name, home in dsh_audit._HOMES.items()}


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, dsh_audit; print(sorted(name for name in sys.modules if name.startswith('dsh_audit.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
