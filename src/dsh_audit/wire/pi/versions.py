"""What differs between the releases of pi-ai; the one place that knows versions.

Each release is one frozen value; the rules elsewhere read its fields. 0.82.1 came with harness 0.1.0-rc.8 to
0.1.1-rc.2, 0.84.4 with 0.1.2, 0.85.1 with 0.1.5, 1.3.0 with 0.2.1-rc.2, and the adapter of those harness
releases is part of the rules. Source: wire-pi-ai 10, 11; the released packages and adapters, driven.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dsh_audit.record import dataclass
from dsh_audit.wire.pi.refusal import not_encoded


@dataclass(frozen=True, slots=True)
class PiRules:
    """The rules of one release; the defaults are those of 0.82.1.

    Args:
        version: of the npm package.
        prompt: where the system prompt comes from: ``option`` alone, else the ``first`` message or the
            ``leading`` messages of role system.
        later_system: what a later message of role system becomes.
        names_response_model: an Anthropic message counts as from the model that answered, not that asked.
        units_per_token: of the output estimate.
        drops_foreign_reasoning: reasoning of another model vanishes instead of becoming text.
        deepseek_is_non_standard: the provider key deepseek alone makes a route non-standard, the URL is
            matched in any case, and DeepSeek and Z.ai take ``max_tokens``.
        detects_strict: chat completions send ``strict`` unless the vendor is known to refuse it.
        checks_reasoning_details: only well-formed reasoning details and three reasoning keys go out.
        qwen_takes_effort: the qwen format sends an effort too.
        has_thinking_budgets: chat completions know thinking budgets, the baseten format, sampling parameters
            and fallback models.
        has_output_flags: vLLM priority, ``supportsMaxOutputTokens``, the newer prompt cache options.
        managed_effort: Anthropic models with ``supportsMidConvoEffort`` get effort messages; ``off-aware``
            not when thinking is off.
        has_transcripts: tools and system prompt form a transcript that later messages change, duplicate tool
            names collapse, images of failed results move behind all results.
        messages_query: what follows the path of an Anthropic request.
    """

    version: str
    prompt: Literal["option", "first", "leading"] = "option"
    later_system: Literal["user", "system"] = "user"
    names_response_model: bool = False
    units_per_token: float = 4
    drops_foreign_reasoning: bool = False
    deepseek_is_non_standard: bool = False
    detects_strict: bool = True
    checks_reasoning_details: bool = False
    qwen_takes_effort: bool = False
    has_thinking_budgets: bool = False
    has_output_flags: bool = False
    managed_effort: Literal["no", "always", "off-aware"] = "no"
    has_transcripts: bool = False
    messages_query: str = ""


_V82 = PiRules("0.82.1")
_V84 = replace(
    _V82,
    version="0.84.4",
    deepseek_is_non_standard=True,
    checks_reasoning_details=True,
    qwen_takes_effort=True,
    has_thinking_budgets=True,
)
_V85 = replace(
    _V84,
    version="0.85.1",
    prompt="first",
    names_response_model=True,
    has_output_flags=True,
    managed_effort="always",
    messages_query="?beta=true",
)
_V130 = replace(
    _V85,
    version="1.3.0",
    prompt="leading",
    later_system="system",
    names_response_model=False,
    units_per_token=3.5,
    drops_foreign_reasoning=True,
    detects_strict=False,
    managed_effort="off-aware",
    has_transcripts=True,
)
VERSIONS: dict[str, PiRules] = {rules.version: rules for rules in (_V82, _V84, _V85, _V130)}

_HARNESS = {
    "0.1.0-rc.8": "0.82.1",
    "0.1.1-rc.1": "0.82.1",
    "0.1.1-rc.2": "0.82.1",
    "0.1.2-alpha.3": "0.84.4",
    "0.1.2-rc.1": "0.84.4",
    "0.1.5-rc.1": "0.85.1",
    "0.1.5-rc.2": "0.85.1",
    "0.2.1-rc.2": "1.3.0",
}


def rules_of(version: str) -> PiRules:
    """The rules of a release of pi-ai.

    Raises:
        PiRefusedError: bytes of that release were never checked.
    """
    if version not in VERSIONS:
        raise not_encoded(f"pi-ai {version} is not a release whose bytes are known ({', '.join(VERSIONS)})")
    return VERSIONS[version]


def pi_version_of(harness: str) -> str:
    """The pi-ai release that a harness release carries.

    Raises:
        PiRefusedError: that harness release is not one of those studied.
    """
    if harness not in _HARNESS:
        raise not_encoded(f"harness {harness} carries a pi-ai release whose bytes are not known")
    return _HARNESS[harness]
