"""``golden``: record what a session's requests look like, and check later runs against it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from dsh_audit.cli import common
from dsh_audit.cli.config import OutputPath
from dsh_audit.cli.golden_cases import (
    LogPlace,
    Task,
    check_cases,
    list_cases,
    may_write,
    place_of,
    read_log,
    record,
    require_writable,
    tasks_for_logs,
)
from dsh_audit.cli.options import (
    DEPLOYMENT,
    CaptureChoice,
    DeploymentChoice,
    capture_options,
    normalise_option,
    output_options,
)
from dsh_audit.cli.outputs import GuardedFiles, write_output
from dsh_audit.cli.reporting import reporting
from dsh_audit.deployment import Deployment
from dsh_audit.errors import LogError, UsageError
from dsh_audit.finding import Finding, Where
from dsh_audit.golden.build import Recipe
from dsh_audit.golden.compare import compare_cases
from dsh_audit.golden.normalise import parse_normaliser
from dsh_audit.golden.result import CaseResult, GoldenReport, Unused
from dsh_audit.golden.store import (
    CaseFile,
    accept_case,
    case_file,
    case_name,
    choose_cases,
    find_cases,
    reject_case,
    write_case,
)
from dsh_audit.log.locate import read_sessions
from dsh_audit.replay.verification import verify
from dsh_audit.report import text
from dsh_audit.report.golden import render_list, render_pending, report_golden
from dsh_audit.report.model import Report
from dsh_audit.rules import golden as rules
from dsh_audit.rules.log import UNREADABLE

_FORCE = click.option("--force", is_flag=True, help="Write although CI is set.")
_DIRECTORY = click.argument("root", metavar="DIR", type=click.Path(path_type=Path))
_NAMES = click.argument("names", metavar="[CASE]...", nargs=-1)


@click.group("golden")
def command() -> None:
    """Pin what the model sees, and find out in CI when it changes.

    A golden case holds, for each request of a session, digests of its settings, prompt, tools, messages and body,
    and their structure; no text unless --full. Nothing is written when CI is set, unless --force.
    """


@command.command("record", short_help="Write a golden case for each session of a log.")
@click.argument("named", metavar="LOG")
@capture_options("Verify against this. Repeatable.")
@click.option("-o", "--output", "root", required=True, type=OutputPath(path_type=Path), metavar="DIR")
@click.option("--name", metavar="CASE", help="Name of the case; default: the session id.")
@click.option("--session", metavar="ID", help="Session id, or a unique prefix, inside a home or export.")
@click.option("--full", is_flag=True, help="Keep texts, not only digests.")
@normalise_option
@DEPLOYMENT
@click.option("--force", is_flag=True, help="Replace cases that exist; write although CI is set.")
def record_command(
    named: str,
    captures: CaptureChoice,
    root: Path,
    name: str | None,
    session: str | None,
    full: bool,
    normalise: tuple[str, ...],
    deployment: DeploymentChoice,
    force: bool,
) -> None:
    """Write one golden case for each session of LOG into DIR; LOG is remembered relative to it.

    With --capture, a session whose captured requests differ from its log is not recorded, and what the captures
    prove about the deployment is kept.
    """
    require_writable(force)
    recipe = Recipe(normalisers=tuple(map(parse_normaliser, normalise)), full=full)
    places = [place_of(named, files) for files in read_sessions(named, session=session)]
    if name is not None and len(places) > 1:
        raise UsageError(f"{named}: {len(places)} sessions here; --name names one", hint="choose one with --session")
    files = _new_files(root, [name or place.session_id for place in places])
    known = next((case for case in files if case.is_recorded), None)
    if known is not None and not force:
        raise UsageError(f"golden case {known.name} exists", hint="check and accept it, or record with --force")
    failed = False
    for place, case in zip(places, files, strict=True):
        own, findings = recipe, list[Finding]()
        try:
            if captures.captures:
                own, findings = _verified(case, place, captures, recipe, deployment.read())
            recorded = None if findings else record(case, place.named, place.directory, own, deployment)
        except LogError as error:
            if len(places) == 1:
                raise
            recorded, findings = None, [Finding(UNREADABLE, error.message, Where(source=place.named))]
        if recorded is None:
            failed = True
            _echo(*text.findings_block(findings))
            continue
        write_case(case, recorded.case, GuardedFiles(place.named), pending=False)
        _echo(f"{text.good('recorded')} {text.bold(text.clean(case.name))}: {_counts(recorded.case.requests)}")
    sys.exit(1 if failed else 0)


def _new_files(root: Path, names: Sequence[str]) -> list[CaseFile]:
    """One case file each; equal names are numbered."""
    files: dict[str, CaseFile] = {}
    for wanted in map(case_name, names):
        name, number = wanted, 1
        while name in files:
            number += 1
            name = f"{wanted}-{number}"
        files[name] = case_file(root, name)
    return list(files.values())


def _counts(requests: Sequence[object]) -> str:
    return text.plural(len(requests), "request")


def _verified(
    case: CaseFile, place: LogPlace, captures: CaptureChoice, recipe: Recipe, deployment: Deployment
) -> tuple[Recipe, list[Finding]]:
    """The recipe with what the captures prove; findings where they show something else than the log."""
    archives = captures.read()
    history, _findings = read_log(place.named, place.directory)
    report = verify([history], archives, deployment)
    own = [pair for pair in report.pairs if pair.captured is not None and pair.rebuilt is not None]
    different = [pair for pair in own if pair.verdict == "different"]
    if different or not own:
        count = f"{len(different)} of {len(own)} captured requests differ" if own else "no captured request is of it"
        where = Where(source=place.named, captured=different[0].captured if different else None)
        return recipe, [Finding(rules.NOT_AS_CAPTURED, f"{case.name}: {count}", where)]
    assumed = {item["name"]: item["value"] for item in report.used if item["source"] == "capture"}
    verified = {pair.rebuilt.index: pair.verdict for pair in own if pair.rebuilt is not None}
    return replace(recipe, assumed=assumed, verified=verified), []


@command.command("check", short_help="Replay the log of every case and tell what changed.")
@_DIRECTORY
@click.option("--log", "log", metavar="LOG", help="Log, session or tree of a new run, instead of the remembered logs.")
@click.option("--session", metavar="ID", help="Session id, or a unique prefix, inside --log.")
@click.option("--case", "names", multiple=True, metavar="CASE", help="Check this case only. Repeatable.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Processes; default: as many as pay.")
@click.option(
    "--unused",
    type=click.Choice(["fail", "warn", "ignore"]),
    default="fail",
    show_default=True,
    help="What a case means that no log of --log belongs to.",
)
@normalise_option
@DEPLOYMENT
@_FORCE
@reporting
def check_command(
    root: Path,
    log: str | None,
    session: str | None,
    names: tuple[str, ...],
    jobs: int | None,
    unused: Unused,
    normalise: tuple[str, ...],
    deployment: DeploymentChoice,
    force: bool,
) -> Report:
    """Replay the log of every case in DIR and tell what changed: request, layer, pointer, event, cause.

    States: matched; changed; missing (a log without case where none may be written, or a case without log); new (a log
    without case, which was written and waits); unused (a case without log in --log). What changed or is new is
    written beside the golden file as .new, for golden review. --normalise applies to new cases only.
    """
    recipe = Recipe(normalisers=tuple(map(parse_normaliser, normalise)))
    cases = choose_cases(find_cases(root) if log is None or root.exists() else [], names)
    if not cases and log is None:
        raise UsageError(f"{root}: no golden cases here", hint="dsh-audit golden record LOG -o DIR makes some")
    base = Task(
        case=CaseFile("", root),
        deployment=deployment,
        may_write=may_write(force),
        recipe=recipe,
    )
    if log is None:
        tasks, left = [replace(base, case=case) for case in cases], list[CaseFile]()
    else:
        tasks, left = tasks_for_logs(root, cases, log, session, base)
    results = check_cases(tasks, jobs)
    results += [CaseResult(case.name, "unused", str(case.path), reason="no log uses this case") for case in left]
    return report_golden(GoldenReport(tuple(sorted(results, key=lambda result: result.name)), unused))


@command.command("list", short_help="List the cases and whether anything waits.")
@_DIRECTORY
@output_options
def list_command(root: Path, output_format: str, output: str | None) -> None:
    """List the cases in DIR: requests, normalisers, log, and whether anything waits to be accepted."""
    rows = list_cases(find_cases(root))
    common.write_report(
        output_format,
        output,
        as_json=lambda: {"schema": "dsh-audit/golden-list/1", "cases": rows},
        as_text=lambda: render_list(rows),
    )


@command.command("review", short_help="Show what waits; on a terminal, decide on each.")
@_DIRECTORY
@_NAMES
@_FORCE
def review_command(root: Path, names: tuple[str, ...], force: bool) -> None:
    """Show what waits to be accepted in DIR; on a terminal, decide on each.

    Exit status: 0 when nothing waits any more, else 1.
    """
    waiting = [case for case in choose_cases(find_cases(root), names) if case.is_pending]
    interactive = sys.stdin.isatty() and sys.stdout.isatty() and may_write(force)
    left = 0
    for number, case in enumerate(waiting, 1):
        _echo(text.dim(f"{number}/{len(waiting)}"), *_pending_lines(case))
        left += not (interactive and _decide(case))
    if not waiting:
        _echo("nothing waits to be accepted")
    elif left:
        _echo("", f"{text.plural(left, 'case')} to decide on: dsh-audit golden accept|reject DIR [CASE...]")
    sys.exit(1 if left else 0)


def _pending_lines(case: CaseFile) -> list[str]:
    pending = case.read_pending()
    if not case.is_recorded:
        return list(render_pending(case.name, pending, None))
    return list(render_pending(case.name, pending, compare_cases(case.read(), pending)))


def _decide(case: CaseFile) -> bool:
    """Ask for a decision; whether there was one."""
    answer = click.prompt(
        "accept, reject or skip", type=click.Choice(["a", "r", "s"]), default="s", show_choices=True, err=True
    )
    if answer == "a":
        accept_case(case, GuardedFiles())
    elif answer == "r":
        reject_case(case, GuardedFiles())
    return bool(answer != "s")


@command.command("accept", short_help="Make what waits the golden cases.")
@_DIRECTORY
@_NAMES
@_FORCE
def accept_command(root: Path, names: tuple[str, ...], force: bool) -> None:
    """Make what waits in DIR the golden cases: all of it, or the CASEs."""
    require_writable(force)
    for case in _waiting(root, names):
        accept_case(case, GuardedFiles())
        _echo(f"{text.good('accepted')} {text.clean(case.name)}")


@command.command("reject", short_help="Throw away what waits.")
@_DIRECTORY
@_NAMES
@_FORCE
def reject_command(root: Path, names: tuple[str, ...], force: bool) -> None:
    """Throw away what waits in DIR: all of it, or the CASEs."""
    require_writable(force)
    for case in _waiting(root, names):
        reject_case(case, GuardedFiles())
        _echo(f"{text.warn('rejected')} {text.clean(case.name)}")


def _waiting(root: Path, names: Sequence[str]) -> list[CaseFile]:
    chosen = choose_cases(find_cases(root), names)
    idle = [case.name for case in chosen if names and not case.is_pending]
    if idle:
        raise UsageError(f"golden case {idle[0]}: nothing waits to be accepted")
    waiting = [case for case in chosen if case.is_pending]
    if not waiting:
        _echo("nothing waits to be accepted")
    return waiting


def _echo(*lines: str) -> None:
    write_output("\n".join(lines) + "\n", None)
