"""The rows: what is measured, and what it must be."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.bench import BASE_STEPS, GOLDEN, HERE, Bench, Job, Words
from tests.benchmarks.make_log import Shape, frames, write_log
from tests.benchmarks.measure import BenchError, Side, exponent, median_s, net_s, run_process
from tests.benchmarks.table import Limit, Row, seconds
from tests.harness.oracle_packages import oracle_root, script_command

LOG_ENV = "DSH_AUDIT_BENCH_LOG"
"""Environment variable with one more log, whose digests are taken warm, too."""

_PACKAGES = "rc8"
_SMALL, _LONG = 225, 1800
_GROWS = Limit(1.1, "(exponent)")


def rebuild(bench: Bench) -> Iterator[Row]:
    for kind, must in (("v0", 0.55), ("v4", 0.4)):
        shape, base = Shape(kind, 450), Shape(kind, BASE_STEPS)
        bench.check_requests(shape, *bench.sides)
        floor = bench.python(bench.new, "floor.py", "cold", bench.log(shape))
        got = bench.compare(bench.requests(shape), bench.requests(base), floor)
        floors = got.new_s / median_s(got.more[0])
        yield Row(f"`requests`, {kind}, 450 steps", (Limit(must),), (got.ratio,), _both(got.old_s, got.new_s), floors)


def digests(bench: Bench) -> Iterator[Row]:
    logs = [("v0, 450 steps", bench.log(Shape("v0", 450)))]
    if os.environ.get(LOG_ENV):
        logs.append((f"the log of {LOG_ENV}", Path(os.environ[LOG_ENV]).absolute()))
    for name, log in logs:
        jobs = [bench.python(side, "library.py", "digests", log) for side in bench.sides]
        old, new, floor = bench.costs(*jobs, bench.python(bench.new, "floor.py", "warm", log))
        if len({cost.out.split()[1] for cost in (*old, *new)}) > 1:
            raise BenchError(f"{name}: the sides rebuild different bodies")
        old_s, new_s = median_s(old), median_s(new)
        work = f"all digests in one process, warm, {name}"
        yield Row(work, (Limit(0.5),), (new_s / old_s,), _both(old_s, new_s), new_s / median_s(floor))


def start(bench: Bench) -> Iterator[Row]:
    """The slowest of all commands decides; the others follow when each is asked for."""
    lines = list(_short_commands(bench))
    jobs = [bench.job(side, *words(side)) for _, words in lines for side in bench.sides]
    bare = [lambda side=side: run_process([side.python, "-c", "pass"], bench.folder) for side in bench.sides]
    costs = bench.costs(*bare, *jobs)
    rows = []
    for n, (name, _) in enumerate(lines):
        old, new = (net_s(costs[2 + 2 * n + side], costs[side]) for side in (0, 1))
        rows.append(Row(f"`{name}`, five requests, less bare Python", (Limit(0.5),), (new / old,), _both(old, new)))
    return iter(sorted(rows, key=lambda row: -row.measured[0]))


def _short_commands(bench: Bench) -> Iterator[tuple[str, Callable[[Side], Words]]]:
    shape = Shape("v4", BASE_STEPS)
    log, bundle = bench.log(shape), bench.bundle(shape)
    pi, home = GOLDEN / "v4-pi-completions", bench.folder / "home"
    write_log(shape, home)

    def cases(side: Side) -> Path:
        return bench.folder / f"golden-{side.name}"

    for side in bench.sides:
        bench.job(side, "golden", "record", log, "-o", cases(side))()
    page, learnt = bench.folder / "page.html", bench.folder / "learnt.json"
    fixed: dict[str, Words] = {
        "sessions": [home],
        "inspect": [log],
        "export": [log],
        "requests": [log],
        "render": [log, "--request", "4"],
        "encode": [GOLDEN / "pi-ai" / "chat-cache-key" / "input.json"],
        "deployment learn": [pi / "sessions", "--capture", pi / "captures", "-o", learnt],
        "verify": _verify(log, bundle)[1:],
        "drift": [log],
        "diff": [log, bench.log(Shape("v4", BASE_STEPS + 1))],
        "cache": [log],
        "uploads": [log],
        "report": [log, "-o", page],
        "rules": [],
        "explain": ["wire/different"],
        "completion": ["bash"],
    }
    for name, rest in fixed.items():
        yield name, lambda _, name=name, rest=rest: [*name.split(), *rest]  # type: ignore[misc]
    yield "golden record", lambda side: ["golden", "record", log, "-o", cases(side), "--force"]
    for name in ("check", "list", "review", "accept", "reject"):
        yield f"golden {name}", lambda side, name=name: ["golden", name, cases(side)]  # type: ignore[misc]


def verify(bench: Bench) -> Iterator[Row]:
    for kind in ("v0", "v4"):
        shape, base = Shape(kind, 450), Shape(kind, BASE_STEPS)
        words, small = (_verify(bench.log(each), bench.bundle(each)) for each in (shape, base))
        for side in bench.sides:
            if bench.json(side, *words)["summary"]["identical"] != shape.steps:
                raise BenchError(f"{side.name} {shape.id}: not every body of its own is identical")
        read = bench.python(bench.new, "floor.py", "bodies", bench.bundle(shape))
        floor = bench.python(bench.new, "floor.py", "warm", bench.log(shape))
        got = bench.compare(words, small, read, floor)
        floors = got.new_s / sum(map(median_s, got.more))
        work = f"`verify`, {kind}, 450 steps, all bodies captured"
        yield Row(work, (Limit(0.3),), (got.ratio,), _both(got.old_s, got.new_s), floors)


def _verify(log: Path, capture: Path) -> Words:
    return ["verify", log, "--capture", capture]


def growth(bench: Bench) -> Iterator[Row]:
    long_s: dict[str, float] = {}
    for kind in ("pi-completions", "pi-anthropic", "pi-responses", "v4", "v0"):
        shapes = [Shape(kind, steps) for steps in (BASE_STEPS, _SMALL, _LONG)]
        bench.check_requests(shapes[1], bench.new)
        base, small, large = bench.costs(*(bench.job(bench.new, *bench.requests(shape)) for shape in shapes))
        long_s[kind] = net_s(large, base)
        yield _grown(f"`requests`, {kind}, {_SMALL} to {_LONG} steps", _GROWS, net_s(small, base), long_s[kind], 8)
    ratio = long_s["pi-completions"] / long_s["v4"]
    raw = f"{seconds(long_s['v4'])} and {seconds(long_s['pi-completions'])}"
    yield Row(f"pi-completions beside v4, {_LONG} steps", (Limit(1.5, "of v4"),), (ratio,), raw)


def upstream(bench: Bench) -> Iterator[Row]:
    """Nothing where the packages are not installed yet; ``make ci`` installs them."""
    if not (oracle_root() / _PACKAGES / "node_modules").is_dir():
        print(f"upstream: no packages in {oracle_root()}", file=sys.stderr)
        return
    shape, base = Shape("v0", 450), Shape("v0", BASE_STEPS)
    script = script_command(HERE / "upstream.mjs", _PACKAGES)
    theirs, their_base = (
        _node_job(bench, [*script, str(bench.log(each)), str(bench.folder)]) for each in (shape, base)
    )
    ours = [request["body"]["sha256"] for request in bench.json(bench.new, *bench.requests(shape))["requests"]]
    if theirs().out.decode().split() != ours:
        raise BenchError(f"{shape.id}: upstream builds different bodies")
    jobs = (bench.job(bench.new, *bench.requests(each)) for each in (shape, base))
    costs = bench.costs(theirs, *jobs, their_base)
    node_s, new_s = net_s(costs[0], costs[3]), net_s(costs[1], costs[2])
    work = "upstream's packages on Node beside `requests`, v0, 450 steps"
    yield Row(work, (Limit(14, "×", at_least=True),), (node_s / new_s,), f"{seconds(node_s)} and {seconds(new_s)}")


def _node_job(bench: Bench, command: list[str]) -> Job:
    return lambda: run_process(command, bench.folder)


def hostile(bench: Bench) -> Iterator[Row]:
    limit = Limit(1.2, "(exponent)")
    archives = [_archive(bench, count) for count in (BASE_STEPS, 250, 1000)]
    for command in ("sessions", "cache"):
        base, small, large = bench.costs(*(bench.job(bench.new, command, path) for path in archives))
        work = f"`{command}`, ZIP of 250 to 1,000 sessions"
        yield _grown(work, limit, net_s(small, base), net_s(large, base), 4)
    stray = bench.folder / "stray"
    stray.mkdir(exist_ok=True)
    lines = []
    for steps in (BASE_STEPS, _SMALL, _LONG):
        shape = Shape("v0", steps)
        lines.append(_verify(bench.log(shape), _stray_capture(stray / shape.id, shape)))
    base, small, large = bench.costs(*(bench.job(bench.new, *words) for words in lines))
    work = f"`verify`, v0, {_SMALL} to {_LONG} steps, one capture that matches nothing"
    yield _grown(work, limit, net_s(small, base), net_s(large, base), 8)


def _archive(bench: Bench, count: int) -> Path:
    path = bench.folder / f"export-{count}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(count):
            shape = Shape("v0", BASE_STEPS, session_id=f"s{n}")
            archive.writestr(f"{shape.id}/session.jsonl", b"".join(frames(shape)))
    return path


def _stray_capture(folder: Path, shape: Shape) -> Path:
    """One request of the session that none of its events explains."""
    folder.mkdir(exist_ok=True)
    messages = [{"role": "user", "content": "Nobody asked this."}]
    body = {"model": "toy-1", "messages": messages, "stream": True, "max_tokens": 256000}
    headers = [["content-type", "application/json"], ["x-deepseek-harness-session-id", shape.id]]
    meta = {"method": "POST", "path": "/v1/chat/completions", "headers": headers, "status": 200}
    (folder / "0000.body").write_text(json.dumps(body, separators=(",", ":")), "utf-8")
    (folder / "0000.meta.json").write_text(json.dumps(meta), "utf-8")
    return folder


def large(bench: Bench) -> Iterator[Row]:
    limits = (Limit(0.4), Limit(250, "MB"))
    for name, packed in (("packed", True), ("unpacked", False)):
        shape, base = (Shape("v0", steps, chunks=300, packed=packed) for steps in (1922, BASE_STEPS))
        for command in ("requests", "cache"):
            got = bench.compare([command, bench.log(shape)], [command, bench.log(base)])
            raw = f"{_both(got.old_s, got.new_s)}; {got.peak_mb[0]:.0f} → {got.peak_mb[1]:.0f} MB"
            yield Row(f"`{command}`, 600,000 events, {name}", limits, (got.ratio, got.peak_mb[1]), raw)


ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "requests": rebuild,
    "digests": digests,
    "start": start,
    "verify": verify,
    "growth": growth,
    "upstream": upstream,
    "hostile": hostile,
    "large": large,
}
"""Name for ``--only`` → what it measures."""


def _both(old_s: float, new_s: float) -> str:
    return f"{seconds(old_s)} → {seconds(new_s)}"


def _grown(work: str, limit: Limit, small_s: float, large_s: float, factor: float) -> Row:
    measured = (exponent(small_s, large_s, factor),)
    return Row(work, (limit,), measured, f"{seconds(small_s)} and {seconds(large_s)}")
