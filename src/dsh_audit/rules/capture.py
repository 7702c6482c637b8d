"""Findings about a capture archive: files, records, bodies and what its format lost."""

from dsh_audit.finding import Rule, Severity

NO_BODY = Rule(
    code="capture/no-body",
    severity=Severity.ERROR,
    title="A model request was captured without its body, so nothing can be compared.",
    advice="Turn body recording on in the capturing tool: NNNN.body stands next to NNNN.meta.json; mitmproxy 11 loses "
    "the bodies of requests when stream_large_bodies is set; nginx needs a client_body_buffer_size that holds them.",
    example="0003: POST /v1/chat/completions has no body: no body was captured",
)
WITHHELD_BODY = Rule(
    code="capture/withheld-body",
    severity=Severity.INFO,
    title="A body was left out of the capture on purpose; only its size and SHA-256 can be compared.",
    advice="None needed; keep the body to see where it differs if it does.",
    example="0003: POST /v1/chat/completions: size and SHA-256 only",
)
NO_META = Rule(
    code="capture/no-meta",
    severity=Severity.ERROR,
    title="A body file without its meta file: method, path and session are unknown, so it is not used.",
    advice="Keep NNNN.meta.json next to NNNN.body.",
    example="0003: 0003.body has no 0003.meta.json",
)
BAD_META = Rule(
    code="capture/bad-meta",
    severity=Severity.ERROR,
    title="A meta file does not fit the capture bundle schema, so its request is not used.",
    advice="See schemas/capture-bundle.schema.json.",
    example="0003: meta file: headers must be a list of [name, value] pairs",
)
BAD_RECORD = Rule(
    code="capture/bad-record",
    severity=Severity.ERROR,
    title="A record is broken or has members of an impossible type, so its request is not used.",
    advice="Capture again; a record must be one complete JSON object.",
    example="line 7: not JSON at byte 120 of the line",
)
TORN_RECORD = Rule(
    code="capture/torn-record",
    severity=Severity.WARNING,
    title="The last record is incomplete: the capture was cut or is still being written.",
    advice="Stop the capturing tool before auditing.",
    example="line 7: the last line is cut after 1033 bytes",
)
SKIPPED_RECORD = Rule(
    code="capture/skipped-record",
    severity=Severity.INFO,
    title="Records that are no HTTP requests were left out.",
    advice="If they are requests, name their members with --capture-field.",
    example="2 records without a URL or path were left out, the first on line 1",
)
ADDED_MEMBERS = Rule(
    code="capture/added-members",
    severity=Severity.INFO,
    title="A gateway wrote members of its own into the bodies that it logged; they were left out.",
    advice="None needed; capture before the gateway to have bytes compared.",
    example="left out of the bodies: litellm_call_id (4), metadata (4)",
)
NOT_UTF8 = Rule(
    code="capture/not-utf8",
    severity=Severity.ERROR,
    title="The body of a model request is not UTF-8; the harness sends nothing else.",
    advice="The capture is damaged, or the body is encoded: check its content-encoding header.",
    example="0003: the body is not UTF-8 at byte 812",
)
TRUNCATED_BODY = Rule(
    code="capture/truncated-body",
    severity=Severity.WARNING,
    title="The captured body does not have the length that was sent; it is compared as a part only.",
    advice="Raise the size limit of the capturing tool, or capture raw bytes.",
    example="0003: the body has 1024 bytes, 4096 were sent",
)
UNKNOWN_LENGTH = Rule(
    code="capture/unknown-length",
    severity=Severity.WARNING,
    title="The capture does not say how many bytes were sent, so its text cannot be shown to be complete.",
    advice="Export with bodySize or keep the content-length header.",
    example="0003: neither bodySize nor content-length is known",
)
LOSSY_TEXT = Rule(
    code="capture/lossy-text",
    severity=Severity.WARNING,
    title="The captured text cannot be the bytes that were sent; it is compared as a part only.",
    advice="Capture raw bytes.",
    example="0003: the text holds an unpaired surrogate",
)
ENCODED_BODY = Rule(
    code="capture/encoded-body",
    severity=Severity.INFO,
    title="The body was sent with a content coding, which the harness does not use; it is compared decoded.",
    advice="A proxy in between encodes bodies; capture before it to see what the harness sent.",
    example="0003: content-encoding gzip undone for comparison",
)
UNDECODABLE_BODY = Rule(
    code="capture/undecodable-body",
    severity=Severity.ERROR,
    title="The content coding of a body cannot be undone, so nothing can be compared.",
    advice="gzip, deflate and zstd are understood, br with the package brotli; capture before the proxy that encodes.",
    example="0003: content coding 'lzma' is not supported",
)
UNSAFE_FILE = Rule(
    code="capture/unsafe-file",
    severity=Severity.ERROR,
    title="A link or special file inside the capture directory is not followed.",
    advice="Copy the file into the capture directory.",
    example="0003.body is not a regular file",
)
UNREADABLE_FILE = Rule(
    code="capture/unreadable-file",
    severity=Severity.ERROR,
    title="A file of the capture could not be read.",
    advice="Check the permissions.",
    example="0003.body: Permission denied",
)
TOO_LARGE = Rule(
    code="capture/too-large",
    severity=Severity.ERROR,
    title="A body or record is larger than the limit and is not read.",
    advice="Split the capture.",
    example="0003.body has 600000000 bytes, the limit is 536870912",
)
PARSED_BODIES = Rule(
    code="capture/parsed-bodies",
    severity=Severity.INFO,
    title="Bodies were stored as parsed JSON: they can be compared by value, not byte for byte.",
    advice="Capture raw bodies to have bytes compared.",
    example="12 bodies were stored as parsed JSON",
)
