"""The input items of a Responses body.

Source: wire-pi-ai 6.2; pi-ai 0.82.1 api/openai-responses-shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy

from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.body import PartRun
from dsh_audit.wire.parts import Part
from dsh_audit.wire.pi.assemble import Seqs, WireItem
from dsh_audit.wire.pi.history import History, RewriteId
from dsh_audit.wire.pi.items import ItemFold, resume
from dsh_audit.wire.pi.neutral import Assistant, Context, Message, System
from dsh_audit.wire.pi.responses_items import message_items, response_tools
from dsh_audit.wire.pi.settings import Settings
from dsh_audit.wire.pi.strings import clean, hash36, safe_id
from dsh_audit.wire.pi.transcript import resolve_transcript

_ID_UNITS = 64


@dataclass(frozen=True, slots=True)
class InputList:
    """The input list of one body: the system item, the items that stay, and the parts of those that may change."""

    prompt: WireItem | None
    run: PartRun
    open_parts: tuple[Part, ...]


class ResponseItems:
    """The input lists of one session's bodies.

    Args:
        paired: the provider keys whose call ids keep their ``call|item`` form.
    """

    def __init__(self, paired: Collection[str]) -> None:
        self._paired = paired
        self._fold: ItemFold | None = None

    def of(
        self, context: Context, settings: Settings, seqs: Seqs, *, strict: bool, update: str | None = None
    ) -> tuple[InputList, tuple[dict[str, Json], ...]]:
        """(the input list, the tools of the body).

        Args:
            strict: whether tool definitions carry ``strict``.
            update: the effort that goes into the input, if it does.

        Raises:
            PiRefusedError: a reasoning signature is not JSON, so the call fails before it sends anything.
        """
        model, rules = settings.model, settings.rules
        compat = model.get("compat") or {}
        takes_system = bool(compat.get("supportsMidConvoSystemMessages"))
        transcript = resolve_transcript(context, rules, native=takes_system)
        way = "additional" if compat.get("supportsAdditionalTools") else None
        way = way or ("search" if compat.get("supportsToolSearch") else None)
        way = way if takes_system and transcript.is_additive else None
        has_prompt, has_update = bool(transcript.system), update is not None
        key = (model, rules, way, strict, has_update, has_prompt, transcript.skips_first, transcript.drops_system)

        def start() -> ItemFold:
            writer = _Writer(settings, way, strict, has_update)
            history = History(model, self._rewrite_id(model), rules)
            index = int(has_prompt)
            return ItemFold(
                key, context, transcript, history, writer, list_key="input", first_index=index, can_mark=None
            )

        self._fold = fold = resume(self._fold, key, context, start)
        prompt = instructions_item(transcript.system, seqs.system, model) if transcript.system else None
        items = [*fold.open_items(), *([] if update is None else [WireItem(_effort_item(update))])]
        return InputList(prompt, fold.run, fold.print_open(items)), transcript.head_tools if way else transcript.tools

    def _rewrite_id(self, model: dict[str, Json]) -> RewriteId:
        def rewrite(call_id: str, message: Assistant) -> str:
            is_paired = model["provider"] in self._paired and "|" in call_id
            return _paired_id(call_id, message, model) if is_paired else _id_part(call_id)

        return rewrite


def instructions_item(text: str, seq: int | None, model: dict[str, Json]) -> WireItem:
    """A message of the system."""
    compat = model.get("compat") or {}
    is_developer = model["reasoning"] and compat.get("supportsDeveloperRole") is not False
    return WireItem({"role": "developer" if is_developer else "system", "content": clean(text)}, (seq,))


class _Writer:
    """Writes the transformed history and numbers its messages."""

    def __init__(self, settings: Settings, way: str | None, strict: bool, has_update: bool) -> None:
        self._model = settings.model
        self._rules = settings.rules
        self._way = way
        self._strict = strict
        self._has_update = has_update
        self._number = 0

    def fork(self) -> _Writer:
        return copy(self)

    def finish(self) -> Iterator[WireItem]:
        return iter(())

    def write(self, message: Message) -> Iterator[WireItem]:
        if isinstance(message, System):
            yield from self._system(message)
            return
        values = list(message_items(message, self._model, self._number, self._rules))
        if values and self._has_update and isinstance(message, Assistant):
            yield from self._effort_before(message)
        for value in values:
            yield WireItem(value, (message.seq,))
        # Messages that write nothing are not numbered.
        self._number += 1 if values else 0

    def _effort_before(self, message: Assistant) -> Iterator[WireItem]:
        model = self._model
        route = (message.provider, message.api, message.model)
        if route == (model["provider"], model["api"], model["id"]) and message.level is not None:
            yield WireItem(_effort_item(message.level), (message.seq,))

    def _system(self, message: System) -> Iterator[WireItem]:
        if message.added and self._way == "additional":
            tools = response_tools(message.added, self._strict)
            yield WireItem({"type": "additional_tools", "role": "developer", "tools": tools}, (message.seq,))
        elif message.added and self._way == "search":
            yield from self._search(message)
        if message.text:
            yield instructions_item(message.text, message.seq, self._model)
        self._number += 1

    def _search(self, message: System) -> Iterator[WireItem]:
        """Tools that are added appear as a search that found them."""
        names = [tool["name"] for tool in message.added]
        call_id = f"pi_tool_load_{hash36(ecma.join([f'system:{self._number}:', ','.join(names)]))}"
        common = {"call_id": call_id, "execution": "client", "status": "completed"}
        query = {"query": ecma.join([" ".join(names)]), "limit": len(names)}
        yield WireItem({"type": "tool_search_call", **common, "arguments": query}, (message.seq,))
        tools = response_tools(message.added, self._strict, deferred=True)
        yield WireItem({"type": "tool_search_output", **common, "tools": tools}, (message.seq,))


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
