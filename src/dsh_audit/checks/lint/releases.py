"""Known releases of the harness and the log version that each writes. Source: spec session-log 1."""

from __future__ import annotations

from dsh_audit.errors import UsageError
from dsh_audit.releases import rules_of

RELEASES = ("0.1.1-rc.2", "0.1.2-rc.1", "0.1.3-alpha.2", "0.1.5-rc.1", "0.1.6-alpha.2", "0.2.1-rc.2")
"""One of each kind that reads logs or speaks to providers in its own way, oldest first."""


def judged_releases(version: int, named: str | None) -> tuple[str, ...]:
    """The releases that a log of this version is judged for: the named one, or its own writer's and all later ones.

    Raises:
        UsageError: the name is no release.
    """
    if named is None:
        return releases_from(version, RELEASES)
    if format_of(named) is None:
        raise UsageError(f"--for {named}: expected a release such as {RELEASES[-1]}")
    return (named,)


def releases_from(version: int, judged: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the releases that write this log version or a later one."""
    return tuple(release for release in judged if (format_of(release) or 0) >= version)


def format_of(release: str) -> int | None:
    """Log version that a release writes; None when its name is not understood."""
    rules = rules_of(release)
    return None if rules is None else rules.format_version
