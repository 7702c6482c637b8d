"""Findings about the session log that requests carry to the provider."""

from dsh_audit.finding import Rule, Severity

ALTERED = Rule(
    code="uploads/altered",
    severity=Severity.ERROR,
    title="A captured dsh_session_log is not what the log stands for.",
    advice="The log was changed after the request, the capture was, or a deployment setting differs (maxBytes).",
    example="request 4: the captured dsh_session_log (seq 12 to 20) is not that of the log",
)
UNCAPTURED = Rule(
    code="uploads/uncaptured",
    severity=Severity.WARNING,
    title="Delivery markers prove uploads that the capture does not hold.",
    advice="The capture is partial; the totals count these uploads from the log alone.",
    example="2 uploads are proven by markers only: requests 7, 8",
)
