"""Coordinate search over the settings of a deployment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from dsh_audit.capture.exchange import Exchange
from dsh_audit.deployment import Deployment
from dsh_audit.events import Json
from dsh_audit.record import dataclass
from dsh_audit.request.neutral import Request
from dsh_audit.text.pointer import common_ends
from dsh_audit.wire.session import SessionEncoder

ABSENT: Any = object()
"""The value of a setting that the file leaves out."""

_MAX_PASSES = 4
_NAMED = "models"


@dataclass(frozen=True, slots=True)
class Row:
    """A request and the body that was captured for it."""

    request: Request
    body: bytes
    exchange: Exchange


@dataclass(slots=True)
class Setting:
    """One value to find.

    Args:
        path: keys in the deployment file; the key after ``models`` in a profile is a model id.
        value: the present one.
        candidates: all to try.
    """

    path: tuple[str, ...]
    value: Json
    candidates: tuple[Json, ...]

    @property
    def name(self) -> str:
        """Dotted path."""
        return ".".join(self.path)

    @property
    def is_set(self) -> bool:
        """Whether the file names it."""
        return self.value is not ABSENT

    @property
    def shown(self) -> Json:
        """The value, None when it is left out."""
        return self.value if self.is_set else None


def build_deployment(base: Mapping[str, Json], settings: Iterable[Setting]) -> dict[str, Json]:
    """The deployment file with the settings in it."""
    raw: dict[str, Json] = deepcopy(dict(base))
    for setting in settings:
        if setting.is_set:
            _put(raw, setting.path, setting.value)
    return raw


def _put(target: dict[str, Json], path: tuple[str, ...], value: Json) -> None:
    key, *rest = path
    if not rest:
        target[key] = value
    elif key == _NAMED and path[0] == key and "api" in target:
        entries = target.setdefault(key, [])
        entry = next((item for item in entries if item["id"] == rest[0]), None)
        if entry is None:
            entry = {"id": rest[0]}
            entries.append(entry)
        if len(rest) > 1:
            _put(entry, tuple(rest[1:]), value)
    else:
        _put(target.setdefault(key, {}), tuple(rest), value)


class Search:
    """Changes settings as long as more bodies agree.

    Args:
        deployment: what is known already.
        rows: requests with their captured bodies.
        settings: changed in place.
    """

    def __init__(self, deployment: Deployment, rows: list[Row], settings: list[Setting]) -> None:
        self.settings = settings
        self._deployment = deployment
        self._rows = rows

    def run(self) -> None:
        """Find the best values."""
        best = self._score()
        for _ in range(_MAX_PASSES):
            before = best
            for setting in self.settings:
                if best[0] == len(self._rows):
                    return
                best = self._improve(setting, best)
            if best == before:
                return

    def judge(self) -> list[tuple[Setting, tuple[Json, ...]]]:
        """Each setting with the other values that give the same bodies; needless compat fields are dropped."""
        best = self._score()
        judged = []
        for setting in self.settings:
            if "compat" in setting.path and setting.is_set and self._with(setting, ABSENT) >= best:
                setting.value = ABSENT
            others = [value for value in setting.candidates if value is not setting.value and value != setting.value]
            equal = [value for value in others if self._with(setting, value) >= best]
            judged.append((setting, tuple(None if value is ABSENT else value for value in equal)))
        return judged

    def _improve(self, setting: Setting, best: tuple[int, float]) -> tuple[int, float]:
        for value in setting.candidates:
            score = self._with(setting, value)
            if score > best:
                setting.value, best = value, score
        return best

    def _with(self, setting: Setting, value: Json) -> tuple[int, float]:
        kept, setting.value = setting.value, value
        score = self._score()
        setting.value = kept
        return score

    def _score(self) -> tuple[int, float]:
        """(identical bodies, how far the others agree)."""
        raw = build_deployment(self._deployment.raw, self.settings)
        deployment = Deployment(raw, self._deployment.constants, self._deployment.catalog)
        identical, agreement = 0, 0.0
        encoder = SessionEncoder(deployment)
        for row in self._rows:
            encoded = encoder.encode(row.request)
            body = b"" if encoded.body is None else encoded.body.to_bytes()
            if body == row.body:
                identical += 1
            else:
                agreement += _agreement(body, row.body)
        return identical, agreement


def _agreement(one: bytes, two: bytes) -> float:
    """The share of two texts that agrees at their start and at their end."""
    if not one or not two:
        return 0.0
    return sum(common_ends(one, two)) / max(len(one), len(two))
