"""Platforms that are not here: by their names only."""

from __future__ import annotations

import pytest

from dsh_audit.cli.golden_cases import limit_jobs
from dsh_audit.cli.outputs import shows_ansi


@pytest.mark.parametrize(
    ("jobs", "platform", "allowed"), [(4, "win32", 4), (96, "win32", 61), (61, "win32", 61), (96, "linux", 96)]
)
def test_windows_waits_for_61_processes_at_most(jobs: int, platform: str, allowed: int) -> None:
    assert limit_jobs(jobs, platform) == allowed


@pytest.mark.parametrize(
    ("platform", "environ", "shown"),
    [
        ("linux", {}, True),
        ("darwin", {}, True),
        ("win32", {}, False),
        ("win32", {"WT_SESSION": "1"}, True),
        ("win32", {"ANSICON": "1"}, True),
        ("win32", {"ConEmuANSI": "ON"}, True),
        ("win32", {"TERM": "xterm"}, True),
    ],
)
def test_colours_only_where_the_terminal_takes_them(platform: str, environ: dict[str, str], shown: bool) -> None:
    assert shows_ansi(platform, environ) is shown
