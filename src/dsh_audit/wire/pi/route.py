"""What a deployment says about a pi-ai route, and which of it went into a request.

Source: spec wire-pi-ai 2, 8.
"""

from __future__ import annotations

from collections.abc import Mapping

from dsh_audit.deployment import Deployment, Used
from dsh_audit.errors import DeploymentError
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.wire.adapter import CannotEncodeError, UnloggedInputs
from dsh_audit.wire.pi.profile import Catalogue, resolve_model
from dsh_audit.wire.pi.refusal import PiRefusedError
from dsh_audit.wire.pi.settings import CREDENTIALS
from dsh_audit.wire.pi.versions import pi_version_of

_MODEL_INPUTS = ("contextWindow", "maxTokens", "input", "reasoning", "thinkingLevelMap", "compat")


@dataclass(frozen=True, slots=True)
class Route:
    """The unlogged inputs of one request; ``routes`` are those that the same adapter owns."""

    version: str
    profile: dict[str, Json]
    model: dict[str, Json]
    key: str
    env: Mapping[str, str]
    routes: frozenset[str]


def find_route(request: Request, inputs: UnloggedInputs) -> Route:
    """Collect the inputs of a request and record each in ``inputs``.

    Raises:
        CannotEncodeError: they do not make a request.
    """
    deployment, provider = inputs.deployment, request.provider
    version = _version(request, inputs)
    profile = deployment.look_up("providers", provider, "profile")
    if not isinstance(profile, dict):
        raise CannotEncodeError(f'the deployment has no profile for provider "{provider}" (llm-pi-ai)')
    try:
        model = resolve_model(provider, request.model, profile, _catalogue(deployment, provider))
    except DeploymentError as error:
        raise CannotEncodeError(error.message) from None
    _note_model(request, inputs, profile, model)
    env = deployment.look_up("pi_ai", "env") or {}
    _note_retention(provider, inputs, profile, env)
    return Route(version, profile, model, _key(provider, model, inputs), env, _routes(provider, inputs))


def _used(name: str, value: Json, is_given: bool) -> Used:
    return Used(name, value, "deployment" if is_given else "default")


def _version(request: Request, inputs: UnloggedInputs) -> str:
    given = inputs.deployment.look_up("pi_ai", "version")
    if given is not None:
        return str(inputs.take(Used("pi_ai.version", given, "deployment")).value)
    harness = inputs.deployment.harness_version(request.format_version)
    try:
        version = pi_version_of(str(harness.value))
    except PiRefusedError as refusal:
        raise CannotEncodeError(refusal.message) from None
    return str(inputs.take(Used("pi_ai.version", version, harness.source)).value)


def _catalogue(deployment: Deployment, provider: str) -> Catalogue | None:
    found = (deployment.catalog or {}).get(provider)
    return found if isinstance(found, Catalogue) else None


def _note_model(request: Request, inputs: UnloggedInputs, profile: dict[str, Json], model: dict[str, Json]) -> None:
    place = f"providers.{request.provider}.profile"
    inputs.take(_used(f"{place}.api", model["api"], bool(profile.get("api"))))
    if model["api"] == "openai-completions":
        # Detection looks at the address, so it is part of the body.
        inputs.take(Used(f"{place}.baseURL", model["baseUrl"], "deployment"))
    entries = profile.get("models") or []
    own: dict[str, Json] = next((entry for entry in entries if entry.get("id") == request.model), {})
    own = own or (profile.get("modelOverrides") or {}).get(request.model) or {}
    for name in _MODEL_INPUTS:
        if name in model:
            configured = name in own or (name in ("reasoning", "thinkingLevelMap") and "reasoningEfforts" in own)
            is_given = configured or name == "compat"
            inputs.take(_used(f"{place}.models.{request.model}.{name}", model[name], is_given))


def _note_retention(provider: str, inputs: UnloggedInputs, profile: dict[str, Json], env: Mapping[str, str]) -> None:
    if profile.get("cacheRetention"):
        inputs.take(Used(f"providers.{provider}.profile.cacheRetention", profile["cacheRetention"], "deployment"))
    else:
        value = env.get("PI_CACHE_RETENTION")
        inputs.take(_used("pi_ai.env.PI_CACHE_RETENTION", value, value is not None))


def _key(provider: str, model: dict[str, Json], inputs: UnloggedInputs) -> str:
    given = inputs.deployment.look_up("providers", provider, "credential")
    if model["api"] != "anthropic-messages" and provider != "openai" and given is None:
        return CREDENTIALS["api-key"]
    kind = inputs.take(_used(f"providers.{provider}.credential", given or "api-key", given is not None)).value
    return CREDENTIALS.get(str(kind), "")


def _routes(provider: str, inputs: UnloggedInputs) -> frozenset[str]:
    """The routes that the same adapter owns: the listed ones, else those that the deployment gives to pi-ai."""
    listed = inputs.deployment.look_up("pi_ai", "routes")
    if isinstance(listed, list):
        inputs.take(Used("pi_ai.routes", listed, "deployment"))
        return frozenset(map(str, listed))
    providers = inputs.deployment.look_up("providers") or {}
    routes = [
        name
        for name, entry in providers.items()
        if isinstance(entry, Mapping) and (entry.get("adapter") == "llm-pi-ai" or "profile" in entry)
    ]
    routes = sorted({*routes, provider})
    inputs.take(Used("pi_ai.routes", routes, "default"))
    return frozenset(routes)
