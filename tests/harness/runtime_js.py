"""The JavaScript inside an official runtime wheel, unpacked once outside the repository.

The executable of a wheel carries an archive of its packages and a manifest with offsets. Unpacked they run
under the Node of the oracle, so the very adapter of that release can be called function by function.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import tempfile
from pathlib import Path

from tests.harness.runtimes import ensure_runtime, executable

_SUFFIXES = (".js", ".mjs", ".cjs", ".json")
_STAMP = ".unpacked"


def ensure_runtime_js(version: str) -> Path:
    """The directory whose ``node_modules`` are those of a runtime; unpacked on first use."""
    installed = ensure_runtime(version)
    target = installed.parent / f"{version}-js"
    if not (target / _STAMP).is_file():
        shutil.rmtree(target, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{version}-js-", dir=installed.parent))
        _unpack(executable(installed).read_bytes(), staging)
        (staging / _STAMP).touch()
        staging.rename(target)
    adapter = next(target.rglob("@deepseek-ai/dsh-llm-pi-ai/package.json"))
    return adapter.parents[3]


def _unpack(binary: bytes, target: Path) -> None:
    manifest = json.loads(_asset(binary, b"__pkg_manifest__"))
    archive = _asset(binary, b"__pkg_archive__")
    for name, (offset, size) in manifest["offsets"].items():
        if name.endswith(_SUFFIXES):
            place = _inside(target, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(archive[offset : offset + size])
    for name, pointed in manifest["symlinks"].items():
        place, source = _inside(target, name), _inside(target, pointed)
        if source.exists() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(os.path.relpath(source, place.parent))


def _asset(binary: bytes, name: bytes) -> bytes:
    """An asset: length and name, length and data, little endian."""
    for found in re.finditer(re.escape(struct.pack("<Q", len(name)) + name), binary):
        (size,) = struct.unpack_from("<Q", binary, found.end())
        if found.end() + 8 + size <= len(binary):
            return binary[found.end() + 8 : found.end() + 8 + size]
    raise ValueError(f"the executable holds no {name.decode()}")


def _inside(target: Path, name: str) -> Path:
    parts = [part for part in name.split("/") if part]
    if ".." in parts:
        raise ValueError(name)
    return target.joinpath(*parts)
