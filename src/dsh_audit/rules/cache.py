"""Findings about prompt caches: what ended a cached prefix."""

from dsh_audit.finding import Rule, Severity


def _rule(name: str, severity: Severity, title: str, advice: str) -> Rule:
    example = "request 7: about 5661 tokens sent again, $0.0008; 12 requests in all"
    return Rule(f"cache/{name}", severity, title, advice, example)


NOT_APPEND_ONLY = _rule(
    "not-append-only",
    Severity.ERROR,
    "The history of a request was rewritten although its header stayed and nothing was replaced.",
    "Find what rewrites messages before the call; the log does not hold it.",
)
WIRE_REWRITE = _rule(
    "wire-rewrite",
    Severity.ERROR,
    "A captured request does not go on where the captured one before it ended, although the log only grew.",
    "Something between the log and the network (a plugin or a proxy) changes earlier content.",
)
TOOLS_CHANGED = _rule(
    "tools-changed",
    Severity.WARNING,
    "The tool list at the head of the prompt changed.",
    "Keep the set, order and definitions of tools fixed for the whole session.",
)
SYSTEM_CHANGED = _rule(
    "system-changed",
    Severity.WARNING,
    "The system text at the head of the prompt changed.",
    "Keep what varies out of the system prompt; append it to the history.",
)
CONFIG_CHANGED = _rule(
    "config-changed",
    Severity.WARNING,
    "Settings changed and the provider did not read the same prompt from its cache.",
    "Some providers keep apart what other settings sent; keep them fixed.",
)
DECLARED_CHANGE = _rule(
    "declared-change",
    Severity.INFO,
    "A switch that someone made changed the head of the prompt.",
    "Expected; batch such switches, or make them before the history is long.",
)
RESUME_DRIFT = _rule(
    "resume-drift",
    Severity.WARNING,
    "After a resume the head of the prompt is another one.",
    "Resume with the same version, tools and prompt to use what is cached.",
)
SWITCHED = _rule(
    "switched",
    Severity.INFO,
    "Another model, provider or endpoint was called; it has a cache of its own.",
    "Expected; each switch pays the whole prompt once.",
)
COMPACTION = _rule(
    "compaction",
    Severity.INFO,
    "A compaction replaced the start of the history.",
    "Expected; what was kept behind the summary is paid again once.",
)
PRUNED = _rule(
    "pruned",
    Severity.INFO,
    "A tool result was shortened; what follows it is paid again.",
    "Prune late results only, or prune seldom.",
)
OFFLOADED = _rule(
    "images-offloaded",
    Severity.INFO,
    "Images were replaced by notes; what follows the first is paid again.",
    "Expected where the images no longer fit.",
)
REPLACED = _rule(
    "replaced",
    Severity.WARNING,
    "An event replaced a message in the history; what follows it is paid again.",
    "Let the plugin append instead of replacing.",
)
RETRY = _rule(
    "retry",
    Severity.INFO,
    "A repeated request was not read from the cache; the failed one had written nothing.",
    "Expected after failures.",
)
IDLE = _rule(
    "idle-expiry",
    Severity.INFO,
    "After a long pause the prompt was no longer in the cache.",
    "Expected; providers drop prompts that nobody uses.",
)
TOO_SOON = _rule(
    "too-soon",
    Severity.INFO,
    "The request followed so closely that the cache was not written yet.",
    "Nothing to do.",
)
LOOK_BACK = _rule(
    "look-back",
    Severity.WARNING,
    "More blocks were added than the provider searches back from a breakpoint.",
    "Set a breakpoint inside long turns.",
)
SIDE_REQUEST = _rule(
    "side-request",
    Severity.WARNING,
    "A compaction call shares its prompt with the session but was not read from the cache.",
    "Such calls use other settings than the steps; make them equal where the harness allows it.",
)
PROVIDER_MISS = _rule(
    "provider-miss",
    Severity.WARNING,
    "The prompt only grew, but the provider did not read it from its cache.",
    "Nothing on this side explains it; caches are best effort.",
)
THRESHOLD = Rule(
    code="cache/threshold",
    severity=Severity.ERROR,
    title="A number crossed a limit that --fail-on sets.",
    advice="See the report for what caused it, or set another limit.",
    example="hit_rate<0.95: hit_rate is 0.31",
)
