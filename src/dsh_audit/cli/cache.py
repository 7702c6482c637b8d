"""``cache``: where cached prefixes broke, why, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import click

from dsh_audit.audit import audit_cache
from dsh_audit.checks.cache import CacheOptions
from dsh_audit.checks.cache_sum import COUNTS, METRICS, CacheReport, measure_summary, summarise
from dsh_audit.checks.gates import Limit, check_limits, compare_reports, flatten, parse_limit
from dsh_audit.cli import common
from dsh_audit.cli.options import (
    ANY_LOGS,
    DEPLOYMENT,
    PRICES,
    CaptureChoice,
    DeploymentChoice,
    LogChoice,
    PriceChoice,
    capture_options,
)
from dsh_audit.cli.reporting import reporting
from dsh_audit.deployment import Deployment
from dsh_audit.errors import UsageError
from dsh_audit.finding import Finding, Where, sort_findings
from dsh_audit.log.locate import SessionFiles
from dsh_audit.log.session_log import SessionLog
from dsh_audit.report.cache import ledger_rows, rank, render_cache, render_csv, render_ranking
from dsh_audit.report.cache_cases import report_cache
from dsh_audit.report.json import render_json
from dsh_audit.report.model import Report
from dsh_audit.rules import cache as rules
from dsh_audit.text import ecma
from dsh_audit.text.to_json import to_json


@click.command("cache")
@ANY_LOGS
@capture_options("Compare captured bodies where they can be paired. Repeatable.")
@click.option(
    "--capture-only",
    "only",
    multiple=True,
    type=click.Path(),
    metavar="PATH",
    help="Compare neighbouring captured calls, without any LOG. Repeatable.",
)
@PRICES
@click.option(
    "--provider-rules", metavar="NAME", help="Cache rules for every route: deepseek, anthropic, openai, gemini, prefix."
)
@click.option("--grain", type=click.IntRange(min=1), metavar="TOKENS", help="Cached lengths are multiples of this.")
@click.option("--baseline", type=click.Path(), metavar="OLD", help="Log or saved JSON report to compare with.")
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="LIMIT",
    help="Fail when this holds, e.g. 'hit_rate<0.95', 'busts>0', 'cost_per_step>+10%' (signed: against --baseline).",
)
@click.option("--all", "every_row", is_flag=True, help="List every request, however many.")
@click.option(
    "--require-each", is_flag=True, help="Limits fail on a session without requests among others that have some."
)
@click.option(
    "--ledger", type=click.Choice(["csv", "json"]), help="Print one flat record per request instead of the report."
)
@DEPLOYMENT
@reporting
def command(
    logs: LogChoice,
    captures: CaptureChoice,
    only: tuple[str, ...],
    prices: PriceChoice,
    provider_rules: str | None,
    grain: int | None,
    baseline: str | None,
    limits: tuple[str, ...],
    every_row: bool,
    require_each: bool,
    ledger: str | None,
    deployment: DeploymentChoice,
) -> Report:
    """Tell for every request of LOG what it shares with earlier ones, where the prefix broke, why, and the cost.

    With several logs, or a home without --session, the sessions are ranked by what busts cost. A bust is a request
    that did not go on where its predecessor ended, or whose provider read less from its cache than it could have.

    Columns: the prompt as sent is reused (an earlier request began with it), re-sent (sent before, but behind the
    first difference, so paid again) and new. The provider read CACHED OF so many input tokens from its cache. BUST
    says why, at which log event (seq), and where the prompts part (a JSON pointer).

    With --capture-only, requests belong together by the session they name and the start of their prompts; what a log
    would say (who asked for a change, at which event) stays empty.
    """
    if bool(logs.names) == bool(only) or (only and captures.captures):
        raise UsageError("name a LOG, or captures with --capture-only", hint="--capture goes with a LOG")
    wanted = [parse_limit(limit, METRICS) for limit in limits]
    settings = deployment.read()
    options = prices.read(provider_rules, grain)
    if only:
        return _of_captures(replace(captures, captures=only), options, wanted, _baseline(baseline, settings, options),
                            ledger, every_row)
    opened, findings = logs.open_all()
    if captures.captures:
        if len(opened) > 1:
            raise UsageError("--capture goes with one session only", hint="choose one with --session")
        settings, options = _with_captures(captures, *opened[0], settings, options)
    reports = [
        _audit(log, files, settings, options, logs.through)
        for log, files in common.with_progress(opened, "comparing", len(opened))
    ]
    if len(reports) > 1:
        if baseline is not None or ledger is not None:
            raise UsageError("--baseline and --ledger go with one session only", hint="choose one with --session")
        return _ranking(reports, findings, wanted, require_each)
    report = replace(reports[0], findings=tuple(sort_findings([*findings, *reports[0].findings])))
    report = _judge(report, wanted, _baseline(baseline, settings, options))
    return report_cache(
        [report],
        report.findings,
        wanted,
        as_json=lambda: to_json(report),
        as_text=lambda: _ledger(report, ledger) if ledger else render_cache(report, every_row=every_row),
    )


def _of_captures(
    captures: CaptureChoice,
    options: CacheOptions,
    limits: list[Limit],
    old: dict[str, Any] | None,
    ledger: str | None,
    every_row: bool,
) -> Report:
    """The report of captures without a log."""
    from dsh_audit.checks.capture_cache import audit_captures

    named = list(zip(captures.captures, captures.read(), strict=True))
    report = _judge(audit_captures(named, options), limits, old)

    def as_json() -> dict[str, Any]:
        value: dict[str, Any] = to_json(report)
        return {**value, "schema": "dsh-audit/capture-cache/1", "captures": value["log"], "log": None}

    return report_cache(
        [report],
        report.findings,
        limits,
        as_json=as_json,
        as_text=lambda: _ledger(report, ledger) if ledger else render_cache(report, every_row=every_row),
    )


def _ledger(report: CacheReport, kind: str) -> str:
    return render_csv(report) if kind == "csv" else render_json(ledger_rows(report))


def _audit(
    log: SessionLog, files: SessionFiles, deployment: Deployment, options: CacheOptions, through: int | None
) -> CacheReport:
    return audit_cache(common.read_history(log, files), deployment, options, through)


def _with_captures(
    captures: CaptureChoice, log: SessionLog, files: SessionFiles, deployment: Deployment, options: CacheOptions
) -> tuple[Deployment, CacheOptions]:
    """Fixed texts that a capture tells, and the body of each captured request by the index of its request."""
    from dsh_audit.capture.exchange import Fidelity
    from dsh_audit.replay.verification import learn_constants, verify

    archives = captures.read()
    deployment = learn_constants(deployment, (exchange for archive in archives for exchange in archive.exchanges))
    history = common.read_history(log, files)
    found: dict[int, Callable[[], bytes | None]] = {}
    for archive in archives:
        exchanges = {exchange.id: exchange for exchange in archive.exchanges}
        for pair in verify([history], [archive], deployment).pairs:
            exchange = exchanges.get(pair.captured or "")
            is_exact = exchange is not None and exchange.fidelity in (Fidelity.RAW, Fidelity.TEXT)
            if exchange is not None and pair.rebuilt is not None and is_exact:
                found.setdefault(pair.rebuilt.index, exchange.read_body)
    return deployment, replace(options, captured=found)


def _baseline(named: str | None, deployment: Deployment, options: CacheOptions) -> dict[str, Any] | None:
    """The older report as JSON: read from a saved one, or made from a log."""
    if named is None:
        return None
    path = Path(named)
    if path.is_file() and path.suffix == ".json":
        return _saved_report(named, path)
    history, _findings = LogChoice((named,)).read_one()
    report: dict[str, Any] = to_json(audit_cache(history, deployment, replace(options, captured={})))
    return report


def _saved_report(named: str, path: Path) -> dict[str, Any]:
    """A saved report, as far as comparisons read it."""
    try:
        value: dict[str, Any] = ecma.parse(path.read_bytes())
        if value["schema"] != "dsh-audit/cache/1":
            raise KeyError
        numbers = list(flatten(value["summary"]).values())
        compare_reports(value, value)
    except OSError as error:
        raise UsageError(f"{named}: cannot be read: {error.strerror}") from None
    except ecma.EcmaSyntaxError as error:
        raise UsageError(f"{named}: not a JSON report: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError):
        numbers = [inf]
    if any(number is not None and not isfinite(number) for number in numbers):
        hint = "save one with: cache LOG --format json -o FILE"
        raise UsageError(f"{named}: not a report of dsh-audit cache", hint=hint)
    return value


def _judge(report: CacheReport, limits: list[Limit], old: dict[str, Any] | None) -> CacheReport:
    new = to_json(report)
    before = None if old is None else measure_summary(old["summary"])
    where = report.log.where()
    failed = check_limits(limits, measure_summary(new["summary"]), before, rules.THRESHOLD, where)
    comparison = compare_reports(new, old) if old is not None else None
    return replace(report, findings=tuple(sort_findings([*report.findings, *failed])), comparison=comparison)


def _ranking(reports: list[CacheReport], findings: list[Finding], limits: list[Limit], require_each: bool) -> Report:
    """The ranking of several sessions; one without requests is judged by what is known of it, others having some."""
    each = [limit for limit in limits if limit.scope == "each"]
    counts = [limit for limit in each if limit.metric in COUNTS]
    strict = require_each or not any(report.summary.requests for report in reports)
    reports = [_judge(report, each if strict or report.summary.requests else counts, None) for report in reports]
    whole = summarise((row for report in reports for row in report.rows), reports[0].summary.currency)
    total = [limit for limit in limits if limit.scope == "total"]
    failed = check_limits(total, measure_summary(to_json(whole)), None, rules.THRESHOLD, Where())
    every = sort_findings([*findings, *failed, *(finding for report in reports for finding in report.findings)])
    shown = [finding for finding in every if not finding.code.startswith("cache/") or finding.severity == "error"]
    return report_cache(
        reports,
        every,
        limits,
        as_json=lambda: {
            "schema": "dsh-audit/cache-ranking/1",
            "sessions": [{"log": report.log_json, "summary": to_json(report.summary)} for report in rank(reports)],
            "findings": to_json(every),
        },
        as_text=lambda: render_ranking(reports, shown),
    )
