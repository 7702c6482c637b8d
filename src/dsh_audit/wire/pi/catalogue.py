"""Reading the model catalogue out of an installed pi-ai package; no copy of it is shipped here.

The package holds one JSON file a provider (api → key → entry) and, in code, a default address for some.
Source: wire-pi-ai 2, 8; pi-ai 0.82.1 dist/providers.
"""

from __future__ import annotations

import re
from pathlib import Path

from dsh_audit.errors import DeploymentError
from dsh_audit.events import Json
from dsh_audit.profile_shapes import MODEL, find_odd
from dsh_audit.text import ecma
from dsh_audit.wire.pi.profile import Catalogue

_PACKAGE = Path("node_modules") / "@earendil-works" / "pi-ai"
_BASE_URL = re.compile(r'\bbaseUrl: "([^"\\]+)"')
_KEY = re.compile(r"[a-z0-9][a-z0-9.-]*")


def parse_catalogue(data: bytes, provider_code: str = "") -> Catalogue:
    """The catalogue of one provider.

    Args:
        data: its data file.
        provider_code: its JavaScript module, which names the default address.

    Raises:
        DeploymentError: the data have another shape.
    """
    try:
        groups = ecma.parse(data)
        entries = [_entry(entry) for group in groups.values() for entry in group.values()]
        models = {entry["id"]: entry for entry in entries if entry.get("type", "chat") == "chat"}
    except (ValueError, TypeError, AttributeError) as error:
        raise DeploymentError("the catalogue file is not one of pi-ai") from error
    found = _BASE_URL.search(provider_code)
    return Catalogue(models, found[1] if found else None)


def _entry(entry: Json) -> dict[str, Json]:
    if not isinstance(entry, dict) or find_odd(entry, MODEL, "id", "api") is not None:
        raise ValueError("not a model")
    return entry


def read_catalog(directory: Path, provider: str) -> Catalogue | None:
    """The catalogue of one provider key; None when the package does not know that key.

    Args:
        directory: the pi-ai package, or the directory whose ``node_modules`` hold it.

    Raises:
        DeploymentError: there is no pi-ai package, or its files have another shape.
    """
    providers = _package(directory) / "dist" / "providers"
    data = providers / "data" / f"{provider}.json"
    if not _KEY.fullmatch(provider) or not data.is_file():
        return None
    code = providers / f"{provider}.js"
    source = _read(code).decode("utf-8", "replace") if code.is_file() else ""
    return parse_catalogue(_read(data), source)


def read_version(directory: Path) -> str:
    """The version of an installed pi-ai package.

    Raises:
        DeploymentError: there is no such package.
    """
    try:
        package = ecma.parse(_read(_package(directory) / "package.json"))
    except ecma.EcmaSyntaxError as error:
        raise DeploymentError(f"{directory}: package.json is not JSON: {error}") from None
    version = package.get("version") if isinstance(package, dict) else None
    if not isinstance(version, str):
        raise DeploymentError(f"{directory} names no pi-ai version")
    return version


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DeploymentError(f"{path}: cannot be read: {error.strerror}") from None


def _package(directory: Path) -> Path:
    for place in (directory, directory / _PACKAGE):
        if (place / "dist" / "providers" / "data").is_dir() and (place / "package.json").is_file():
            return place
    raise DeploymentError(f"{directory} holds no pi-ai package", hint="name the directory that holds its package.json")
