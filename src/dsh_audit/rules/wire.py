"""Findings of comparing captured requests with the log."""

from dsh_audit.finding import Rule, Severity

DIFFERENT = Rule(
    code="wire/different",
    severity=Severity.ERROR,
    title="A captured request differs from the one the log stands for.",
    advice="The pointer and seq say which content; something changed the request after the log was written, or "
    "a deployment setting differs from the default (see the assumptions, and --deployment).",
    example="request 3 differs from capture 0004 at byte 812",
)
UNEXPLAINED = Rule(
    code="wire/unexplained",
    severity=Severity.ERROR,
    title="A captured request of this session that no dispatch in the log explains.",
    advice="The log is older than the capture, was cut, or something else sent requests under this session's id.",
    example="capture 0009 is explained by no dispatch",
)
NOT_CAPTURED = Rule(
    code="wire/not-captured",
    severity=Severity.WARNING,
    title="The log proves requests that the capture does not hold.",
    advice="The capture is partial: it began late, ended early, or a filter left requests out.",
    example="2 requests were sent that no capture shows: 7, 8",
)
NOT_CHECKED = Rule(
    code="wire/not-checked",
    severity=Severity.WARNING,
    title="A captured request was matched with a dispatch whose body cannot be rebuilt, so nothing was compared.",
    advice="The message says what is missing; a deployment file, a constant or a newer release may supply it.",
    example="request 2: a message holds an image, which is not reproduced yet",
)
NOTHING_COMPARED = Rule(
    code="wire/nothing-compared",
    severity=Severity.ERROR,
    title="Requests were captured and requests were sent, but no captured one was compared with the logs.",
    advice="Check that capture and log belong together. Where a profile is missing, deployment learn LOG "
    "--capture PATH -o FILE proposes a deployment file.",
    example='not one of 6 captured requests was compared with the 6 that the logs prove: the deployment has no '
    'profile for provider "acme" (llm-pi-ai)',
)
DUPLICATE_SESSION = Rule(
    code="log/duplicate-session",
    severity=Severity.WARNING,
    title="Two logs have the same session id; the harness refuses such a home.",
    advice="Keep the one that is whole and name only that; with a capture the longest one is used.",
    example="session toy-1 is also in sessions-torn; this copy was not used",
)
