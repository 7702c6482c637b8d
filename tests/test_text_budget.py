"""The memory budget: what is counted, and that bombs end early while real sizes pass."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from contextvars import copy_context
from pathlib import Path

import pytest
import zstandard

from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET, Budget, BudgetError, _values_fit, is_admitted
from tests.captures import write_bundle
from tests.cli import run
from tests.logs import two_turns

MB = 1_000_000


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b'{"a":[1,2]}', 4),
        (b'["a,b:[{",1]', 2),
        (b'["\\",[[[[",{}]', 3),
        (b'["\\\\",[],[]]', 5),
        (b'["' + b"\\\\" * 600_000 + b'",[]]', 3),
        (b'["' + b"," * 3_000_000 + b'",' + b'"' + b'\\"[' * 500_000 + b'",[]]', 4),
    ],
)
def test_values_are_counted_outside_of_strings(data: bytes, count: int) -> None:
    assert _values_fit(data, count + 1)
    assert not _values_fit(data, count)


def limited(memory: int, data: bytes) -> bool:
    context = copy_context()
    context.run(BUDGET.set, Budget(memory))
    return context.run(is_admitted, data)


def test_five_times_the_bytes_and_eighty_a_value() -> None:
    data = b"[" + b"1," * 99_999 + b"1]"
    need = 5 * len(data) + 80 * 100_001
    assert limited(need, data) and not limited(need - 1000, data)


def test_a_row_of_64_mb_of_prose_and_code_passes() -> None:
    assert is_admitted(json.dumps({"text": 'if (a, b) { c: ["x"] }, ' * 2_400_000}).encode())


def test_what_does_not_fit_is_not_parsed() -> None:
    with pytest.raises(BudgetError, match="--memory-limit"):
        ecma.parse(b"[" + b"[]," * 3_000_000 + b"1]")


def bomb(unit: bytes, count: int) -> bytes:
    toy = two_turns()
    row = b'{"type":"note","seq":%d,"time":1,"data":[' % toy.seq
    pack = zstandard.ZstdCompressor(write_checksum=True)
    lines = toy.plain().splitlines(keepends=True)
    return b"".join((
        pack.compress(lines[0]), pack.compress(b"".join(lines[1:])), pack.compress(row + unit * count + b"1]}\n"),
    ))  # fmt: skip


_WATCHED = """
import sys
from dsh_audit.cli.main import main
try:
    main()
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.stderr.write("\\n" + peak.split()[1])
"""


def measured(*arguments: str | Path) -> tuple[int, bytes, float, int]:
    """Status, output, seconds and peak RSS in bytes of a run of its own."""
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _WATCHED, *map(str, arguments)], capture_output=True)
    errors, _, peak = done.stderr.rpartition(b"\n")
    return done.returncode, done.stdout + errors, time.monotonic() - started, int(peak) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("unit", "count"), [(b'"ab",', 48_000_000), (b"[],", 26_000_000), (b"[],", 12_000_000)])
def test_a_row_that_decodes_to_more_than_memory_is_told(unit: bytes, count: int, tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl.zstd").write_bytes(bomb(unit, count))
    assert log.stat().st_size < 40_000
    status, output, seconds, peak = measured("inspect", log)
    assert (status, seconds < 10, peak < 500 * MB) == (1, True, True), output
    assert b"log/row-too-large" in output and b"--memory-limit" in output and b"line " in output


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_capture_that_unpacks_to_gigabytes_is_told(tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl").write_bytes(two_turns().plain())
    (capture := tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(bytes(300 * MB)))
    status, output, seconds, peak = measured("verify", log, "--capture", capture)
    assert (status, seconds < 10, peak < 500 * MB) == (2, True, True), output
    assert b"a.jsonl.gz" in output and b"--memory-limit" in output


def test_the_option_and_the_variable_change_the_limit(tmp_path: Path) -> None:
    toy = two_turns()
    toy.add("user/message", toy.message("user", [{"type": "text", "text": "x" * 4 * MB}], {"kind": "user"}),
            surfaceOp="append")  # fmt: skip
    (log := tmp_path / "session.jsonl").write_bytes(toy.plain())
    assert b"row-too-large" not in run("inspect", log).stdout
    for done in (
        run("--memory-limit", "16M", "inspect", log),
        run("inspect", log, env={"DSH_AUDIT_MEMORY_LIMIT": "16000000"}),
    ):
        assert b"log/row-too-large" in done.stdout and b"memory limit of 16 MB" in done.stdout
    assert b"row-too-large" not in run("inspect", log).stdout
    for wrong in ("0", "1.5G", "x", "", "-1"):
        assert run("--memory-limit", wrong, "inspect", log).returncode == 2


def test_a_record_of_a_capture_over_the_limit_leaves_the_others(tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl").write_bytes(two_turns().plain())
    capture = tmp_path / "a.jsonl"
    record = {"url": "https://h/chat/completions", "method": "POST", "body": "{}"}
    rows = [json.dumps(record), "[" + "[]," * 500_000 + "1]", json.dumps(record)]
    capture.write_text("\n".join(rows) + "\n")
    done = run("--memory-limit", "16M", "verify", log, "--capture", capture)
    assert done.returncode == 1 and b"capture/too-large" in done.stdout and b"line 2" in done.stdout


@pytest.mark.parametrize("where", ["encode", "deployment", "prices", "constant"])
def test_devices_and_named_pipes_are_refused(where: str, tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl").write_bytes(two_turns().plain())
    os.mkfifo(pipe := tmp_path / "pipe")
    for place in ("/dev/zero", str(pipe)):
        done = {
            "encode": lambda p=place: run("encode", p),
            "deployment": lambda p=place: run("requests", log, "--deployment", p),
            "prices": lambda p=place: run("cache", log, "--prices", p),
            "constant": lambda p=place: run("requests", log, "--constant", f"compaction-instruction={p}"),
        }[where]()
        assert done.returncode == 2 and b"not a regular file" in done.stderr, place


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="no /dev/fd")
def test_a_pipe_of_the_shell_is_read(tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl").write_bytes(two_turns().plain())
    reading, writing = os.pipe()
    os.write(writing, b"[harness]\n")
    os.close(writing)
    try:
        assert run("requests", log, "--deployment", f"/dev/fd/{reading}").returncode == 0
    finally:
        os.close(reading)


def test_bodies_of_twenty_megabytes_pass(tmp_path: Path) -> None:
    (log := tmp_path / "session.jsonl").write_bytes(two_turns().plain())
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a, b " * 4_000_000}]}).encode()
    write_bundle(tmp_path / "sent", [body, body])
    done = run("verify", log, "--capture", tmp_path / "sent")
    assert done.returncode == 1 and b"too-large" not in done.stdout
