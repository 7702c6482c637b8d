"""What a log cannot know about its requests: the deployment, with defaults and their provenance.

A log records neither the harness version, nor the base URL, nor model capabilities, nor plugin packages. They come
from an optional file; every default that a request falls back to is listed beside the claim (``Used``).
Source: spec wire-deepseek 10, dispatch 10.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from dsh_audit.errors import DeploymentError
from dsh_audit.events import Json
from dsh_audit.profile_shapes import PROFILE, find_odd
from dsh_audit.record import dataclass
from dsh_audit.releases import ReleaseRules, rules_of, rules_of_format
from dsh_audit.text.budget import check_admitted

if TYPE_CHECKING:
    from dsh_audit.attachments.shown import ShownImages
    from dsh_audit.attachments.store import AttachmentStore

Protocol = Literal[
    "deepseek-chat-completions",
    "deepseek-messages",
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
    "azure-openai-responses",
]

DEFAULT_EFFORT = "high"
DEFAULT_CHAT_URL = "https://api.deepseek.com"
DEFAULT_MESSAGES_URL = "https://api.deepseek.com/anthropic"

_MAX_TOML = 4_000_000


@dataclass(frozen=True, slots=True)
class Used:
    """A value that is not in the log and went into a request.

    Args:
        name: path in the deployment file, dotted.
        value: what was used.
        source: ``deployment``, ``default`` or ``capture``.
    """

    name: str
    value: Json
    source: Literal["deployment", "default", "capture"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A parsed deployment file (schemas/deployment.schema.json); empty when the user gave none.

    Args:
        raw: the parsed file.
        constants: long fixed texts by name, from ``--constant NAME=FILE`` or the file.
        catalog: resolved model entries by api and id, read from an installed package (``--catalog``).
        attachments: stored images; None where no home is known.
        shown: what captures show of images.
    """

    raw: Mapping[str, Json] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    catalog: Mapping[str, Json] | None = None
    attachments: AttachmentStore | None = None
    shown: ShownImages | None = None

    def look_up(self, *path: str) -> Json:
        """The value at a path of keys, None when absent."""
        value: Json = self.raw
        for key in path:
            if not value or not isinstance(value, Mapping):
                return None
            value = value.get(key)
        return value

    def get(self, *path: str, default: Json = None) -> Used:
        """The value at a path or the default, with where it came from."""
        value = self.look_up(*path)
        name = ".".join(path)
        return Used(name, default, "default") if value is None else Used(name, value, "deployment")

    def harness_version(self, format_version: int) -> Used:
        """Release of the harness that sent the requests of a log of this format.

        A release that never wrote this format says nothing about it (the log was migrated since).
        """
        named = self.get("harness", "version")
        if isinstance(named.value, str):
            rules = rules_of(named.value)
            if rules is None or rules.format_version == format_version:
                return named
        return Used("harness.version", rules_of_format(format_version).assumed, "default")

    def release_rules(self, format_version: int) -> ReleaseRules:
        """The rules of that release."""
        return rules_of(str(self.harness_version(format_version).value)) or rules_of_format(format_version)

    def model(self, provider: str, model: str, key: str, default: Json = None) -> Used:
        """A capability of one route: ``providers.<provider>.models.<model>.<key>``, else the provider's own key."""
        own = self.get("providers", provider, "models", model, key)
        if own.value is not None:
            return own
        shared = self.get("providers", provider, key)
        return shared if shared.value is not None else Used(own.name, default, "default")

    def adapter(self, provider: str) -> Used:
        """``llm-deepseek`` unless the deployment says ``llm-pi-ai`` for the route."""
        return self.get("providers", provider, "adapter", default="llm-deepseek")


def parse_deployment(
    data: bytes,
    *,
    name: str,
    schema: Mapping[str, Json],
    constants: Mapping[str, str] | None = None,
    read_constant: Callable[[str], str] | None = None,
) -> Deployment:
    """Parse a TOML or JSON deployment file.

    Args:
        data: the file.
        name: as the user named it; ``.json`` selects JSON, anything else TOML.
        schema: schemas/deployment.schema.json.
        constants: given on the command line; they win over the file's.
        read_constant: reads a constant that the file names by path.

    Raises:
        DeploymentError: not parseable, or a key or value that the schema does not allow.
    """
    import tomllib

    try:
        check_admitted(data)
        if len(data) > _MAX_TOML and not name.endswith(".json"):
            raise ValueError(f"more than {_MAX_TOML} bytes of TOML; JSON may be longer")
        text = data.decode("utf-8")
        raw = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeploymentError(f"{name}: not a valid deployment file: {error}") from None
    problem = _find_problem(raw, schema)
    if problem is not None:
        raise DeploymentError(f"{name}: {problem}", hint="see schemas/deployment.schema.json")
    named = dict(constants or {})
    for constant, path in (raw.get("constants") or {}).items():
        if constant not in named and read_constant is not None:
            named[constant] = read_constant(path)
    return Deployment(raw, named)


def _find_problem(raw: Json, schema: Mapping[str, Json]) -> str | None:
    """The first place of a deployment that the schema, or what reads it, does not allow."""
    from jsonschema import Draft202012Validator  # a command without a deployment file needs none of it

    errors = sorted(Draft202012Validator(schema).iter_errors(raw), key=lambda error: list(map(str, error.path)))
    if errors:
        place = "/".join(map(str, errors[0].path)) or "top level"
        message = errors[0].message if len(errors[0].message) < 200 else errors[0].message[:200] + "…"
        return f"{place}: {message}"
    for provider, entry in (raw.get("providers") or {}).items():
        place = f"providers/{provider}/profile"
        profile = entry.get("profile") or {}
        odd = find_odd(profile, PROFILE) or _find_foreign(profile)
        if odd is not None:
            return f"{place}: {odd}"
    return None


def _find_foreign(value: Json, place: str = "") -> str | None:
    """A value that JSON does not have: TOML has dates, times, inf and nan."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found = (_find_foreign(item, f"{place}/{name}" if place else str(name)) for name, item in items)
        return next((one for one in found if one is not None), None)
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return None if value is None or is_number or isinstance(value, str) else f"{place} is no JSON value"
