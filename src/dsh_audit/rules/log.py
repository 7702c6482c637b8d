"""Findings about a session log as a file: container, rows, envelope, generations."""

from dsh_audit.finding import Rule, Severity

TORN_TAIL = Rule(
    code="log/torn-tail",
    severity=Severity.ERROR,
    title="The log ends inside a row or frame; the harness drops this tail on the next resume.",
    advice="Only the last append is lost; when the session is still running, audit again when it rests.",
    example="37 bytes after the last complete row are not used",
)
DROPPED_TAIL = Rule(
    code="log/dropped-tail",
    severity=Severity.ERROR,
    title="Rows at the end do not decode or do not continue the sequence; no later turn end follows them.",
    advice="The harness cuts these rows on the next resume; the events before them are sound.",
    example="seq 18 where 17 was next (gap); the 3 rows from line 19 on are readable, seq 18 to 20; …",
)
DAMAGED = Rule(
    code="log/damaged",
    severity=Severity.ERROR,
    title="Committed data is damaged: a row does not decode or breaks the sequence, and later turns follow it.",
    advice="Requests before the named seq are checked; the message says what is readable behind it and what is lost.",
    example="seq 40 where 38 was next (gap); the 211 rows from line 40 on are readable, seq 40 to 250; …",
)
REFUSED = Rule(
    code="log/refused",
    severity=Severity.ERROR,
    title="An event breaks a rule of its format that the running harness keeps too: none wrote it, none opens it.",
    advice="The events before it are sound; nothing from it on is used.",
    example="a surface event needs surfaceOp; 12 rows from line 31 on are not used",
)
RELOAD_REFUSED = Rule(
    code="log/reload-refused",
    severity=Severity.ERROR,
    title="The running harness wrote the row and went on; a later restore, migration or resume refuses the log there.",
    advice="Every request was sent and is rebuilt all the same; only the session itself will not open again.",
    example="re-loading refuses the log from this row on: tool/result message must have tool source",
)
BAD_FRAME = Rule(
    code="log/bad-frame",
    severity=Severity.ERROR,
    title="A zstd frame cannot be decoded; the harness reads nothing from it on.",
    advice="The frames before it are sound and were read; the message says which are sound behind it.",
    example="no zstd frame starts here (wrong magic number); from byte 3046 on 13 sound frames hold 25 rows …",
)
OPEN_ROW = Rule(
    code="log/open-row",
    severity=Severity.ERROR,
    title="A complete zstd frame ends inside a row; the harness refuses such a log.",
    advice="The row was read as if it ended with the frame; the writer of this file did not keep the container rules.",
    example="a complete frame ends inside a row (52 bytes without a newline)",
)
FIRST_FRAME = Rule(
    code="log/first-frame",
    severity=Severity.ERROR,
    title="The first zstd frame is not exactly the session header line; the harness refuses such a log.",
    advice="Usually a tool has compressed the file again as one frame; the content was read all the same.",
    example="the first frame holds 412 complete lines, not exactly the session header line",
)
ZERO_TAIL = Rule(
    code="log/zero-tail",
    severity=Severity.ERROR,
    title="Nothing but zero bytes follow the last row or frame, as after a power cut; no event is lost.",
    advice="Cut the zero bytes off; all that was written before them was read.",
    example="4096 zero bytes follow the last frame; no event is lost",
)
NO_NEWLINE = Rule(
    code="log/no-newline",
    severity=Severity.WARNING,
    title="The last row is whole, but its newline is missing: an editor took it away, or the log is being written.",
    advice="Put the newline back before the session goes on: a resume may cut the row off.",
    example="the last row is whole but not ended by a newline; no event is lost",
)
BLANK_LINE = Rule(
    code="log/blank-line",
    severity=Severity.ERROR,
    title="A line of the log is blank: an editor put it there. Between rows the harness refuses the log.",
    advice="Remove the blank line; every event was read.",
    example="line 6 is blank, the harness refuses the log there; no event is lost",
)
ROW_TOO_LARGE = Rule(
    code="log/row-too-large",
    severity=Severity.ERROR,
    title="A row is larger than any the harness can write or read.",
    advice="Only the events before it can be checked.",
    example="row of more than 268435456 bytes",
)
UNKNOWN_EVENT = Rule(
    code="log/unknown-event",
    severity=Severity.ERROR,
    title="An event type that is neither known nor marked ignorable; it may change what the model sees.",
    advice="Nothing from this event on is claimed; a plugin wrote it, or a newer release of the harness.",
    example="unknown required event 'acme/rewrite'",
)
IGNORED_EVENT = Rule(
    code="log/ignored-event",
    severity=Severity.INFO,
    title="An unknown event that its writer marked ignorable; it has no effect on requests.",
    advice="Nothing for the requests; a later release may refuse to migrate it, which lint tells.",
    example="unknown ignorable event 'acme/note'",
)
PROJECTED = Rule(
    code="log/projected",
    severity=Severity.INFO,
    title="The log is a projected fixture: event bodies without seq and time.",
    advice="Times and cache expiry cannot be judged.",
    example="rows carry neither seq nor time; both were numbered here",
)
NO_SESSION_HEADER = Rule(
    code="log/no-session-header",
    severity=Severity.WARNING,
    title="The log has no session header line.",
    advice="Session id and format version are assumed; add the header line to check them.",
    example="no session header; format 0 assumed",
)
SEED_LENGTH = Rule(
    code="log/seed-length",
    severity=Severity.WARNING,
    title="The session header claims more inherited events than the log holds; no event counts as the session's own.",
    advice="The log was cut, or its header was edited; look at the parent session for the requests.",
    example="seedLength is 9999, the log has 56 events",
)
UNREADABLE = Rule(
    code="log/unreadable",
    severity=Severity.ERROR,
    title="One of several logs could not be read at all.",
    advice="See the message; the other logs were audited.",
    example="not a session log: the file is empty",
)
UNSAFE_MEMBER = Rule(
    code="log/unsafe-member",
    severity=Severity.ERROR,
    title="A member of a ZIP has a name that leads out of the folder it would be extracted to.",
    advice="No export of the harness has such names; the member was read in place and nothing was extracted.",
    example="member ../../escaped/session.jsonl",
)
NAME_MISMATCH = Rule(
    code="log/name-mismatch",
    severity=Severity.ERROR,
    title="The format version in the file name differs from the one in the session header; the harness refuses it.",
    advice="Rename the file, or find out which tool renamed it.",
    example="session.v3.jsonl holds format 4",
)
PREDECESSOR_MISMATCH = Rule(
    code="log/predecessor-mismatch",
    severity=Severity.WARNING,
    title="An older generation of the session lies beside the log, and the log does not continue it.",
    advice="Requests from before the migration are rebuilt from the newer log only, as migrated.",
    example="not a continuation of session.jsonl: seq 12 is not what the migration gives",
)
AS_MIGRATED = Rule(
    code="log/as-migrated",
    severity=Severity.WARNING,
    title="The log continues an older format whose log is missing; its early requests were sent by another adapter.",
    advice="Put the older generation (session.jsonl, session.v3.jsonl …) beside it to see them as sent.",
    example="events before seq 43 were migrated, and the older log is not here",
)
MIXED_ENCODINGS = Rule(
    code="log/mixed-encodings",
    severity=Severity.WARNING,
    title="Plain and zstd logs lie in one place; the harness expects one encoding.",
    advice="Keep one of them; the one with the highest generation was read.",
    example="both session.jsonl and session.jsonl.zstd are present",
)
PROJECTION = Rule(
    code="log/projection",
    severity=Severity.ERROR,
    title="An event cannot be applied to the surface; the harness refuses such a history.",
    advice="Nothing from this event on is claimed.",
    example="replacement starts at seq 12, which is not on the surface",
)
SCHEMA = Rule(
    code="log/schema",
    severity=Severity.ERROR,
    title="A row is not what the JSON Schema of its format allows.",
    advice="The pointer names the value; the writer of this row is not a released harness.",
    example="'x' is not of type 'integer'",
)
