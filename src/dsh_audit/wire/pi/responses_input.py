"""The input items of a Responses body.

Source: wire-pi-ai 6.2; pi-ai 0.82.1 api/openai-responses-shared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dsh_audit.events import Json
from dsh_audit.text import ecma
from dsh_audit.wire.pi.assemble import Seqs, WireItem
from dsh_audit.wire.pi.history import transform
from dsh_audit.wire.pi.neutral import Assistant, Context, Message, System
from dsh_audit.wire.pi.responses_items import message_items, response_tools
from dsh_audit.wire.pi.settings import Settings
from dsh_audit.wire.pi.strings import clean, hash36, safe_id
from dsh_audit.wire.pi.transcript import resolve_transcript

_ID_UNITS = 64


def response_items(
    context: Context,
    settings: Settings,
    paired: Collection[str],
    seqs: Seqs,
    *,
    strict: bool,
    update: str | None = None,
) -> tuple[list[WireItem], Sequence[dict[str, Json]]]:
    """(the input list, system item first; the tools of the body).

    Args:
        paired: the provider keys whose call ids keep their ``call|item`` form.
        strict: whether tool definitions carry ``strict``.
        update: the effort that goes into the input, if it does.

    Raises:
        PiRefusedError: a reasoning signature is not JSON, so the call fails before it sends anything.
    """
    model, rules = settings.model, settings.rules
    compat = model.get("compat") or {}

    def rewrite_id(call_id: str, message: Assistant) -> str:
        is_paired = model["provider"] in paired and "|" in call_id
        return _paired_id(call_id, message, model) if is_paired else _id_part(call_id)

    takes_system = bool(compat.get("supportsMidConvoSystemMessages"))
    transcript = resolve_transcript(context, rules, native=takes_system)
    way = "additional" if compat.get("supportsAdditionalTools") else None
    way = way or ("search" if compat.get("supportsToolSearch") else None)
    way = way if takes_system and transcript.is_additive else None
    writer = _Writer(settings, way, strict, update)
    if transcript.context.system:
        writer.add_instructions(transcript.context.system, seqs.system)
    for message in transform(transcript.context.messages, model, rewrite_id, rules):
        writer.write(message)
    if update is not None:
        writer.add(_effort_item(update), None)
    return writer.items, transcript.head_tools if way else transcript.context.tools


class _Writer:
    """Writes the transformed history and numbers its messages."""

    def __init__(self, settings: Settings, way: str | None, strict: bool, update: str | None) -> None:
        self.items: list[WireItem] = []
        self._model = settings.model
        self._rules = settings.rules
        self._way = way
        self._strict = strict
        self._update = update
        self._number = 0

    def add(self, value: Json, seq: int | None) -> None:
        self.items.append(WireItem(value, (seq,)))

    def add_instructions(self, text: str, seq: int | None) -> None:
        compat = self._model.get("compat") or {}
        is_developer = self._model["reasoning"] and compat.get("supportsDeveloperRole") is not False
        self.add({"role": "developer" if is_developer else "system", "content": clean(text)}, seq)

    def write(self, message: Message) -> None:
        if isinstance(message, System):
            self._write_system(message)
            return
        values = list(message_items(message, self._model, self._number, self._rules))
        if values and self._update is not None and isinstance(message, Assistant):
            self._add_update(message)
        for value in values:
            self.add(value, message.seq)
        # Messages that write nothing are not numbered.
        self._number += 1 if values else 0

    def _add_update(self, message: Assistant) -> None:
        model = self._model
        is_same = (message.provider, message.api, message.model) == (
            model["provider"],
            model["api"],
            model["id"],
        )
        if is_same and message.level is not None:
            self.add(_effort_item(message.level), message.seq)

    def _write_system(self, message: System) -> None:
        if message.added and self._way == "additional":
            tools = response_tools(message.added, self._strict)
            self.add({"type": "additional_tools", "role": "developer", "tools": tools}, message.seq)
        elif message.added and self._way == "search":
            self._add_search(message)
        if message.text:
            self.add_instructions(message.text, message.seq)
        self._number += 1

    def _add_search(self, message: System) -> None:
        """Tools that are added appear as a search that found them."""
        names = [tool["name"] for tool in message.added]
        call_id = f"pi_tool_load_{hash36(ecma.join([f'system:{self._number}:', ','.join(names)]))}"
        common = {"call_id": call_id, "execution": "client", "status": "completed"}
        query = {"query": ecma.join([" ".join(names)]), "limit": len(names)}
        self.add({"type": "tool_search_call", **common, "arguments": query}, message.seq)
        tools = response_tools(message.added, self._strict, deferred=True)
        self.add({"type": "tool_search_output", **common, "tools": tools}, message.seq)


def _effort_item(effort: str) -> dict[str, Json]:
    return {"type": "configuration_update", "reasoning": {"effort": effort}}


def _id_part(text: str) -> str:
    return safe_id(text)[:_ID_UNITS].rstrip("_")


def _paired_id(call_id: str, message: Assistant, model: dict[str, Json]) -> str:
    first, second = call_id.split("|")[:2]
    is_foreign = (message.provider, message.api) != (model["provider"], model["api"])
    item = f"fc_{hash36(second)}" if is_foreign else _id_part(second)
    if not item.startswith("fc_"):
        item = _id_part(f"fc_{item}")
    return f"{_id_part(first)}|{item}"
