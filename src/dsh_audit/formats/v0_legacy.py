"""Dialects of format 0 from before 0.1.1, read as the 0.1.1 vocabulary. Source: spec session-log 4.3, 5;
dsh-session-format-v0-to-v1 0.1.3-alpha.2 (normalisation), session persistence of 0.1.1-rc.1.
"""

from __future__ import annotations

from dataclasses import field

from dsh_audit.events import Event, Json
from dsh_audit.formats.base import FormatError
from dsh_audit.formats.envelope import is_object, require_count, require_keys, require_object
from dsh_audit.record import dataclass
from dsh_audit.text import ecma

_RENAMED = {
    "compact/start": "compaction/start",
    "compact/summary": "compaction/summary",
    "compact/end": "compaction/end",
    "compact/prune": "compaction/prune",
}
LEGACY_TYPES = frozenset({*_RENAMED, "steering/message", "request/header-delta", "mode/set"})
"""Types of old dialects; the last two cannot be read."""

_LOOKED_AT = LEGACY_TYPES | {
    "turn/start",
    "turn/end",
    "request/header",
    "llm/retry",
    "session/end-seed",
    "compaction/start",
    "compaction/summary",
    "compaction/end",
    "user/message",
    "assistant/message",
    "tool/result",
}
_PLAIN_ENDS = frozenset({"completed", "blocked", "max-tokens", "interrupted"})


