"""Findings about golden cases."""

from dsh_audit.finding import Rule, Severity

CHANGED = Rule(
    code="golden/changed",
    severity=Severity.ERROR,
    title="A request is not what its golden case pins.",
    advice="See dsh-audit golden review; accept the change if it is meant, else undo what caused it.",
    example="tool added: weather (requests 0–4)",
)
MISSING = Rule(
    code="golden/missing",
    severity=Severity.ERROR,
    title="One half is missing: a log without its golden case (nothing could be written), or a case without its log.",
    advice="Record the case where writing is allowed, name the log with --log, or remove a case that is not needed.",
    example="errands: there is no golden case for this log",
)
NEW = Rule(
    code="golden/new",
    severity=Severity.ERROR,
    title="A log has no golden case yet; one was written and waits to be accepted.",
    advice="Look at it with dsh-audit golden review, then accept or reject it.",
    example="errands: 5 requests wait to be accepted",
)
UNUSED = Rule(
    code="golden/unused",
    severity=Severity.WARNING,
    title="A golden case belongs to none of the logs that were checked.",
    advice="Remove it if its session is gone for good; --unused=fail makes this fail the run.",
    example="errands: no log uses this case",
)
NOT_AS_CAPTURED = Rule(
    code="golden/not-as-captured",
    severity=Severity.ERROR,
    title="A case was not recorded because the capture shows other requests than the log.",
    advice="See dsh-audit verify; a golden case that pins what was never sent is worth nothing.",
    example="errands: 1 of 5 captured requests differs",
)
