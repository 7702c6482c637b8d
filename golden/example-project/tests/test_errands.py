"""What the agent sends to the model stays what it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dsh_audit.testing import assert_prefix_stable, assert_requests_identical

if TYPE_CHECKING:
    from dsh_audit.pytest_plugin import DshGolden

PROJECT = Path(__file__).parent.parent
LOG = PROJECT / "logs" / "errands"


def test_the_model_sees_what_it_saw(dsh_golden: DshGolden) -> None:
    dsh_golden.check(LOG, "errands")


def test_the_log_tells_what_was_sent() -> None:
    assert_requests_identical(LOG, PROJECT / "captured")


def test_nothing_sent_earlier_ever_changes() -> None:
    assert_prefix_stable(LOG)
