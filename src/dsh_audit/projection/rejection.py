"""ProjectionError: an event that the harness itself would refuse to fold."""

from __future__ import annotations

from enum import StrEnum

from dsh_audit.errors import RefusedError


class Rejection(StrEnum):
    """Why an event cannot join a projection; one member a rule of upstream's folds."""

    SEQ = "seq"
    OP_ON_LOG_ONLY = "op-on-log-only"
    SOURCES_ON_LOG_ONLY = "sources-on-log-only"
    OP_MISSING = "op-missing"
    OP_INVALID = "op-invalid"
    ENDPOINT_NOT_EARLIER = "endpoint-not-earlier"
    START_NOT_FOUND = "start-not-found"
    END_NOT_FOUND = "end-not-found"
    RANGE_REVERSED = "range-reversed"
    SOURCES_ON_ASSISTANT = "sources-on-assistant"
    SOURCES_EMPTY = "sources-empty"
    SOURCE_INVALID = "source-invalid"
    SOURCE_DUPLICATE = "source-duplicate"
    SOURCE_NOT_EARLIER = "source-not-earlier"
    SHADOWED_NOT_CITED = "shadowed-not-cited"
    REWRITE_NOT_ONE = "rewrite-not-one"
    REWRITE_NOT_TOOL_RESULT = "rewrite-not-tool-result"
    REWRITE_CHANGES_MORE = "rewrite-changes-more"
    SYSTEM_HEAD = "system-head"
    DEVELOPER_MALFORMED = "developer-malformed"
    DEVELOPER_HEADER = "developer-header"
    DEVELOPER_TOOL = "developer-tool"
    OFFLOAD_MALFORMED = "offload-malformed"
    OFFLOAD_DUPLICATE = "offload-duplicate"
    OFFLOAD_NOT_CURRENT = "offload-not-current"
    OFFLOAD_NOT_INPUT = "offload-not-input"
    OFFLOAD_INDEXES = "offload-indexes"
    OFFLOAD_TWICE = "offload-twice"
    OFFLOAD_NO_IMAGE = "offload-no-image"
    MALFORMED = "malformed"


class ProjectionError(RefusedError):
    """The fold refuses an event; the fold keeps the state it had before that event.

    Args:
        rejection: the rule that was broken.
        reason: one line that names the values involved.
        seq: of the refused event.
    """

    def __init__(self, rejection: Rejection, reason: str, seq: int) -> None:
        super().__init__(f"seq {seq}: {reason}")
        self.rejection = rejection
        self.reason = reason
        self.seq = seq
