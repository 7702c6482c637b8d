"""The one budget of everything that is read: what does not fit in it is not parsed.

A row or a document fits when five times its bytes and 80 bytes a value do, counted on its raw bytes; the bytes alone
bound what is held before it can be counted.
"""

from __future__ import annotations

from contextvars import ContextVar

from dsh_audit.record import dataclass
from dsh_audit.text.ecma_slow import EcmaSyntaxError

DEFAULT_MEMORY = 400_000_000
_PER_BYTE, _PER_VALUE = 5, 80
_WINDOW = 1 << 20
_STRUCTURE = (b",", b"[", b"{", b":")


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may use.

    Args:
        memory_bytes: above what the program needs at start; ``--memory-limit``.
    """

    memory_bytes: int = DEFAULT_MEMORY

    @property
    def document_bytes(self) -> int:
        """Longest row or document that is parsed, if it held a single value."""
        return self.memory_bytes // _PER_BYTE

    @property
    def held_bytes(self) -> int:
        """Most bytes that are held without being parsed."""
        return self.memory_bytes // 4

    @property
    def body_bytes(self) -> int:
        """Longest captured body; the replayed one lies beside it."""
        return self.memory_bytes // 2

    @property
    def text(self) -> str:
        """The limit as messages name it."""
        return f"the memory limit of {self.memory_bytes // 1_000_000} MB (--memory-limit raises it)"


BUDGET: ContextVar[Budget] = ContextVar("budget", default=Budget())  # noqa: B039
"""That of this run."""


class BudgetError(EcmaSyntaxError):
    """A row or a document that the budget does not admit; it may be sound."""

    def __init__(self, size_bytes: int, budget: Budget) -> None:
        reason = f"{size_bytes} bytes with this many values do not fit in {budget.text}"
        super().__init__(reason, 0)
        self.args = (reason,)


def is_admitted(data: bytes) -> bool:
    """Whether a JSON text may be parsed; bytes in strings are told from structure only where that decides."""
    memory = BUDGET.get().memory_bytes
    if len(data) * (_PER_BYTE + _PER_VALUE) <= memory:
        return True
    room = (memory - _PER_BYTE * len(data)) // _PER_VALUE
    return room > 0 and (sum(map(data.count, _STRUCTURE)) < room or _values_fit(data, room))


def check_admitted(data: bytes) -> None:
    """Raise BudgetError where a JSON text may not be parsed."""
    if not is_admitted(data):
        raise BudgetError(len(data), BUDGET.get())


def _values_fit(data: bytes, room: int) -> bool:
    """Whether a text holds fewer values than there is room for; strings do not count, windows keep it small."""
    at, count, inside = 0, 0, 0
    while at < len(data):
        window = data[at : at + _WINDOW]
        if cut := len(window) - len(window.rstrip(b"\\")):
            window += data[at + len(window) : at + len(window) + 1] if cut % 2 else b""
        at += len(window)
        pieces = window.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        count += sum(map(b"".join(pieces[inside::2]).count, _STRUCTURE))
        if count >= room:
            return False
        inside ^= (len(pieces) - 1) & 1
    return True
