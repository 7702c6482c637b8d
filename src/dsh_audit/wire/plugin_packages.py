"""``dsh_plugin_packages``: the active plugin packages, which no log records. Source: spec wire-deepseek 9.2."""

from __future__ import annotations

from collections.abc import Iterable

from dsh_audit.events import Json
from dsh_audit.text import ecma

FIELD = "dsh_plugin_packages"


def encode_packages(packages: Iterable[dict[str, Json]]) -> bytes:
    """The value for a list of packages, each ``name`` and perhaps ``version``, in the harness's order."""
    entries = [{key: package[key] for key in ("name", "version") if key in package} for package in packages]
    unique = {ecma.stringify(entry): entry for entry in entries}
    return ecma.stringify({"version": 1, "packages": sorted(unique.values(), key=_order)})


def _order(package: dict[str, Json]) -> tuple[bytes, bytes]:
    return ecma.utf16_key(package["name"]), ecma.utf16_key(package.get("version", ""))


def parse_packages(value: bytes) -> tuple[list[dict[str, Json]], str | None]:
    """The packages of a captured value, with what is wrong about it (None when it is as a release writes it)."""
    try:
        parsed = ecma.parse(value)
    except ecma.EcmaSyntaxError as error:
        return [], f"not JSON at byte {error.at}"
    packages = parsed.get("packages") if isinstance(parsed, dict) else None
    if not isinstance(packages, list):
        return [], "not an object with a list of packages"
    if not all(map(_is_package, packages)):
        return [], "an entry is not a name with an optional version"
    if list(parsed) != ["version", "packages"] or parsed["version"] != 1:
        return packages, "not version 1 with the members version and packages"
    if encode_packages(packages) != value:
        return packages, "not sorted by name and version, or not printed as the harness prints it"
    return packages, None


def _is_package(entry: Json) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    return entry.keys() <= {"name", "version"} and isinstance(entry.get("version", ""), str)
