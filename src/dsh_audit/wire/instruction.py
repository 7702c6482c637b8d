"""The fixed text that ends a compaction request, which is not shipped. Source: spec wire-deepseek 8."""

from __future__ import annotations

from dsh_audit.projection.messages import DerivedMessage
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import CannotEncodeError, UnloggedInputs


def instruction(request: Request, inputs: UnloggedInputs) -> list[DerivedMessage]:
    """The last user message of a compaction; nothing for other calls.

    Raises:
        CannotEncodeError: the text was not given.
    """
    if request.constant is None:
        return []
    text = inputs.deployment.constants.get(request.constant)
    if text is None:
        raise CannotEncodeError(f"the text {request.constant} is known by digest only; give --constant")
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return [DerivedMessage(request.dispatch.opened_seq, message)]
