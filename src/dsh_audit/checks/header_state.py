"""What one step request says besides its history: settings, prompt, tools; the thing that must not drift.

Source: spec wire-deepseek 2, 5.2 (4), session-log 7.
"""

from __future__ import annotations

from dsh_audit.events import Event, Json, as_list, as_object
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.text import ecma

_TOOL = ("name", "description", "parameters", "deferLoading")


@dataclass(frozen=True, slots=True)
class PromptText:
    """One system text.

    Args:
        text: its text blocks joined.
        seq: the event it comes from.
    """

    text: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class HeaderState:
    """The request header in force for one step request, prompt included.

    Args:
        config: provider, model and settings as logged.
        adapter_defaults: which settings the adapter filled in.
        head: the system text at the head of the prompt; None when there is none.
        updates: later system texts that stay in the history.
        prompt_seq: the event that last set the prompt, an emptied one included.
        tools: definitions in order, as adapters write them.
        seq: the ``request/header`` event; None before the first.
        context_seq: the ``request/context`` event.
        in_history: the route takes changed prompts and tools in the history.
    """

    config: dict[str, Json]
    adapter_defaults: dict[str, Json]
    head: PromptText | None
    updates: tuple[PromptText, ...]
    prompt_seq: int | None
    tools: tuple[Json, ...]
    seq: int | None
    context_seq: int | None
    in_history: bool

    @property
    def prompt(self) -> str:
        """The prompt in force: the last update, else the head."""
        current = self.updates[-1] if self.updates else self.head
        return current.text if current else ""


class HeaderStates:
    """Header states of the step requests of one session; O(1) per request while the surface only grows."""

    def __init__(self) -> None:
        self._surface: object = None
        self._texts: list[PromptText] = []
        self._taken = 0
        self._headed = False
        self._latest: int | None = None
        self._tools: tuple[object, tuple[Json, ...]] = (None, ())

    def of(self, request: Request) -> HeaderState:
        """The state of a step request."""
        snapshot = request.snapshot
        event, context = snapshot.request_header, snapshot.request_context
        header = event.data["header"] if event is not None else {}
        is_called = context is not None and context.data.get("model") == request.model
        in_history = is_called and context is not None and context.data.get("systemPromptUpdate") == "in-history"
        head, updates = self._prompt(request, in_history)
        defaults = header.get("adapterDefaults")
        return HeaderState(
            config=dict(header.get("config") or {}),
            adapter_defaults=defaults if isinstance(defaults, dict) else {},
            head=head,
            updates=updates,
            prompt_seq=self._latest if request.format_version >= 3 else event.seq if event is not None else None,
            tools=self._rendered(request),
            seq=event.seq if event is not None else None,
            context_seq=context.seq if context is not None else None,
            in_history=in_history,
        )

    def _rendered(self, request: Request) -> tuple[Json, ...]:
        if self._tools[0] is not request.tools:
            self._tools = (request.tools, tuple(map(_rendered_tool, request.tools or ())))
        return self._tools[1]

    def _prompt(self, request: Request, in_history: bool) -> tuple[PromptText | None, tuple[PromptText, ...]]:
        if request.format_version < 3:
            head = None if request.system is None else PromptText(request.system, request.system_seq)
            return head, ()
        texts = self._system_texts(request)
        if request.format_version >= 4 and not in_history:
            # Outside in-history routes the last system text becomes the head, wherever it stands.
            return (texts[-1] if texts else None), ()
        if self._headed:
            return texts[0], tuple(texts[1:])
        return None, tuple(texts)

    def _system_texts(self, request: Request) -> list[PromptText]:
        surface = request.snapshot.surface
        if self._surface is None or not surface.extends(self._surface):  # type: ignore[arg-type]
            self._texts, self._taken, self._latest = [], 0, None
            self._headed = bool(surface) and surface[0].type == "system/message" and bool(_text(surface[0]))
        elif self._taken == 0:
            self._headed = bool(surface) and surface[0].type == "system/message" and bool(_text(surface[0]))
        for node in surface[self._taken :]:
            if node.type != "system/message":
                continue
            self._latest = node.seq if self._latest is None else max(node.seq, self._latest)
            if text := _text(node):
                self._texts.append(PromptText(text, node.seq))
        self._surface, self._taken = surface, len(surface)
        return list(self._texts)


def _rendered_tool(tool: Json) -> Json:
    """What adapters write of a tool, in their order."""
    return {name: tool[name] for name in _TOOL if name in tool} if isinstance(tool, dict) else tool


def _text(event: Event) -> str:
    content = event.data["message"]["content"]
    blocks = [as_object(block) for block in as_list(content)]
    texts = (block.get("text") for block in blocks if block.get("type") == "text")
    return ecma.join(text for text in texts if isinstance(text, str))
