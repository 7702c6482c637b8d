"""Results of the cache check: one row a request, and their sum."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar, Literal

from dsh_audit.checks.causes import Why
from dsh_audit.checks.drift_model import HeaderChange
from dsh_audit.finding import Where
from dsh_audit.log.session_log import SessionLog
from dsh_audit.pricing import Usage
from dsh_audit.record import dataclass

Basis = Literal["usage", "estimate"]
Remark = Literal["first", "unsent", "no-body", "no-data", "below-minimum"]
"""Why nothing is claimed: first of its lineage, never sent, no body, no cache figures, too short to be cached."""


@dataclass(frozen=True, slots=True)
class CaptureRun:
    """Captures that stand where a log would: there are no events to name.

    Args:
        label: as named by the user.
        session_id: the one that all requests name, else how many they name.
        is_one: whether it is an id.
    """

    label: str
    session_id: str
    is_one: bool

    @property
    def source(self) -> CaptureRun:
        """Itself: it has the label."""
        return self

    def where(self, *, seq: int | None = None, request: int | None = None, pointer: str | None = None) -> Where:
        """A place of a finding."""
        session = self.session_id if self.is_one else None
        return Where(source=self.label, session=session, seq=seq, request=request, pointer=pointer)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount.

    Args:
        basis: ``usage`` where it follows from logged usage and a stated price, else ``estimate``.
        peak: whether the peak price applied; None without peak hours.
    """

    amount: Decimal
    currency: str
    basis: Basis
    peak: bool | None = None


@dataclass(frozen=True, slots=True)
class Bust:
    """A request that could not, or did not, read from the cache what an earlier one had sent.

    Args:
        why: the cause and its place.
        lost_tokens: input tokens that a hit would have read from the cache.
        basis: whether logged usage or an estimate gives them.
        cost: what a hit would have saved; None without a price.
        declared: someone asked for what caused it (a switch, a restart, a compaction, a prune).
        repeats: busts with the same cause and part up to and including this one.
    """

    why: Why
    lost_tokens: int
    basis: Basis
    cost: Money | None
    declared: bool
    repeats: int = 1

    JSON: ClassVar = (
        "cause=why.cause part=why.part seq=why.seq pointer=why.pointer at=why.at message block cost=cost.amount "
        "basis lost_tokens declared repeats detail=why.detail what=why.what"
    )

    @property
    def message(self) -> int | None:
        """Index of the message it is in."""
        return _index_after(self.why.pointer, ("messages", "input"))

    @property
    def block(self) -> int | None:
        """Index of the content block it is in."""
        return _index_after(self.why.pointer, ("content",))


def _index_after(pointer: str | None, names: tuple[str, ...]) -> int | None:
    parts = (pointer or "").split("/")
    for name, index in pairwise(parts):
        if name in names and index.isdecimal():
            return int(index)
    return None


@dataclass(frozen=True, slots=True)
class Compared:
    """How much of one request was sent before.

    Args:
        previous: index of the request before it in its lineage; None for the first.
        wire_shared: common raw prefix of the two bodies; None where a body is missing.
        wire_bytes: size of the body.
        wire_source: whether the bodies compared are rebuilt or captured.
        best: the earlier request of the lineage, on the same route, that shares most of the rendered prompt.
        shared: bytes of the rendered prompt shared with it: what a prefix cache can give back (reused).
        prompt_bytes: size of the rendered prompt.
        resent: bytes behind ``shared`` that the previous request had too: sent again, paid again.
    """

    previous: int | None
    wire_shared: int | None
    wire_bytes: int | None
    wire_source: Literal["rebuilt", "captured"]
    best: int | None
    shared: int | None
    prompt_bytes: int | None
    resent: int

    @property
    def new(self) -> int | None:
        """Bytes that no earlier request is known to have held."""
        if self.prompt_bytes is None or self.shared is None:
            return None
        return self.prompt_bytes - self.shared - self.resent

    @property
    def resent_bytes(self) -> int | None:
        """``resent``, where the prompt is known."""
        return None if self.prompt_bytes is None else self.resent

    @property
    def wire(self) -> dict[str, Any]:
        """The ``wire`` member of a row."""
        return {
            "previous": self.previous,
            "shared_bytes": self.wire_shared,
            "body_bytes": self.wire_bytes,
            "source": self.wire_source,
        }

    @property
    def prompt(self) -> dict[str, Any]:
        """The ``prompt`` member of a row."""
        return {
            "best": self.best,
            "shared_bytes": self.shared,
            "body_bytes": self.prompt_bytes,
            "resent_bytes": self.resent_bytes,
            "new_bytes": self.new,
        }


@dataclass(frozen=True, slots=True)
class Predicted:
    """Tokens, converted from bytes.

    Args:
        reused: that the provider's cache can give back, by its rules; no promise.
        prompt: of the whole prompt.
        basis: ``usage`` where the request's own usage gives the rate of bytes to tokens.
    """

    reused: int
    prompt: int
    basis: Basis

    JSON: ClassVar = "reused_tokens=reused prompt_tokens=prompt basis"


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One request.

    Args:
        index: as in the ``requests`` report.
        kind: ``step``, ``title``, ``compaction`` or ``web-search``.
        lineage: requests with the same lineage can share a prefix.
        time_ms: when it was sent, as logged.
        seq: its first own event: where the log goes on behind what it could see; None without a log.
        usage: as the provider reported it.
        cost: of the whole request; None without usage or price.
        change: the header change it brought.
        rules: name of the cache rules used.
        log: the generation that the seqs number.
    """

    index: int
    kind: str
    lineage: str
    turn: int | None
    step: int | None
    attempt: int | None
    time_ms: int | float | None
    seq: int | None
    provider: str
    model: str
    outcome: str
    rules: str
    compared: Compared
    predicted: Predicted | None
    usage: Usage | None
    cost: Money | None
    bust: Bust | None
    remark: Remark | None
    change: HeaderChange | None = None
    log: SessionLog | None = None

    JSON: ClassVar = (
        "index kind lineage turn step attempt time_ms seq provider model outcome rules wire=compared.wire "
        "prompt=compared.prompt predicted usage cost=cost.amount cost_basis=cost.basis peak=cost.peak bust remark"
    )
