"""Why there is no body."""

from __future__ import annotations

from typing import Literal

from dsh_audit.errors import NotReconstructibleError


class PiRefusedError(NotReconstructibleError):
    """No bytes can be given for this request.

    Args:
        kind: ``no-request`` when the real client fails before it sends anything (that is exact knowledge);
            ``not-encoded`` when a request leaves but this protocol or version is not rebuilt here.
        rung: the strongest claim that can still be made, ``exact`` or ``logical``.
    """

    def __init__(self, message: str, kind: Literal["no-request", "not-encoded"]) -> None:
        super().__init__(message)
        self.kind = kind
        self.rung: Literal["exact", "logical"] = "exact" if kind == "no-request" else "logical"


def no_request(message: str) -> PiRefusedError:
    """The client would throw before sending."""
    return PiRefusedError(message, "no-request")


def not_encoded(message: str) -> PiRefusedError:
    """A request leaves, but its bytes cannot be rebuilt here."""
    return PiRefusedError(message, "not-encoded")
