"""Adapter llm-deepseek, Messages: harness 0.1.6 (default there) to 0.2.1.

Rules, seen in captured bytes of 0.2.1 (spec wire-deepseek 5 to 8; those of 0.1.6 were only read, 5.6):

* Keys in order: model, stream, messages, max_tokens, thinking, output_config?, system?, temperature?,
  stop_sequences?, tools?; compact JSON as JSON.stringify prints it.
* Consecutive user turns merge, so do answers; tool results come first in their turn (messages_fold.py).
* The first system text is a member of its own; on a route with in-history updates later ones are messages.
* What a route is told of changed tools depends on its tool-update mode, which is not logged
  (tool_updates.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from dsh_audit.deployment import DEFAULT_MESSAGES_URL, Deployment, Used
from dsh_audit.events import Json
from dsh_audit.projection.messages import derive_nodes
from dsh_audit.projection.surface import Surface
from dsh_audit.request.neutral import Request
from dsh_audit.text import ecma
from dsh_audit.wire.adapter import Encoded, UnloggedInputs
from dsh_audit.wire.body import Body
from dsh_audit.wire.images import ImageWriter
from dsh_audit.wire.instruction import instruction
from dsh_audit.wire.learned import LearnedEfforts, default_effort
from dsh_audit.wire.messages_blocks import encode_tool, fails_locally
from dsh_audit.wire.messages_fold import MessagesFold, Route
from dsh_audit.wire.parts import END, Part, PartMemory, close_list, element, member, open_list
from dsh_audit.wire.protocol import MESSAGES
from dsh_audit.wire.tool_updates import TOOL_MODES, ToolHistoryFold, ToolMode, ToolProjection, project_tools

DEFAULT_MAX_TOKENS = 256000
"""The adapter's cap where neither request nor catalogue names one. Source: dsh-llm-deepseek 0.2.1-rc.2."""

_STREAM, _OPEN = member("stream", b"true"), open_list("messages")
_OPEN_TOOLS, _CLOSE_TOOLS = open_list("tools"), close_list("tools")
_EFFORTS = ("off", "low", "high", "max")
_FILES_BETA = "files-api-2025-04-14"
_TOOL_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"


class MessagesEncoder:
    """Writes Messages bodies; keeps the encoded messages of the surface it saw last."""

    def __init__(self) -> None:
        self._steps: _StepMessages | None = None
        self._tools = _Tools()
        self._efforts = LearnedEfforts()
        self._memory = PartMemory()

    def encode(self, request: Request, inputs: UnloggedInputs) -> Encoded:
        """The body of a request."""
        self._efforts.learn(request.snapshot.request_header)
        route = route_of(request, inputs)
        mode = self._tools.mode(request, inputs)
        if request.messages is None:
            messages, projection = self._step_messages(request, route, mode, inputs)
        else:
            messages, projection = self._call_messages(request, route, mode, inputs)
        count, array_tail = messages.view()
        tail = (*array_tail, *self._envelope(request, inputs, messages, projection))
        model = self._memory.keep(member("model", ecma.stringify(request.model), request.tools_seq, first=True))
        body = Body((model, _STREAM, _OPEN), messages.run, count, tail)
        has_files = inputs.images is not None and inputs.images.has_file_ids
        betas = [_FILES_BETA] * has_files + [_TOOL_CHANGES_BETA] * messages.has_tool_changes
        http_headers = _http_headers(request, inputs, betas)
        return Encoded(MESSAGES, "bytes", body, (), (), "/v1/messages", http_headers)

    def _step_messages(
        self, request: Request, route: Route, mode: ToolMode, inputs: UnloggedInputs
    ) -> tuple[MessagesFold, ToolProjection]:
        surface = request.snapshot.surface
        steps = self._steps
        is_longer = steps is not None and steps.surface is not None and surface.extends(steps.surface)
        is_alike = steps is not None and (steps.messages.route, steps.has_images) == (route, inputs.images is not None)
        if steps is None or not is_longer or not is_alike:
            steps = _StepMessages(route, inputs.images)
        else:
            steps.messages.continue_with(inputs.images)
        steps.note(surface)
        projection = self._tools.project(request, mode, steps.developers)
        if not steps.agrees(projection):
            steps = _StepMessages(route, inputs.images)
            steps.note(surface)
        steps.push(projection)
        self._steps = steps
        return steps.messages, projection

    def _call_messages(
        self, request: Request, route: Route, mode: ToolMode, inputs: UnloggedInputs
    ) -> tuple[MessagesFold, ToolProjection]:
        """Messages and tools of a title or compaction."""
        derived = [*(request.messages or ()), *instruction(request, inputs)]
        developers = frozenset(item.seq for item in derived if item.message["role"] == "developer")
        projection = self._tools.project(request, mode, developers)
        messages = MessagesFold(route, inputs.images)
        messages.push(derived, projection.blocks)
        return messages, projection

    def _envelope(
        self, request: Request, inputs: UnloggedInputs, messages: MessagesFold, projection: ToolProjection
    ) -> Iterator[Part]:
        """The members after ``messages``."""
        config, is_step, keep = request.config, request.purpose == "step", self._memory.keep
        seq = request.tools_seq if is_step else request.dispatch.opened_seq
        yield keep(member("max_tokens", ecma.stringify(_max_tokens(request, inputs)), seq))
        for name, value in _thinking(self._effort(request, inputs)):
            yield keep(member(name, value, seq))
        text, text_seq = _system(request, messages)
        if text:
            yield keep(member("system", ecma.stringify(text), text_seq, "system"))
        if is_step and "temperature" in config:
            yield keep(member("temperature", ecma.stringify(config["temperature"]), seq))
        if is_step and "stop" in config:
            yield keep(member("stop_sequences", ecma.stringify(config["stop"]), seq))
        if projection.tools is not None:
            yield _OPEN_TOOLS
            yield from self._tools.encoded(projection, request.tools_seq)
            yield _CLOSE_TOOLS
        yield END

    def _effort(self, request: Request, inputs: UnloggedInputs) -> str:
        effort = request.config.get("reasoningEffort")
        if not isinstance(effort, str) and request.purpose != "step":
            effort = self._efforts.get(request.provider, request.model)
        if not isinstance(effort, str):
            effort = inputs.take(default_effort(inputs.deployment, request.provider, request.model)).value
        is_off = inputs.deployment.model(request.provider, request.model, "thinking").value == "disabled"
        if effort not in _EFFORTS or (is_off and effort != "off"):
            raise fails_locally(f"the route has no reasoning effort {effort!r}")
        return str(effort)


