"""Logs + captures → a deployment file for the llm-pi-ai routes in them, and how firmly each setting is known.

The captured bodies suggest a first profile; then settings are changed one at a time as long as that makes more of the
bodies come out right. A setting is *fixed* when every other value that was tried breaks a body, else *open*.
Source: spec wire-pi-ai 2, 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from dsh_audit.capture import CaptureArchive
from dsh_audit.capture.exchange import Exchange, Fidelity
from dsh_audit.deployment import Deployment
from dsh_audit.events import Json
from dsh_audit.log.generations import SessionHistory
from dsh_audit.record import dataclass
from dsh_audit.replay.learning.guess import address_of, first_settings, parsed
from dsh_audit.replay.learning.search import Row, Search, Setting, build_deployment
from dsh_audit.replay.verification import VerifyReport, verify
from dsh_audit.wire.protocol import PI_AI

_EXACT = (Fidelity.RAW, Fidelity.TEXT)
_MAX_ROWS = 60


@dataclass(frozen=True, slots=True)
class LearnedSetting:
    """One setting of the proposed file.

    Args:
        name: dotted path in the file.
        value: what was found; None together with ``is_set`` False means that the file leaves it out.
        equals: other values that give the same bodies.
    """

    name: str
    value: Json
    is_set: bool
    equals: tuple[Json, ...]

    JSON: ClassVar = "name value set=is_set status equals"

    @property
    def status(self) -> str:
        """``fixed`` by the evidence, or ``open``."""
        return "open" if self.equals else "fixed"


@dataclass(frozen=True, slots=True)
class Learned:
    """A proposed deployment.

    Args:
        raw: the deployment file.
        settings: what was looked at.
        report: the verification under that file.
        routes: provider routes of llm-pi-ai that the logs hold.
    """

    raw: dict[str, Json]
    settings: tuple[LearnedSetting, ...]
    report: VerifyReport
    routes: tuple[str, ...]

    SCHEMA: ClassVar = "dsh-audit/deployment-learn/1"
    JSON: ClassVar = "schema=SCHEMA routes settings summary=report.summary"


def learn(histories: Sequence[SessionHistory], archives: Sequence[CaptureArchive], deployment: Deployment) -> Learned:
    """Find settings that reproduce the captured bodies.

    Args:
        histories: of the sessions.
        archives: their captures.
        deployment: what is known already; it is kept.
    """
    exchanges = {exchange.id: exchange for archive in archives for exchange in archive.exchanges}
    blind = verify(histories, archives, deployment)
    # Without any body a request that names no session finds no capture, so first ones are needed.
    rough = build_deployment(deployment.raw, first_settings(_rough_rows(blind, list(exchanges.values()))))
    rows = _rows(verify(histories, archives, replace(deployment, raw=rough)), exchanges)
    settings = first_settings(rows)
    search = Search(deployment, _thinned(rows), settings)
    search.run()
    known = search.judge()
    raw = build_deployment(deployment.raw, search.settings)
    learned = tuple(LearnedSetting(setting.name, setting.shown, setting.is_set, equals) for setting, equals in known)
    report = verify(histories, archives, replace(deployment, raw=raw))
    return Learned(raw, learned, report, tuple(sorted({row.request.provider for row in rows})))


def _rough_rows(report: VerifyReport, exchanges: Sequence[Exchange]) -> list[Row]:
    """The pi-ai requests, each with some captured body that names its model."""
    known: dict[tuple[Json, str], tuple[bytes, Exchange]] = {}
    for exchange in exchanges:
        body = exchange.read_body()
        if body is not None and exchange.session_id is None:
            model = parsed(body).get("model")
            for api in (address_of(exchange)[0], PI_AI):
                known.setdefault((model, api), (body, exchange))
    rows: list[Row] = []
    for pair in report.pairs:
        if pair.rebuilt is None or pair.rebuilt.encoded.protocol.startswith("deepseek"):
            continue
        request = pair.rebuilt.request
        found = known.get((request.model, pair.rebuilt.encoded.protocol))
        if request.provider and found is not None:
            rows.append(Row(request, *found))
    return rows


def _rows(report: VerifyReport, exchanges: Mapping[str, Exchange]) -> list[Row]:
    """The pi-ai requests that have an exact captured body."""
    rows: list[Row] = []
    for pair in report.pairs:
        exchange = exchanges.get(pair.captured or "")
        if exchange is None or pair.rebuilt is None or exchange.fidelity not in _EXACT:
            continue
        protocol, body = pair.rebuilt.encoded.protocol, exchange.read_body()
        if body is not None and not protocol.startswith("deepseek"):
            rows.append(Row(pair.rebuilt.request, body, exchange))
    return rows


def _thinned(rows: list[Row]) -> list[Row]:
    """Evenly spread rows when there are many."""
    step = max(1, -(-len(rows) // _MAX_ROWS))
    return rows[::step]


__all__ = ["Learned", "LearnedSetting", "Setting", "learn"]
