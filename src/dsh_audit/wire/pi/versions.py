"""What differs between the releases of pi-ai, and which harness release carries which.

One frozen value a release; the rules elsewhere read it instead of comparing versions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsh_audit.wire.pi.refusal import not_encoded


@dataclass(frozen=True, slots=True)
class PiRules:
    """The rules of one pi-ai release.

    Args:
        version: of the npm package.
        units_per_token: of the output estimate.
        drops_foreign_reasoning: reasoning of another model vanishes instead of becoming text.
    """

    version: str
    units_per_token: float = 4
    drops_foreign_reasoning: bool = False
    strict_by_default: bool = True


_BASE = PiRules("0.82.1")
VERSIONS: dict[str, PiRules] = {"0.82.1": _BASE}


def rules_of(version: str) -> PiRules:
    """The rules of a release.

    Raises:
        PiRefusedError: bytes of that release were never checked.
    """
    if version not in VERSIONS:
        raise not_encoded(f"pi-ai {version} is not a release whose bytes are known ({', '.join(VERSIONS)})")
    return VERSIONS[version]


__all__ = ["VERSIONS", "PiRules", "replace", "rules_of"]
