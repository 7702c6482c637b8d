from __future__ import annotations

from dataclasses import replace

import pytest

from dsh_audit import releases
from dsh_audit.deployment import Deployment
from dsh_audit.releases import RELEASES, rules_of, rules_of_format
from dsh_audit.replay.session_replay import Replay
from tests.toy_session import ToySession


@pytest.mark.parametrize(
    ("release", "since"),
    [
        ("0.1.0-rc.8", (0, 1, 0)),
        ("0.1.2-rc.1", (0, 1, 0)),
        ("0.1.3-alpha.1", (0, 1, 3)),
        ("0.1.5rc1", (0, 1, 5)),
        ("0.1.6", (0, 1, 6)),
        ("0.2.1-rc.2", (0, 1, 7)),
        ("nightly", None),
    ],
)
def test_a_release_has_the_rules_of_its_era(release: str, since: tuple[int, int, int] | None) -> None:
    rules = rules_of(release)
    assert (rules and rules.since) == since


def test_each_format_has_one_release_to_assume() -> None:
    assert [rules_of_format(number).format_version for number in range(5)] == [0, 0, 2, 3, 4]
    assert [rules_of_format(number).compaction_tokens for number in range(5)] == [8192] * 4 + [65536]
    for number in range(5):
        assumed = rules_of(rules_of_format(number).assumed)
        assert assumed is rules_of_format(number)


def bodies(deployment: Deployment) -> list[str]:
    session = ToySession(4)
    session.ask("one")
    session.ask("")
    found = [rebuilt.encoded.body for rebuilt in Replay(session.history(), deployment)]
    return ["" if body is None else body.sha256() for body in found]


def test_a_new_release_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy under a new name gives the same bodies; a rule that differs is found in its entry alone."""
    newer = Deployment({"harness": {"version": "9.9.9"}})
    known = bodies(newer)
    copy = replace(RELEASES[-1], since=(9, 9, 9), assumed="")
    monkeypatch.setattr(releases, "RELEASES", [*RELEASES, copy])
    assert newer.release_rules(4) is copy
    assert bodies(newer) == known
    monkeypatch.setattr(releases, "RELEASES", [*RELEASES, replace(copy, is_legacy_messages=True)])
    assert bodies(newer) != known
    assert bodies(Deployment()) == known
