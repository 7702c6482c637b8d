"""What differs between the releases of the harness in what it sends to DeepSeek; the one place that knows them.

Each era of releases is one frozen value, and the rules elsewhere read its fields; the rules of llm-pi-ai are those of
the pi-ai release (``wire.pi.versions``). A release that is its own era is one more entry of ``RELEASES``.
Source: spec README 3, wire-deepseek 1, 5.6, 6, 8, 9.3; dispatch 5.3.
"""

from __future__ import annotations

import re
from typing import Literal

from dsh_audit.record import dataclass

WireName = Literal["chat-completions", "messages"]


@dataclass(frozen=True, slots=True)
class ReleaseRules:
    """The rules from one release on.

    Args:
        since: the first release, as numbers.
        format_version: of the logs it writes.
        assumed: the release to assume where none is named: the last one of its format that was run; "" for another.
        protocols: what its DeepSeek adapter speaks, the default first; several where a setting decides.
        compaction_tokens: the output limit of a compaction call.
        reserves_output: whether compactions keep a share of what that limit leaves of the context window.
        is_legacy_messages: Messages as in 0.1.6: results in user messages, empty user messages kept, no tool updates.
        sends_session_log: whether ``dsh_session_log`` is on by default.
        session_log_bytes: cap of that field; None for none.
        names_format: whether the field and its markers name the format version.
        event_keys: order of the members of an event in it.
    """

    since: tuple[int, int, int]
    format_version: int
    assumed: str = ""
    protocols: tuple[WireName, ...] = ("chat-completions",)
    compaction_tokens: int = 8192
    reserves_output: bool = False
    is_legacy_messages: bool = True
    sends_session_log: bool = False
    session_log_bytes: int | None = None
    names_format: bool = True
    event_keys: Literal["type-first", "seq-first"] = "seq-first"


RELEASES: list[ReleaseRules] = [
    ReleaseRules((0, 1, 0), 0, "0.1.1-rc.2", names_format=False, event_keys="type-first"),
    ReleaseRules((0, 1, 3), 2, "0.1.3-alpha.2", event_keys="type-first"),
    ReleaseRules((0, 1, 5), 3, "0.1.5-rc.1"),
    ReleaseRules((0, 1, 6), 3, protocols=("messages", "chat-completions"), sends_session_log=True),
    ReleaseRules(
        (0, 1, 7),
        4,
        "0.2.1-rc.2",
        protocols=("messages",),
        compaction_tokens=65536,
        reserves_output=True,
        is_legacy_messages=False,
        sends_session_log=True,
        session_log_bytes=8 * 1024 * 1024,
    ),
]
"""In order of release. No release wrote format 1, whose logs are read as those of format 0."""


def rules_of(release: str) -> ReleaseRules | None:
    """The rules of a release; None when its name is not understood."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", release)
    if match is None:
        return None
    version = tuple(map(int, match.groups()))
    return next((rules for rules in reversed(RELEASES) if rules.since <= version), RELEASES[0])


def protocols_of_format(format_version: int) -> set[WireName]:
    """What the releases that wrote a format speak to DeepSeek."""
    written = [rules for rules in RELEASES if rules.format_version == format_version]
    return {name for rules in written or [rules_of_format(format_version)] for name in rules.protocols}


def rules_of_format(format_version: int) -> ReleaseRules:
    """The rules of the release that is assumed for a log of a format."""
    written = [rules for rules in RELEASES if rules.assumed and rules.format_version <= format_version]
    return written[-1]