@dataclass(slots=True)
class LegacyReader:
    """Turns the events of one format 0 log into the vocabulary of 0.1.1; feed it all events in order.

    Args:
        session_id: used in the ids given to messages, retries and compactions that had none.
    """

    session_id: str
    _seen: dict[str, None] = field(default_factory=dict)
    _message_ids: dict[int, str] = field(default_factory=dict)
    _retry_ids: dict[str, str] = field(default_factory=dict)
    _compaction_id: str | None = None

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the dialects met so far, in order of first sight."""
        return tuple(self._seen)

    def normalise(self, event: Event) -> Event:
        """The event in current vocabulary; the event itself when it already is.

        Raises:
            FormatError: an event that no release can read any more, or a malformed old one.
        """
        if event.type not in _LOOKED_AT:
            return event
        renamed = _RENAMED.get(event.type)
        if renamed is not None:
            event = self._change(event, "compact/*", to=renamed)
        elif event.type in ("request/header-delta", "mode/set"):
            raise FormatError(f"unsupported legacy {event.type} event")
        event = self._by_type(event)
        event = self._compaction(event)
        event = self._message(event)
        message_id = _message_id(event)
        if message_id is not None:
            self._message_ids[event.seq] = message_id
        return event

    def _by_type(self, event: Event) -> Event:
        match event.type:
            case "turn/start":
                return self._turn_start(event)
            case "turn/end":
                return self._turn_end(event)
            case "request/header":
                return self._request_header(event)
            case "steering/message":
                return self._steering(event)
            case "llm/retry":
                return self._retry(event)
            case _:
                return event

    def _change(self, event: Event, dialect: str, *, to: str | None = None, data: Json = None) -> Event:
        self._seen.setdefault(dialect)
        return event.changed(type=to or event.type, data=event.data if data is None else data)

    def _legacy_id(self, seq: int) -> str:
        return f"legacy-message:{self.session_id}:{seq}"

    def _turn_start(self, event: Event) -> Event:
        data = event.data
        if not is_object(data) or "trigger" not in data:
            return event
        require_keys(data, ("turn", "trigger"), (), "turn/start data")
        trigger = data["trigger"]
        named = is_object(trigger) and isinstance(trigger.get("kind"), str) and trigger["kind"] != ""
        if require_count(data["turn"], "turn/start turn") < 1 or not named:
            raise FormatError("malformed turn/start with trigger")
        return self._change(event, "turn/start trigger", data={"turn": data["turn"]})

    def _turn_end(self, event: Event) -> Event:
        data = require_object(event.data, "turn/end data")
        require_keys(data, ("turn", "reason"), (), "turn/end data")
        reason = require_object(data["reason"], "turn/end reason")
        if require_count(data["turn"], "turn/end turn") < 1 or not isinstance(reason.get("kind"), str):
            raise FormatError("malformed turn/end")
        current = _turn_end_reason(reason)
        if current is reason:
            return event
        return self._change(event, f"turn/end {reason['kind']}", data={**data, "reason": current})

    def _request_header(self, event: Event) -> Event:
        data = require_object(event.data, "request/header data")
        if data.get("reason") == "fallback":
            raise FormatError('unsupported legacy request/header reason "fallback"')
        header = data.get("header")
        if not is_object(header) or "messagePrefix" not in header:
            return event
        if not isinstance(header["messagePrefix"], list):
            raise FormatError("malformed request/header messagePrefix")
        rest = {key: value for key, value in header.items() if key != "messagePrefix"}
        return self._change(event, "request/header messagePrefix", data={**data, "header": rest})

    def _steering(self, event: Event) -> Event:
        data = require_object(event.data, "steering/message data")
        if "message" in data:
            require_keys(data, ("turn", "message"), (), "steering/message data")
            message = require_object(data["message"], "steering/message message")
        else:
            require_keys(data, ("turn", "content", "source"), (), "steering/message data")
            message = {key: value for key, value in data.items() if key != "turn"}
            message |= {"id": self._legacy_id(event.seq), "role": "user"}
        require_count(data["turn"], "steering/message turn")
        return self._change(event, "steering/message", to="user/message", data=message)

    def _retry(self, event: Event) -> Event:
        data = require_object(event.data, "llm/retry data")
        chain = "\0".join(
            ecma.stringify_text(data[key]) if key in data else "" for key in ("turn", "step", "provider", "policyKey")
        )
        if "retryId" in data:
            if isinstance(data["retryId"], str) and data["retryId"]:
                self._retry_ids[chain] = data["retryId"]
            return event
        retry_id = self._retry_ids.setdefault(chain, f"legacy-retry:{self.session_id}:{event.seq}")
        return self._change(event, "llm/retry without retryId", data={**data, "retryId": retry_id})

    def _compaction(self, event: Event) -> Event:
        kind = event.type
        if kind == "session/end-seed":
            self._compaction_id = None
        elif kind == "compaction/start":
            data = require_object(event.data, "compaction/start data")
            if "compactionId" not in data:
                self._compaction_id = f"legacy-compaction:{self.session_id}:{event.seq}"
                return self._with_compaction_id(event, data)
            if isinstance(data["compactionId"], str) and data["compactionId"]:
                self._compaction_id = data["compactionId"]
        elif self._compaction_id is not None and kind in ("compaction/summary", "compaction/end"):
            data = require_object(event.data, f"{kind} data")
            changed = event if "compactionId" in data else self._with_compaction_id(event, data)
            if kind == "compaction/end":
                self._compaction_id = None
            return changed
        elif self._compaction_id is not None and kind == "user/message":
            return self._checkpoint(event)
        return event

    def _with_compaction_id(self, event: Event, data: dict[str, Json]) -> Event:
        return self._change(event, "compaction without id", data={**data, "compactionId": self._compaction_id})

    def _checkpoint(self, event: Event) -> Event:
        source = event.data.get("source") if is_object(event.data) else None
        if not is_object(source) or source.get("kind") != "plugin" or source.get("plugin") != "compact":
            return event
        if "compactionId" in source:
            return event
        source = {**source, "compactionId": self._compaction_id}
        return self._change(event, "compaction without id", data={**event.data, "source": source})

    def _message(self, event: Event) -> Event:
        data = event.data
        if not is_object(data) or "message" in data or "content" not in data:
            return event
        if event.type == "user/message":
            if "id" in data or "role" in data or "source" not in data:
                return event
            data = {**data, "id": self._legacy_id(event.seq), "role": "user"}
        elif event.type == "assistant/message" and "provenance" in data:
            data = self._assistant(event.seq, data)
        elif event.type == "tool/result" and "callId" in data and "isError" in data:
            if not isinstance(data["callId"], str) or not isinstance(data["isError"], bool):
                return event
            data = self._tool_result(event, data)
        else:
            return event
        return self._change(event, "messages without identity", data=data)

    def _assistant(self, seq: int, data: dict[str, Json]) -> dict[str, Json]:
        provenance = require_object(data["provenance"], "assistant/message provenance")
        message = {
            "id": self._legacy_id(seq),
            "role": "assistant",
            "content": data["content"],
            "source": {**provenance, "kind": "model"},
        }
        rest = {key: value for key, value in data.items() if key not in ("content", "provenance")}
        return {**rest, "message": message}

    def _tool_result(self, event: Event, data: dict[str, Json]) -> dict[str, Json]:
        call_id = data["callId"]
        message_id: str | None = self._legacy_id(event.seq)
        if event.surface_op is not None and event.surface_op.op == "replace":
            message_id = self._message_ids.get(event.surface_op.start or 0)
        if message_id is None:
            raise FormatError("tool/result replacement cites a message without identity")
        block = {
            "type": "tool-result",
            "toolCallId": call_id,
            "content": data["content"],
            "isError": data["isError"],
        }
        message = {
            "id": message_id,
            "role": "user",
            "content": [block],
            "source": {"kind": "tool", "callId": call_id},
        }
        rest = {key: value for key, value in data.items() if key not in ("callId", "content", "isError")}
        return {**rest, "message": message}


def _turn_end_reason(reason: dict[str, Json]) -> dict[str, Json]:
    kind = reason["kind"]
    if kind in _PLAIN_ENDS:
        require_keys(reason, ("kind",), (), "turn/end reason")
    elif kind == "aborted" and "reason" not in reason:
        require_keys(reason, ("kind",), (), "turn/end reason")
        return {"kind": "aborted", "reason": {"kind": "legacy"}}
    elif kind == "disposed":
        require_keys(reason, ("kind",), (), "turn/end reason")
        return {"kind": "aborted", "reason": {"kind": "disposed"}}
    elif kind == "error" and "error" not in reason:
        return {"kind": "error", "error": _turn_end_error(reason)}
    return reason


def _turn_end_error(reason: dict[str, Json]) -> dict[str, Json]:
    require_count(reason.get("step"), "turn/end error step")
    if "failure" in reason:
        require_keys(reason, ("kind", "step", "failure"), (), "turn/end reason")
        failure = require_object(reason["failure"], "turn/end failure")
        optional = ("status", "providerRetryAfterMs", "requestId")
        require_keys(failure, ("message", "code"), optional, "turn/end failure")
        if not isinstance(failure["message"], str) or not isinstance(failure["code"], str):
            raise FormatError("malformed turn/end failure")
        return failure
    require_keys(reason, ("kind", "step", "message"), ("code",), "turn/end reason")
    code = reason.get("code", "UNKNOWN")
    if not isinstance(reason["message"], str) or not isinstance(code, str):
        raise FormatError("malformed turn/end error")
    return {"message": reason["message"], "code": code}


def _message_id(event: Event) -> str | None:
    if event.type not in ("user/message", "assistant/message", "tool/result"):
        return None
    message = event.data if event.type == "user/message" else None
    if message is None and is_object(event.data):
        message = event.data.get("message")
    found = message.get("id") if is_object(message) else None
    return found if isinstance(found, str) else None
