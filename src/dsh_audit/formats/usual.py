"""Payloads of the usual shape, told in C: what converts to one of these breaks no rule of its format.

Narrower than the rules, which decide on everything else. Source: the checks of restore.py, v3.py and v4_admission.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dsh_audit.events import Json
from dsh_audit.formats.envelope import MAX_SAFE_INTEGER

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_SAFE_INTEGER)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_BlockType = Literal["text", "reasoning", "tool-call", "image", "file"]


class _Block(msgspec.Struct, gc=False):
    type: _BlockType


class _Source(msgspec.Struct, gc=False):
    kind: _Text


class _UserSource(msgspec.Struct, gc=False):
    kind: Literal["user", "runtime-context", "agent-instructions", "compact-checkpoint", "skill-catalog"]


class _ModelSource(msgspec.Struct, gc=False):
    kind: Literal["model"]
    provider: _Text
    model: _Text


class _ToolSource(msgspec.Struct, gc=False):
    kind: Literal["tool"]
    callId: _Text  # noqa: N815


class _User(msgspec.Struct, gc=False):
    id: _Text
    role: Literal["user"]
    source: _Source
    content: list[Json]


class _AnswerMessage(msgspec.Struct, gc=False):
    id: _Text
    role: Literal["assistant"]
    source: _ModelSource
    content: list[_Block]


class _Answer(msgspec.Struct, gc=False):
    message: _AnswerMessage


class _SettledAnswer(msgspec.Struct, gc=False):
    turn: _Count
    step: _Count
    message: _AnswerMessage
    stream: list[Json]


class _Wrapped(msgspec.Struct, gc=False):
    type: Literal["tool-result"]
    toolCallId: str  # noqa: N815
    content: list[Json]


class _WrappedMessage(msgspec.Struct, gc=False):
    id: _Text
    role: Literal["user"]
    source: _ToolSource
    content: Annotated[list[_Wrapped], msgspec.Meta(min_length=1, max_length=1)]


class _WrappedResult(msgspec.Struct, gc=False):
    message: _WrappedMessage
    error: UnsetType = UNSET


class _UserV4(_User):
    source: _UserSource  # type: ignore[assignment]
    content: list[_Block]


class _ResultMessage(msgspec.Struct, gc=False):
    id: _Text
    role: Literal["tool"]
    source: _ToolSource
    toolCallId: str  # noqa: N815
    content: list[_Block]
    isError: bool = False  # noqa: N815


class _Result(msgspec.Struct, gc=False):
    message: _ResultMessage
    error: UnsetType = UNSET


class _StreamChunk(msgspec.Struct, gc=False):
    blockType: _BlockType = "text"  # noqa: N815
    block: _Block | UnsetType = UNSET


class _StreamRecord(msgspec.Struct, gc=False):
    chunk: _StreamChunk | UnsetType = UNSET


class _AnswerV4(_SettledAnswer):
    stream: list[_StreamRecord]


_V0: dict[str, type] = {"user/message": _User, "assistant/message": _Answer, "tool/result": _WrappedResult}
_V2 = {**_V0, "assistant/message": _SettledAnswer}
_V4: dict[str, type] = {"user/message": _UserV4, "assistant/message": _AnswerV4, "tool/result": _Result}
USUAL = {0: _V0, 1: _V0, 2: _V2, 3: _V2, 4: _V4}


def is_usual(shape: type, data: Json) -> bool:
    """Whether a payload has a shape, and its parts agree."""
    try:
        found: object = msgspec.convert(data, shape)
    except (ValueError, RecursionError):
        return False
    if isinstance(found, _WrappedResult):
        return found.message.content[0].toolCallId == found.message.source.callId
    return not isinstance(found, _Result) or found.message.toolCallId == found.message.source.callId
