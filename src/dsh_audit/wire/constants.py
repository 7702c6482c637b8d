"""Long fixed texts of the harness, known by length and digest only. Source: spec images 8."""

from __future__ import annotations

import hashlib

from dsh_audit.record import dataclass
from dsh_audit.request.neutral import COMPACTION_INSTRUCTION
from dsh_audit.text import ecma


@dataclass(frozen=True, slots=True)
class Constant:
    """A fixed text that is not shipped.

    Args:
        name: as in ``--constant NAME=FILE``.
        length: UTF-16 code units.
        sha256: over the UTF-8 text.
    """

    name: str
    length: int
    sha256: str

    def matches(self, text: str) -> bool:
        """Whether a text is this constant."""
        if ecma.length(text) != self.length:
            return False
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == self.sha256


CONSTANTS: dict[str, Constant] = {
    constant.name: constant
    for constant in (
        Constant(COMPACTION_INSTRUCTION, 1802, "3b7aa71f525b9a82afc2f1747c4434ceb7b3bc1fadf8b64c37c4e97db70d074b"),
    )
}