class _StepMessages:
    """The messages of a surface that grows, with the developer messages they hold."""

    def __init__(self, route: Route, images: ImageWriter | None) -> None:
        self.messages = MessagesFold(route, images)
        self.surface: Surface | None = None
        self.developers: set[int] = set()
        self._pushed = 0
        self._projection: ToolProjection | None = None
        self._written: list[int] = []

    @property
    def has_images(self) -> bool:
        """Whether images are written."""
        return self.messages.images is not None

    def note(self, surface: Surface) -> None:
        """Find the developer messages among the nodes not seen yet."""
        nodes = surface[len(self.surface) if self.surface is not None else 0 :]
        self.developers.update(node.seq for node in nodes if node.type == "developer/message")
        self.surface = surface

    def agrees(self, projection: ToolProjection) -> bool:
        """Whether the developer messages written so far are what a projection says."""
        old = self._projection
        if old is None or old is projection:
            return True
        return all(old.blocks.get(seq) == projection.blocks.get(seq) for seq in self._written)

    def push(self, projection: ToolProjection) -> None:
        """Take the nodes not taken yet."""
        assert self.surface is not None
        nodes = self.surface[self._pushed :]
        self.messages.push(derive_nodes(nodes, self.surface.marks), projection.blocks)
        self._written.extend(node.seq for node in nodes if node.type == "developer/message")
        self._pushed, self._projection = len(self.surface), projection


class _Tools:
    """Projects and encodes a session's tools; repeats the last result while nothing it depends on changes."""

    def __init__(self) -> None:
        self._fold = ToolHistoryFold()
        self._last: tuple[object, ...] = ()
        self._projection = ToolProjection(None, {})
        self._encoded: tuple[ToolProjection | None, int | None, tuple[Part, ...]] = (None, None, ())

    def mode(self, request: Request, inputs: UnloggedInputs) -> ToolMode:
        """The tool-update mode of the called route; recorded only where the body depends on it."""
        if not _takes_updates(request, inputs.deployment):
            return "none"
        self._fold.at(request.snapshot.tool_history)
        used = mode_of(request, inputs.deployment)
        if self._fold.has_updates or _has_odd_tools(request):
            used = inputs.take(used)
        return next((mode for mode in TOOL_MODES if mode == used.value), "none")

    def project(self, request: Request, mode: ToolMode, developers: Set[int]) -> ToolProjection:
        """What a request says about its tools."""
        history = None if request.purpose == "session-title" else self._fold.at(request.snapshot.tool_history)
        depends = (history, developers, len(developers), mode, request.tools, request.purpose)
        same = len(depends) == len(self._last) and all(map(_is_same, depends, self._last))
        if not same:
            self._last = depends
            self._projection = project_tools(mode, request.tools, history, developers)
        return self._projection

    def encoded(self, projection: ToolProjection, seq: int | None) -> tuple[Part, ...]:
        """The tools, one part each."""
        if self._encoded[0] is not projection or self._encoded[1] != seq:
            parts = tuple(
                element("tools", index, encode_tool(tool), tool["name"], seq, "tool")
                for index, tool in enumerate(projection.tools or ())
            )
            self._encoded = (projection, seq, parts)
        return self._encoded[2]


