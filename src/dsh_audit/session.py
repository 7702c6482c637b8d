"""A session for programs: open it once, then ask for its events, its requests as they were sent, and its audits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from dsh_audit import audit
from dsh_audit.attachments.store import AttachmentStore
from dsh_audit.capture import CaptureArchive, read_capture
from dsh_audit.checks.cache import CacheOptions
from dsh_audit.checks.cache_sum import CacheReport
from dsh_audit.checks.drift_model import DriftReport
from dsh_audit.cli import common
from dsh_audit.cli.options import PriceChoice
from dsh_audit.deployment import Deployment
from dsh_audit.finding import Finding
from dsh_audit.log.generations import SessionHistory
from dsh_audit.log.session_log import EventReader, SessionLog
from dsh_audit.record import dataclass
from dsh_audit.replay import verification
from dsh_audit.replay.sent import SentRequest, build_sent
from dsh_audit.replay.session_replay import Replay
from dsh_audit.wire.constants import check_constants

PathLike = str | Path


@dataclass(frozen=True, slots=True)
class Session:
    """One session with all its generations, and what its logs cannot know.

    Args:
        history: the generations, oldest first.
        deployment: what the logs cannot know; :func:`load_deployment` reads one.
        findings: about finding and opening the logs.
    """

    history: SessionHistory
    deployment: Deployment = field(default_factory=Deployment)
    findings: tuple[Finding, ...] = ()

    @property
    def log(self) -> SessionLog:
        """The current generation, the one that was asked for."""
        return self.history.current

    @property
    def id(self) -> str:
        """Id of the session; empty where the log has no session header."""
        return self.log.session_id

    @property
    def generations(self) -> tuple[SessionLog, ...]:
        """The logs of the session, oldest first."""
        return tuple(generation.log for generation in self.history.generations)

    def attachments(self) -> AttachmentStore | None:
        """Stored images, read-only; None where no home is known."""
        given = self.deployment.attachments
        return self.history.attachments if given is None else given

    def events(self, through: int | None = None) -> EventReader:
        """A fresh pass over the events of the current generation.

        Args:
            through: last seq, None for all.
        """
        return self.log.events(through)

    def requests(self, through: int | None = None) -> Iterator[SentRequest]:
        """Every request in order, those of older generations as they were sent then.

        Args:
            through: last seq of the current generation to read, None for all.
        """
        return map(build_sent, Replay(self.history, self.deployment, through))


def open_session(
    path_or_id: PathLike,
    *,
    deployment: PathLike | Deployment | None = None,
    session: str | None = None,
    generation: int | None = None,
    home: PathLike | None = None,
    objects: PathLike | None = None,
) -> Session:
    """The only session that a path or an id names.

    Args:
        path_or_id: a log, a session directory, a home, an exported ZIP, or an id in the default home.
        deployment: a deployment file or value.
        session: id or unique prefix of one, where the path holds several sessions.
        generation: format version to take as current, instead of the newest.
        home: harness home with the images, instead of the one that the session lies in.
        objects: folder of stored images, each named by the SHA-256 of its bytes.

    Raises:
        LogError: nothing there, or nothing that can be read.
        UsageError: several sessions.
        DeploymentError: the deployment file is malformed.
    """
    known = deployment if isinstance(deployment, Deployment) else load_deployment(deployment)
    if home is not None or objects is not None:
        places, folders = ([] if one is None else [one] for one in (home, objects))
        known = replace(known, attachments=common.read_attachments(places, folders))
    log, files, findings = common.open_one(str(path_or_id), session, generation)
    return Session(common.read_history(log, files), known, tuple(findings))


def load_deployment(path: PathLike | None, *, constants: Mapping[str, str] | None = None) -> Deployment:
    """A deployment file; an empty deployment without one.

    Args:
        constants: fixed texts of the harness by name, beside those that the file names.

    Raises:
        DeploymentError: the file is malformed, or a text is not the one of the harness.
    """
    deployment = common.read_deployment(None if path is None else str(path), ())
    check_constants(constants or {})
    return replace(deployment, constants={**deployment.constants, **(constants or {})})


def verify(
    sessions: Session | Iterable[Session],
    captures: PathLike | CaptureArchive | Iterable[PathLike | CaptureArchive],
    *,
    through: int | None = None,
) -> verification.VerifyReport:
    """Compare every captured request with the one that a log stands for.

    Args:
        sessions: one, or several of one deployment.
        captures: directories of bodies, HAR or JSONL files, or what :func:`read_capture` gave.

    Raises:
        CaptureError: a capture cannot be read at all.
    """
    asked = [sessions] if isinstance(sessions, Session) else list(sessions)
    named = [captures] if isinstance(captures, str | Path | CaptureArchive) else captures
    archives = [item if isinstance(item, CaptureArchive) else read_capture(Path(item)) for item in named]
    findings = [finding for one in asked for finding in one.findings]
    deployment = asked[0].deployment if asked else Deployment()
    return verification.verify([one.history for one in asked], archives, deployment, through, findings)


def audit_drift(session: Session, other: Session | None = None, *, through: int | None = None) -> DriftReport:
    """What changed between the request headers of consecutive step requests, or against another session."""
    if other is None:
        return audit.audit_drift(session.history, session.deployment, through, session.findings)
    findings = (*session.findings, *other.findings)
    return audit.audit_drift_between(session.history, other.history, session.deployment, findings)


def audit_cache(
    session: Session, *, through: int | None = None, currency: str = "USD", prices: PathLike | None = None
) -> CacheReport:
    """What each request shares with earlier ones, where the prefix broke, why, and what it cost.

    Args:
        currency: of the price table to use.
        prices: a price file instead of the built-in one.
    """
    options = read_cache_options(currency, prices)
    return audit.audit_cache(session.history, session.deployment, options, through, session.findings)


def read_cache_options(currency: str = "USD", prices: PathLike | None = None) -> CacheOptions:
    """Price table and the cache rules of every known provider."""
    return PriceChoice(None if prices is None else str(prices), currency).read()
