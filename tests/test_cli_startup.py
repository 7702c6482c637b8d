"""Nothing is imported that a command does not use: start-up is most of the time of a command on a small log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.captures import write_bundle
from tests.logs import two_turns

NEVER = {
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "deepdiff",
    "zipfile",
    "tomllib",
    "tempfile",
    "asyncio",
}
NO_CHECKS = NEVER | {"dsh_audit.checks.cache", "dsh_audit.checks.drift", "dsh_audit.golden", "jinja2", "xml.etree"}
NO_REPLAY = NO_CHECKS | {"dsh_audit.replay", "dsh_audit.wire", "dsh_audit.dispatch", "dsh_audit.capture"}
COMMANDS = [
    ("--help", NO_REPLAY | {"dsh_audit.log", "dsh_audit.cli.requests"}),
    ("--version", NO_REPLAY | {"dsh_audit.log"}),
    ("completion bash", NO_REPLAY | {"dsh_audit.log"}),
    ("rules", NO_REPLAY),
    ("explain log/torn-tail", NO_REPLAY),
    ("export log", NO_REPLAY),
    ("inspect log", NO_CHECKS | {"dsh_audit.capture"}),
    ("sessions log", NO_CHECKS | {"dsh_audit.capture"}),
    ("requests log", NO_CHECKS | {"dsh_audit.capture"}),
    ("render log --request 0", NO_CHECKS | {"dsh_audit.capture"}),
    ("drift log", NEVER | {"dsh_audit.checks.cache", "dsh_audit.golden", "dsh_audit.capture", "jinja2"}),
    ("cache log", NEVER | {"dsh_audit.golden", "dsh_audit.capture", "jinja2"}),
    ("verify log --capture sent", NEVER | {"dsh_audit.checks.cache", "dsh_audit.golden", "jinja2"}),
]


@pytest.mark.parametrize(("command", "unused"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_only_what_is_used_is_imported(command: str, unused: set[str], tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "session.jsonl").write_bytes(two_turns().plain())
    write_bundle(tmp_path / "sent", [b"{}"])
    code = (
        "import sys\nfrom dsh_audit.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert done.code in (0, 1), done.code\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *command.split()], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not unused & set(done.stderr.split())
