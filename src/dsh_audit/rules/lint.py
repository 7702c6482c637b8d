"""Findings about what will become of a session: whether it still opens, migrates and is accepted."""

from dsh_audit.finding import Rule, Severity

OPEN_CALL = Rule(
    code="lint/open-call",
    severity=Severity.ERROR,
    title="A tool call in the history has no result; most providers refuse every request that carries it.",
    advice="Fork from before the call, or compact past it; a resume closes only the calls of an open turn.",
    example="the call 'call_7' of read_file has no result: chat refuses it (the next request carries it): 400 …",
)
STRAY_RESULT = Rule(
    code="lint/stray-result",
    severity=Severity.ERROR,
    title="A tool result answers a call that is not in the history, or that has its result already.",
    advice="Fork from before the result; after a compaction, from before that.",
    example="a result answers the call 'call_7': no call of that id is in the history: requests 4 to 6 refused …",
)
REPEATED_CALL = Rule(
    code="lint/repeated-call",
    severity=Severity.ERROR,
    title="Two tool calls of one history have the same id.",
    advice="Fork from before the second call; releases that write format 4 fail every later turn locally.",
    example="the call id 'call_7' was used before, at seq 12: messages refuses it (from request 3 on): 400 …",
)
INTERPOSED = Rule(
    code="lint/interposed-message",
    severity=Severity.ERROR,
    title="A message stands between a tool call and its result: chat routes refuse that, Messages routes do not.",
    advice="Go on with a Messages route, or fork from before the call.",
    example="a message (seq 14) stands between the call 'call_7' of read_file and its result: chat refuses it …",
)
EMPTY_CALL = Rule(
    code="lint/empty-call",
    severity=Severity.ERROR,
    title="A tool call has an empty id or an empty name.",
    advice="Fork from before the call; a provider or gateway that gives such calls has to be repaired.",
    example="a tool call has an empty id: request 2 carried it and this route accepted it; chat would refuse it",
)
ARGUMENTS = Rule(
    code="lint/arguments",
    severity=Severity.INFO,
    title="The arguments of a tool call are no JSON; what is sent for them depends on the protocol.",
    advice="Nothing while the route accepts it; mind it before a change of provider.",
    example="the arguments of the call 'call_7' of write are no JSON (expected ',' at 17): requests 2 to 5 carried …",
)
TOOL_SCHEMA = Rule(
    code="lint/tool-schema",
    severity=Severity.ERROR,
    title="A tool has no parameters of type object; providers refuse the whole request.",
    advice="Give the tool an object schema, or switch off the plugin that registers it.",
    example="the tool boom has no object schema (parameters are missing): request 3 refused in this log with 400 …",
)
TOOL_CHANGE = Rule(
    code="lint/tool-change",
    severity=Severity.ERROR,
    title="Tools changed inside the history and the provider refuses that history from then on.",
    advice="Fork from before the change, or start a new session with the tools that are needed.",
    example="the history adds or removes the tool search: requests 5 to 7 refused in this log with 400 …",
)
REASONING_MISSING = Rule(
    code="lint/reasoning-missing",
    severity=Severity.ERROR,
    title="The provider asks for the reasoning of an earlier tool turn, and the history does not hold it.",
    advice="Switch thinking off, or compact so that the answers without reasoning leave the history.",
    example="the answer that calls search came without its reasoning: request 4 refused in this log with 400 …",
)
REASONING_ONLY = Rule(
    code="lint/reasoning-only",
    severity=Severity.INFO,
    title="An answer holds nothing but reasoning: some providers take it for an empty message and refuse it.",
    advice="Nothing while the route accepts it; before a change of provider fork from before that answer.",
    example="an answer holds nothing but reasoning: request 5 carried it and this route accepted it; moonshot would …",
)
IMAGE = Rule(
    code="lint/image",
    severity=Severity.ERROR,
    title="An image is in the history of a model that takes none.",
    advice="Go back to a model that sees images, or fork from before the image.",
    example="an image (image/png) is in the history of toy/text: request 6 refused in this log with 400 …",
)
MIGRATION = Rule(
    code="lint/migration",
    severity=Severity.WARNING,
    title="A later release refuses to migrate the log, so the session does not open there.",
    advice="Stay with a release that reads the format, and keep the file: the named event has to be repaired first.",
    example="0.1.5-rc.1 and later refuse to migrate the log at seq 1 (user/message), format 2 to 3: …",
)
TOO_NEW = Rule(
    code="lint/too-new",
    severity=Severity.ERROR,
    title="The log is of a format that the named release does not read.",
    advice="Open it with a newer release; older generations beside it can still be read by the older one.",
    example="0.1.5-rc.1 refuses the log: it is of format 4, that release reads up to 3",
)
INBOX_SPLICE = Rule(
    code="lint/inbox-splice",
    severity=Severity.WARNING,
    title="An inbox event removes a message that is not there; later releases refuse the log.",
    advice="An earlier inbox event is missing: a tool has edited the log. Restore it from a copy.",
    example="0.1.5-rc.1 and later refuse the log: invalid persisted inbox splice at session seq 31; it removes 1 …",
)
FOREIGN_MARKER = Rule(
    code="lint/foreign-marker",
    severity=Severity.ERROR,
    title="Delivery markers name another session: the log was imported under a new id.",
    advice="Give the session its old id and folder again; the uploads were accepted under that id.",
    example="0.2.1-rc.2 refuses the log: current-generation delivery marker names the wrong Session; 5 delivery …",
)
UNFINISHED = Rule(
    code="lint/unfinished-turn",
    severity=Severity.WARNING,
    title="The log ends inside a turn.",
    advice="The session is still running, or was killed there; a resume closes the turn and goes on.",
    example="turn 2 never ended; step 2.1 open; call call_7 has no result; last event at 2026-11-30 …",
)
OPEN_COMPACTION = Rule(
    code="lint/open-compaction",
    severity=Severity.WARNING,
    title="A compaction was started and never ended; its lock is still there.",
    advice="The harness was killed during it; what it had asked the provider for is lost, the history is unchanged.",
    example="the compaction c1 was started and never ended; last event at 2026-11-30 16:11:20Z",
)
MISPLACED = Rule(
    code="lint/misplaced",
    severity=Severity.WARNING,
    title="A session lies in a folder that is not the key of its cwd and id; the harness refuses it there.",
    advice="Move the folder to the path in details.expected, below the same root.",
    example="misplaced: its cwd D:\\work has the key --D-work--, it lies under --D--work--: the harness refuses it …",
)
COPY = Rule(
    code="lint/copy",
    severity=Severity.WARNING,
    title="A copy of a log lies under a name that the harness ignores; a sync tool or a person left it there.",
    advice="When it goes on for more events than the log, the log is stale: put the copy in its place, unsynced.",
    example="session.v4.jsonl 2.zstd: a copy of session sess-1 goes on for 24 more events, through seq 46",
)
NO_LOG = Rule(
    code="lint/no-log",
    severity=Severity.WARNING,
    title="A session folder holds no log.",
    advice="Only a lock: the session never wrote anything. A stub of a cloud drive: let it load the file.",
    example="no log lies here: only a lock",
)
NO_PARENT = Rule(
    code="lint/no-parent",
    severity=Severity.WARNING,
    title="The log names a parent session that is not here.",
    advice="What was inherited is in the log; the parent's own requests cannot be audited without it.",
    example="the parent sess-1 is not here; origin subagent",
)
LAST_REFUSED = Rule(
    code="lint/last-request",
    severity=Severity.ERROR,
    title="The provider refused the last request, for a reason that the history does not show.",
    advice="Read the provider's words; when they are about the content, fork from before the last message.",
    example="request 5, the last one, was refused with 400 INVALID_REQUEST: bad file; the next one carries the same …",
)
