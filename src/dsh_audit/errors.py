"""Errors: the audit could not be done. What is wrong with the *data* is a Finding instead (finding.py)."""


class AuditError(Exception):
    """The audit could not run; shown as one line, exit status 2.

    Args:
        message: one line, without secrets or absolute paths that the user did not type.
        hint: what the user can do about it, one line.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(AuditError):
    """The arguments do not fit together."""


class LogError(AuditError):
    """A session log could not be opened or read at all."""


class CaptureError(AuditError):
    """A capture archive could not be opened or read at all."""


class DeploymentError(AuditError):
    """A deployment file is malformed or names something impossible."""


class NotReconstructibleError(AuditError):
    """A request that was asked for by name cannot be rebuilt from the given evidence."""


class RefusedError(AuditError, ValueError):
    """A row, an event or a log that the harness itself would refuse; from folds, row codecs and ``migrate``."""
