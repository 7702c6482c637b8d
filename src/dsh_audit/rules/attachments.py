"""Findings about stored attachments."""

from dsh_audit.finding import Rule, Severity

_ADVICE = "Restore it from a backup of the home; requests that need its bytes cannot be shown as they were sent."

MISSING = Rule(
    code="attachments/missing",
    severity=Severity.ERROR,
    title="The store does not hold an object that a message refers to.",
    advice=_ADVICE,
    example="object sha256:70374b2d… is missing; requests 1, 2 show it",
)
ALTERED = Rule(
    code="attachments/altered",
    severity=Severity.ERROR,
    title="A stored object is not what its name, the digest of its bytes, says.",
    advice=_ADVICE,
    example="object sha256:70374b2d… holds other bytes (sha256:5d0a2849…); requests 1, 2 show it",
)
SWAPPED = Rule(
    code="attachments/swapped",
    severity=Severity.ERROR,
    title="A stored object holds the bytes of another one.",
    advice=_ADVICE,
    example="object sha256:70374b2d… holds the bytes of object sha256:fc180169…; requests 1, 2 show it",
)
MISTYPED = Rule(
    code="attachments/mistyped",
    severity=Severity.ERROR,
    title="A message states another media type, length or size than its object has.",
    advice="The object is what its digest says, so the message was changed, or a plugin wrote it.",
    example="object sha256:70374b2d… is image/png, 60x40, 7033 bytes, not image/jpeg; requests 1, 2 show it",
)
DAMAGED_VERSION = Rule(
    code="attachments/damaged-version",
    severity=Severity.ERROR,
    title="A cached request version of an image was cut or is no image.",
    advice="The cache is not authenticated; what was sent in its place is known from a capture only.",
    example="request version sha256:13814ac4… of object sha256:fc180169… has 812 bytes, 262393 were uploaded; "
    "requests 1, 2 show it",
)
