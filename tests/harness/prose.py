"""Does recorded data repeat prose of the harness? Long runs of text are looked up in the runtime executables."""

from __future__ import annotations

import hashlib
import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from tests.harness.runtimes import RUNTIMES, ensure_runtime, executable

Json = Any

WINDOW = 80
"""Characters; shorter runs are framing that the data cannot do without."""
STEP = 20

FRAMING = {
    "306ffa304ad5eee1b9a19a5744b7bf665eac77c4fd154ad3eed572987a534da1",  # before a compaction summary, 300 characters
    "a7942b2ad8470620a5ebe11d414f48b70e8d77b6c7c923f110c925734c0554ab",  # before a runtime context, 84 characters
    "2768785286467c6bf33ce81c59e0613450281b1275a3890af46b09b687296872",  # in the text before an image, 90 characters
    "2e223c5b20f2a0da5bbe6e750b3dab3ff439bd18a3786c1535e23add9e4223a3",  # the same without a path, 86 characters
}
"""SHA-256 of lines that the harness itself puts into logs and bodies and that no composition avoids."""


def find_prose(folder: Path, own_text: str) -> dict[str, list[str]]:
    """Windows of text below `folder` that a runtime executable contains and `own_text` does not, by file."""
    found: dict[str, list[str]] = {}
    seen: dict[str, bool] = {}
    with _Executables() as programs:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            for window in _windows(file):
                if window not in seen:
                    seen[window] = window not in own_text and programs.contain(window)
                if seen[window]:
                    found.setdefault(str(file.relative_to(folder)), []).append(window)
    return found


class _Executables:
    """All runtime executables as one text to search."""

    def __enter__(self) -> _Executables:
        files = [executable(ensure_runtime(version)) for version in RUNTIMES]
        self._handles = [file.open("rb") for file in files]
        self._maps = [mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) for handle in self._handles]
        return self

    def __exit__(self, *_: object) -> None:
        for data, handle in zip(self._maps, self._handles, strict=True):
            data.close()
            handle.close()

    def contain(self, window: str) -> bool:
        """Whether any of them holds the window."""
        needle = window.encode("utf-8", "surrogatepass")
        return any(data.find(needle) >= 0 for data in self._maps)


_INSIDE = re.compile(r"(.{90})\.(?:png|jpg|webp|gif) before editing\.|(?<=px\.)(.{86})")
"""Where framing stands inside a line that also holds names and sizes."""


def _is_framing(text: str) -> bool:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() in FRAMING


def _windows(file: Path) -> Iterator[str]:
    for text in _strings(file):
        for run in re.split(r'[\n"`]', text):
            if len(run) < WINDOW or _is_framing(run):
                continue
            run = _INSIDE.sub(lambda found: "" if _is_framing(found[1] or found[2]) else found[0], run)
            for at in range(0, len(run) - WINDOW + 1, STEP):
                if len(set(run[at : at + WINDOW])) > 8:  # else fill bytes
                    yield run[at : at + WINDOW]


def _strings(file: Path) -> Iterator[str]:
    data = file.read_bytes()
    if file.suffix == ".zstd":
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    for row in data.decode("utf-8", "replace").split("\n") if file.suffix != ".json" else [data.decode()]:
        try:
            yield from _leaves(json.loads(row))
        except ValueError:
            yield row


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for member in value:
            yield from _leaves(member)
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _leaves(member)
