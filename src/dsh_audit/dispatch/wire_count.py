"""How many HTTP requests one step dispatch sent, by what the log shows. Source: spec dispatch 4."""

from __future__ import annotations

from dsh_audit.dispatch.model import WireCount
from dsh_audit.events import Json

_LOCAL_CODES = frozenset(
    {"IMAGE_OFFLOAD_REQUIRED", "INVALID_REQUEST", "NO_ADAPTER", "MISSING_CREDENTIAL", "INVALID_CREDENTIAL"}
)
_UNSURE_CODES = frozenset({"TRANSPORT", "TIMEOUT", "AUTH", "REQUEST_EXTENSION"})


def count_failure(failure: Json, *, marked: bool) -> WireCount:
    """Requests behind an attempt whose only output is a failed finish.

    Args:
        failure: the logged failure object.
        marked: a delivery marker lies between call and settlement, which proves a 2xx answer.

    Hops of a redirect that the HTTP client follows by itself, and a second post after a stale file id, are not counted:
    no log shows them.
    """
    detail = failure if isinstance(failure, dict) else {}
    code = str(detail.get("code", ""))
    if marked:
        return WireCount(1, 1, "the provider accepted the request (delivery marker)")
    if "status" in detail:
        return WireCount(1, 1, f"the provider answered with status {detail['status']}")
    if code in _LOCAL_CODES or code.startswith("UNSUPPORTED_"):
        return WireCount(0, 0, f"{code} without a status is raised before anything is sent")
    if code in _UNSURE_CODES:
        return WireCount(0, 1, f"{code} without a status can be raised before or after the send")
    return WireCount(1, 1, f"{code or 'failure'} is raised while reading the answer")


OUTPUT = WireCount(1, 1, "the provider streamed output")
ANSWERED = WireCount(1, 1, "an assistant message was logged")
CANCELLED = WireCount(0, 1, "cancelled before the first chunk")
BEFORE_ADAPTER = WireCount(0, 0, "the step failed before the adapter was called")
ABORTED = WireCount(0, 1, "aborted without output")
CRASHED = WireCount(0, 1, "the process ended without output")
MAYBE_ONE_MORE = WireCount(0, 1, "a further attempt was due and nothing of it was logged")
MARKED = WireCount(1, 1, "the provider accepted the request (delivery marker)")
