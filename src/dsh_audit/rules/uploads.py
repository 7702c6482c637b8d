"""Findings about the session log that requests carry to the provider."""

from dsh_audit.finding import Rule, Severity

ALTERED = Rule(
    code="uploads/altered",
    severity=Severity.ERROR,
    title="A captured dsh_session_log is not what the log stands for.",
    advice="The log was changed after the request, the capture was, or a deployment setting differs (maxBytes).",
    example="request 4: the captured dsh_session_log (seq 12 to 20) is not that of the log",
)
OTHER_ID = Rule(
    code="uploads/other-id",
    severity=Severity.WARNING,
    title="Delivery markers of the session name another one: its log was uploaded under that id.",
    advice="The session was imported or renamed; ask the provider for what it keeps under the other id as well.",
    example="5 uploads were accepted under session sess-1, whose delivery markers this log holds",
)
UNCAPTURED = Rule(
    code="uploads/uncaptured",
    severity=Severity.WARNING,
    title="Delivery markers prove uploads that the capture does not hold.",
    advice="The capture is partial; the totals count these uploads from the log alone.",
    example="2 uploads are proven by markers only: requests 7, 8",
)
