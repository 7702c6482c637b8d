"""Long fixed texts of the harness, known by length and digest only. Source: spec images 5, 7, 8."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from dsh_audit.attachments import handles
from dsh_audit.errors import DeploymentError
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


def check_constants(texts: Mapping[str, str]) -> None:
    """Refuse given texts that are not the ones of the harness.

    Raises:
        DeploymentError: an unknown name, or a text with another digest.
    """
    for name, text in texts.items():
        if name not in CONSTANTS:
            raise DeploymentError(f"constant {name}: no such text", hint=f"known: {', '.join(sorted(CONSTANTS))}")
        if not CONSTANTS[name].matches(text):
            units = f"{ecma.length(text)} UTF-16 units, {CONSTANTS[name].length} expected"
            hint = "the file holds the text alone, without a line end that it does not have"
            raise DeploymentError(f"constant {name}: not the text of the harness ({units})", hint=hint)


CONSTANTS: dict[str, Constant] = {
    constant.name: constant
    for constant in (
        Constant(COMPACTION_INSTRUCTION, 1802, "3b7aa71f525b9a82afc2f1747c4434ceb7b3bc1fadf8b64c37c4e97db70d074b"),
        Constant(handles.HANDLE_PATH, 63, "de9e36cbdb4e1ee42b8089ad3a93963cc92521997040c784df19a4a11cdf1d04"),
        Constant(handles.HANDLE_EDITING, 90, "2768785286467c6bf33ce81c59e0613450281b1275a3890af46b09b687296872"),
        Constant(handles.HANDLE_PATHLESS, 86, "2e223c5b20f2a0da5bbe6e750b3dab3ff439bd18a3786c1535e23add9e4223a3"),
        Constant(handles.OFFLOADED, 211, "5f4fc25be31debab7c989ddffe8a05dd180fe85b04dc13ef265627dc9aabd342"),
        Constant(handles.OFFLOAD_START, 44, "1611ea27e932e16277068d2249c28c8684dd5587dff176131fc1b02bd8ef0505"),
        Constant(handles.OFFLOAD_PATHLESS, 90, "e7bd3bb8c5da1d497602ef98479ff3271639f89595652a2b6d42ca1d22767ec3"),
        Constant(handles.TEXT_ONLY, 71, "b7404117667d8e336dac91b0493f404c834de448ad4e2bc9af57fc85a7393834"),
        Constant(handles.FILE_PATH, 36, "e604b2276e88b0644334e0778e2faf1eff8cdaa26215c99c06ea07e695e8d2d6"),
        Constant(handles.FILE_READING, 260, "3573dd08dc31c9fff9345e350e7004d0a15c9c5ab5ee4d739be4348048292605"),
        Constant(handles.FILE_PATHLESS, 166, "3028f1aa31f3a34d5252d2d3db601f4a36b163f143a471ae45e35d9048e361e7"),
    )
}
