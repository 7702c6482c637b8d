"""Bodies that a record holds as text, by themselves or in base64."""

from __future__ import annotations

import base64
import binascii

from dsh_audit.capture.shapes import BadShapeError
from dsh_audit.record import dataclass


@dataclass(frozen=True, slots=True)
class HeldBody:
    """A body in memory.

    Args:
        data: None when the record has none.
        is_lossy: the text held an unpaired surrogate, so it cannot be what was sent.
    """

    data: str | bytes | None
    is_lossy: bool = False

    def __call__(self) -> bytes | None:
        """The bytes."""
        return self.data.encode(errors="replace") if isinstance(self.data, str) else self.data


def text_body(text: str) -> HeldBody:
    """A body from verbatim text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return HeldBody(text, is_lossy=True)
    return HeldBody(text)


def base64_body(text: str) -> HeldBody:
    """A body from base64, standard or URL alphabet, white space ignored.

    Raises:
        BadShapeError: not base64.
    """
    compact = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        return HeldBody(base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True))
    except (binascii.Error, ValueError):
        raise BadShapeError("the body is not valid base64") from None
