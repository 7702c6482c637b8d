"""Findings about request headers that change between requests."""

from dsh_audit.finding import Rule, Severity

UNEXPLAINED = Rule(
    code="drift/unexplained",
    severity=Severity.WARNING,
    title="Settings, prompt or tools changed between two requests and nothing in the log asked for it.",
    advice="Find what rebuilds this part; whatever follows the change in the prompt cannot come from the cache.",
    example="tool removed: weather",
)
VOLATILE = Rule(
    code="drift/volatile",
    severity=Severity.WARNING,
    title="The prompt or a tool definition holds content that changes by itself, such as a time or a counter.",
    advice="Move it to the end of the history, or leave it out: at the head it re-sends the whole prompt.",
    example="prompt (+0 characters); timestamp in it",
)
DECLARED = Rule(
    code="drift/declared",
    severity=Severity.INFO,
    title="Settings, prompt or tools changed because of a switch, a restart or a compaction.",
    advice="Expected; it still ends the cached prefix where it changed.",
    example='model "deepseek-flash" → "deepseek-v4-pro"',
)
IN_HISTORY = Rule(
    code="drift/in-history",
    severity=Severity.INFO,
    title="A changed prompt or tool set was appended to the history; the head of the prompt stayed.",
    advice="Nothing to do: the cached prefix stays usable.",
    example="prompt (+14 characters)",
)
