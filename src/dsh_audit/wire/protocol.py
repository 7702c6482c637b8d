"""Which wire protocol a request was sent in.

The release decides, except in 0.1.6, where a setting does that is not logged. There the replay state of the
answer is the evidence, else the deployment file or a capture. Source: spec wire-deepseek 1, session-log 1.
"""

from __future__ import annotations

from dsh_audit.deployment import Used
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.releases import protocols_of_format
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import UnloggedInputs

CHAT = "deepseek-chat-completions"
MESSAGES = "deepseek-messages"
PI_AI = "pi-ai"

_BY_SETTING = {"chat-completions": CHAT, "messages": MESSAGES}
_WHY = "the log does not say which protocol the request was sent in; {} is assumed"


@dataclass(frozen=True, slots=True)
class Choice:
    """A protocol.

    Args:
        protocol: its name; of a route of adapter llm-pi-ai the api it speaks, where that is known.
        why: why it is a guess; None when there is evidence.
    """

    protocol: str
    why: str | None = None


class ProtocolChooser:
    """Chooses for the requests of one session in order; remembers what the answers of each route showed."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[str, Json]] = {}

    def choose(self, request: Request, inputs: UnloggedInputs) -> Choice:
        """The protocol of a request; what it rests on beyond the log is recorded in ``inputs``."""
        answer = self._answer(request)
        adapter = inputs.deployment.adapter(request.provider)
        if adapter.value == "llm-pi-ai" or (adapter.source == "default" and answer.get("kind") == PI_AI):
            return _pi_ai(request, inputs, adapter, answer)
        spoken = protocols_of_format(request.format_version)
        if len(spoken) == 1:
            return Choice(_BY_SETTING[spoken.pop()])
        return _by_setting(request, inputs, answer if self._is_answered(request) else None)

    def _is_answered(self, request: Request) -> bool:
        return request.provider in self._answers

    def _answer(self, request: Request) -> dict[str, Json]:
        """The replay state's response of this call's own answer, else of the route's last one."""
        if isinstance(request.dispatch.replay, dict):
            self._answers[request.provider] = request.dispatch.replay
        return self._answers.get(request.provider, {})


def _pi_ai(request: Request, inputs: UnloggedInputs, adapter: Used, answer: dict[str, Json]) -> Choice:
    if adapter.source != "default":
        inputs.take(adapter)
    api = inputs.deployment.model(request.provider, request.model, "api")
    if api.value is not None:
        return Choice(str(inputs.take(api).value))
    spoken = answer.get("api")
    return Choice(spoken if isinstance(spoken, str) else PI_AI)


def _by_setting(request: Request, inputs: UnloggedInputs, answer: dict[str, Json] | None) -> Choice:
    """In a format whose releases differ, or leave it to a setting: 0.1.5 speaks chat completions, 0.1.6 either."""
    name, value = _setting(request, inputs)
    if value is not None:
        return Choice(_BY_SETTING[value])
    if answer is not None:
        return Choice(MESSAGES if answer.get("kind") == MESSAGES else CHAT)
    release = inputs.deployment.harness_version(request.format_version)
    rules = inputs.deployment.release_rules(request.format_version)
    if release.source == "deployment" and len(rules.protocols) == 1:
        inputs.take(release)
        return Choice(_BY_SETTING[rules.protocols[0]])
    guess = rules.protocols[0]
    inputs.take(Used(name, guess, "default"))
    return Choice(_BY_SETTING[guess], _WHY.format(guess))


def _setting(request: Request, inputs: UnloggedInputs) -> tuple[str, str | None]:
    """Name of the protocol setting, and its value where the deployment or a capture gives one."""
    used = inputs.deployment.model(request.provider, request.model, "protocol")
    name = used.name if used.value is not None else f"providers.{request.provider}.protocol"
    used = inputs.assumed.get(name, used)
    return name, None if used.value is None else str(inputs.take(used).value)


def protocol_alternatives(request: Request, current: Choice) -> tuple[tuple[Used, str], ...]:
    """Settings to try when a choice was a guess, each with its protocol; the guess itself comes first."""
    if current.why is None:
        return ()
    name = f"providers.{request.provider}.protocol"
    ordered = sorted(_BY_SETTING.items(), key=lambda item: item[1] != current.protocol)
    return tuple((Used(name, setting, "capture"), protocol) for setting, protocol in ordered)
