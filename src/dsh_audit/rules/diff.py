"""Findings about two runs of one task."""

from dsh_audit.finding import Rule, Severity

DIFFERENT = Rule(
    code="diff/different",
    severity=Severity.ERROR,
    title="A request of one run is not what it is in the other.",
    advice="The first differing request is the cause of most later ones; look at its layer and pointer.",
    example="step 1.2: tools differ, first at /tools/3",
)
ONE_SIDE = Rule(
    code="diff/one-side",
    severity=Severity.ERROR,
    title="A request was made in one run only.",
    advice="Compare what came before it: an earlier answer or failure usually decides this.",
    example="step 3.2 is only in the second run",
)
NOT_COMPARED = Rule(
    code="diff/not-compared",
    severity=Severity.WARNING,
    title="Two requests could not be compared: at least one of them is not known.",
    advice="The reason is given; a deployment file or a constant may supply what is missing.",
    example="compaction: the capture has no body",
)
