from __future__ import annotations

import ast
import hashlib
import inspect
import json
import pydoc
import re
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest

import dsh_audit
from dsh_audit import types
from dsh_audit.text.to_json import to_json
from dsh_audit.wire.constants import CONSTANTS, Constant
from tests.cli import run

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden"


def test_every_public_name_is_there_and_documented() -> None:
    for name in dsh_audit.__all__:
        value = getattr(dsh_audit, name)
        assert inspect.getdoc(value), name
    assert set(dsh_audit.__all__) <= set(dir(dsh_audit))
    assert dsh_audit.__version__ == version("dsh-audit")
    assert "open_session(path_or_id" in pydoc.plain(pydoc.render_doc(dsh_audit))
    with pytest.raises(AttributeError, match="no attribute 'open_sesion'"):
        dsh_audit.__getattr__("open_sesion")


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(dsh_audit.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names:
            home = node.module.removeprefix("dsh_audit.")
            seen[alias.asname or alias.name] = f"{home}:{alias.name}" if alias.asname else home
    homes = dsh_audit._HOMES  # type: ignore[attr-defined]
    assert seen == homes and sorted(seen) == dsh_audit.__all__


def test_a_typo_is_an_error_for_type_checkers(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from dsh_audit import open_session, open_sesion\nfrom dsh_audit.types import Body\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert re.findall(r"error: (.*)", done.stdout) == [
        'Module "dsh_audit" has no attribute "open_sesion"; maybe "open_session"?  [attr-defined]'
    ]


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, dsh_audit; print(sorted(name for name in sys.modules if name.startswith('dsh_audit.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_has_one_base() -> None:
    errors = [value for value in vars(types).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(errors) == 11 and all(issubclass(error, dsh_audit.AuditError) for error in errors)


def test_the_types_are_types() -> None:
    names = [name for name in dir(types) if name[0].isupper()]
    assert len(names) > 40
    assert all(inspect.isclass(getattr(types, name)) and inspect.getdoc(getattr(types, name)) for name in names)


def test_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The one of the docstring and the one of the README."""
    monkeypatch.chdir(ROOT)
    readme = Path("README.md").read_text("utf-8")
    (shown,) = [block for block in re.findall(r"```python\n(.*?)```", readme, re.S) if "open_session" in block]
    documented = inspect.cleandoc((dsh_audit.__doc__ or "").partition("::\n")[2].partition("\n\nEvents are")[0])
    for example in (shown, documented):
        exec(compile(example, "example", "exec"), {})
        assert "0 bytes " in capsys.readouterr().out, example


@pytest.mark.parametrize("case", ["v0-tools", "mig-v0late-v4", "v3-upload", "v4-pi-completions"])
def test_requests_are_those_of_the_command(case: str) -> None:
    folder = GOLDEN / case
    deployment = folder / "deployment.json"
    known = ("--deployment", deployment) if deployment.exists() else ()
    session = dsh_audit.open_session(folder / "sessions", deployment=known[1] if known else None)
    rows = [to_json(request) for request in session.requests()]
    printed = run("requests", folder / "sessions", "--format", "json", *known).stdout
    assert rows == json.loads(printed)["requests"] and rows
    for request in session.requests():
        body = request.body
        if body is not None:
            assert (len(body), body.sha256()) == (len(bytes(body)), sha256(bytes(body)).hexdigest())
    assert len(session.generations) == (2 if case.startswith("mig") else 1)


def test_bodies_carry_the_extension_fields() -> None:
    session = dsh_audit.open_session(GOLDEN / "v3-upload" / "sessions")
    assert any(b'"dsh_session_log"' in bytes(request.body) for request in session.requests() if request.body)


def test_audits_of_a_session() -> None:
    folder = GOLDEN / "v0-drift-counter"
    session = dsh_audit.open_session(str(folder / "sessions"))
    report = dsh_audit.verify(session, folder / "captures")
    assert report.summary["captured"] == report.summary["identical"] + report.summary["identical_except_unlogged"] > 0
    again = dsh_audit.verify([session], [dsh_audit.read_capture(folder / "captures")])
    assert to_json(again.pairs) == to_json(report.pairs)
    assert dsh_audit.audit_drift(session).changes and dsh_audit.audit_cache(session).summary.busts
    assert not dsh_audit.audit_drift(session, session).changes
    events = list(session.events(through=3))
    assert [event.seq for event in events] == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        dsh_audit.derive_messages(events)
    with pytest.raises(dsh_audit.AuditError):
        dsh_audit.derive_messages(events[1:], version=0)
    with pytest.raises(dsh_audit.AuditError):
        dsh_audit.decode_row_v0({"type": 1})
    with pytest.raises(types.LogError):
        dsh_audit.open_session(folder / "nowhere")


def test_constants_are_added_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.toml").write_text('[harness]\nversion = "0.1.3"\n', "utf-8")
    text = {"compaction-instruction": "x"}
    with pytest.raises(types.DeploymentError, match="not the text of the harness"):
        dsh_audit.load_deployment(tmp_path / "d.toml", constants=text)
    known = Constant("compaction-instruction", 1, hashlib.sha256(b"x").hexdigest())
    monkeypatch.setitem(CONSTANTS, known.name, known)
    deployment = dsh_audit.load_deployment(tmp_path / "d.toml", constants=text)
    assert deployment.look_up("harness", "version") == "0.1.3" and deployment.constants
    with pytest.raises(types.UsageError):
        dsh_audit.load_deployment(tmp_path / "nowhere.toml")