def _is_same(one: object, two: object) -> bool:
    return one is two or (isinstance(one, (int, str)) and one == two)


def route_of(request: Request, inputs: UnloggedInputs) -> Route:
    """What the encoding of messages depends on: the request context tells, if its model is the one called."""
    in_history = _in_history(request)
    legacy = inputs.deployment.release_rules(request.format_version).is_legacy_messages
    if in_history is not None:
        return Route(request.model, in_history, legacy)
    if request.purpose == "session-title":
        return Route(request.model, False, legacy)
    used = inputs.deployment.model(request.provider, request.model, "system_prompt_update", "none")
    return Route(request.model, inputs.take(used).value == "in-history", legacy)


def _in_history(request: Request) -> bool | None:
    """Whether the called route takes system updates in the history; None when its context is not the last one."""
    context = request.snapshot.request_context
    data = context.data if context is not None else None
    if not isinstance(data, dict) or data.get("model") != request.model:
        return None
    return bool(data.get("systemPromptUpdate") == "in-history")


def mode_of(request: Request, deployment: Deployment) -> Used:
    """The tool-update mode of a route, guessed from the request context where the deployment is silent."""
    guess = "addition-only" if _in_history(request) else "none"
    return deployment.model(request.provider, request.model, "tool_update", guess)


def _takes_updates(request: Request, deployment: Deployment) -> bool:
    """Whether a call can be told of changed tools."""
    rules = deployment.release_rules(request.format_version)
    return not rules.is_legacy_messages and request.purpose != "session-title"


def _has_odd_tools(request: Request) -> bool:
    """Whether the tools of the request header alone make the mode matter."""
    tools = request.tools or []
    return not tools or any(isinstance(tool, dict) and "deferLoading" in tool for tool in tools)


def alternatives(request: Request, deployment: Deployment) -> tuple[Used, ...]:
    """The tool-update modes that may be tried when a captured body differs; empty where none could help."""
    used = mode_of(request, deployment)
    if used.source != "default" or not _takes_updates(request, deployment):
        return ()
    has_updates = any(event.type == "developer/message" for event in request.snapshot.tool_history)
    if not has_updates and not _has_odd_tools(request):
        return ()
    return tuple(Used(used.name, mode, "capture") for mode in TOOL_MODES if mode != used.value)


def _max_tokens(request: Request, inputs: UnloggedInputs) -> Json:
    if "maxTokens" in request.config:
        return request.config["maxTokens"]
    used = inputs.deployment.model(request.provider, request.model, "max_tokens", DEFAULT_MAX_TOKENS)
    return inputs.take(used).value


def _thinking(effort: str) -> Iterator[tuple[str, bytes]]:
    if effort == "off":
        yield "thinking", b'{"type":"disabled"}'
    else:
        yield "thinking", b'{"type":"enabled"}'
        yield "output_config", b'{"effort":' + ecma.stringify(effort) + b"}"


def _system(request: Request, messages: MessagesFold) -> tuple[str, int | None]:
    """The top-level system text with its event."""
    text, seq = messages.system
    texts = [part for part in (request.system, text) if part and isinstance(part, str)]
    return "\n\n".join(texts), seq if text else request.system_seq


def _http_headers(request: Request, inputs: UnloggedInputs, betas: list[str]) -> tuple[tuple[str, str | None], ...]:
    """Names in the order sent; the key and the user id are never known. Source: spec wire-deepseek 5.5."""
    deployment = inputs.deployment
    version = inputs.take(deployment.harness_version(request.format_version)).value
    inputs.take(deployment.model(request.provider, request.model, "base_url", DEFAULT_MESSAGES_URL))
    home = "https://github.com/deepseek-ai/deepseek-harness"
    headers: list[tuple[str, str | None]] = [
        ("user-agent", f"deepseek-harness/{version} (+{home})"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("x-api-key", None),
        ("anthropic-version", "2023-06-01"),
    ]
    if betas:
        headers.append(("anthropic-beta", ",".join(betas)))
    headers.append(("x-deepseek-harness-user-id", deployment.look_up("harness", "user_id")))
    if request.session_header.id:
        headers.append(("x-deepseek-harness-session-id", request.session_header.id))
    if request.purpose == "compaction":
        headers.append(("x-deepseek-harness-compact", "1"))
    return tuple(headers)
