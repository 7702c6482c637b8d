"""What every wire protocol offers, and the context it is asked in.

A protocol is one file with an ``Encoder``: it keeps what successive requests of one session share (a
:class:`~dsh_audit.wire.body.PartRun`) and gives each request's body with its claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, Protocol

from dsh_audit.attachments.checks import Problem
from dsh_audit.deployment import Deployment, Used
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.wire.body import Body
from dsh_audit.wire.images import ImageWriter, SentImage

Claim = Literal["bytes", "json", "logical", "none"]
"""The strongest comparison the evidence allows: exact bytes, JSON value, logical request, nothing."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One request as a protocol writes it.

    Args:
        protocol: name of the wire protocol.
        claim: what the body supports; below ``bytes`` the reasons are in ``why``.
        body: the base body without extension fields; None when it cannot be written.
        why: what keeps the claim from being stronger, one phrase each.
        unlogged: values that are not in the log and went into the body or its headers.
        url_path: path of the request below the host.
        http_headers: names in the order sent, values where they are predictable, else None.
        images: what it carries of images.
        file_ids: those in the body that only a capture shows.
        problems: what is wrong with stored images that it refers to, by digest.
    """

    protocol: str
    claim: Claim
    body: Body | None = None
    why: tuple[str, ...] = ()
    unlogged: tuple[Used, ...] = ()
    url_path: str | None = None
    http_headers: tuple[tuple[str, str | None], ...] = ()
    images: tuple[SentImage, ...] = ()
    file_ids: frozenset[str] = frozenset()
    problems: tuple[tuple[str, Problem], ...] = ()


@dataclass(slots=True)
class UnloggedInputs:
    """Collects, while a request is encoded, what was not in the log.

    Args:
        deployment: what the user told.
        used: what was taken so far.
        assumed: values by name that a capture has proven; each takes the place of a default.
        images: writes the images and files of the request; None where it holds none.
    """

    deployment: Deployment
    used: list[Used] = field(default_factory=list)
    assumed: Mapping[str, Used] = field(default_factory=dict)
    images: ImageWriter | None = None

    def take(self, used: Used) -> Used:
        """Record a value, or what was assumed in the place of a default, and hand it on."""
        if used.source == "default":
            used = self.assumed.get(used.name, used)
        if used not in self.used:
            self.used.append(used)
        return used


class Encoder(Protocol):
    """Writes the requests of one session in one protocol, in log order."""

    def encode(self, request: Request, inputs: UnloggedInputs) -> Encoded:
        """The body of a request; never raises for what the log can hold."""
        ...


class CannotEncodeError(Exception):
    """The request cannot be written; the reason says why and which claim is left.

    Args:
        reason: one phrase.
        claim: the rung that can still be claimed.
    """

    def __init__(self, reason: str, claim: Claim = "logical") -> None:
        super().__init__(reason)
        self.reason = reason
        self.claim: Claim = claim
