"""What a log tells about an adapter's own defaults, learned from the request headers seen so far."""

from __future__ import annotations

from dsh_audit.deployment import DEFAULT_EFFORT, Deployment, Used
from dsh_audit.events import Event, Json


class LearnedEfforts:
    """The reasoning effort that the adapter fills in by itself, by route. Source: spec wire-deepseek 8."""

    def __init__(self) -> None:
        self._efforts: dict[tuple[str, str], str] = {}

    def learn(self, request_header: Event | None) -> None:
        """Take note of a ``request/header`` event whose effort was filled in."""
        header: dict[str, Json] = request_header.data["header"] if request_header is not None else {}
        if (header.get("adapterDefaults") or {}).get("reasoningEffort") is True:
            config = header["config"]
            if isinstance(config.get("reasoningEffort"), str):
                self._efforts[config["provider"], config["model"]] = config["reasoningEffort"]

    def get(self, provider: str, model: str) -> str | None:
        """The default of a route, None when no header showed it."""
        return self._efforts.get((provider, model))


def default_effort(deployment: Deployment, provider: str, model: str) -> Used:
    """The effort that a route uses when a call names none, as far as the deployment says."""
    used = deployment.model(provider, model, "default_effort")
    if used.value is not None:
        return used
    thinking = deployment.model(provider, model, "thinking")
    if thinking.value == "disabled":
        return Used(thinking.name, "off", thinking.source)
    return Used(used.name, DEFAULT_EFFORT, "default")
