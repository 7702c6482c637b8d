"""The golden case: one session's requests as structure and digests (schemas/golden.schema.json).

Messages are kept in *threads*, append-only lists that successive requests share: a request is the first ``count``
messages of one thread. Tool lists are kept once each. So a case grows with what is new, not with its requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, ClassVar

from dsh_audit.errors import AuditError, UsageError
from dsh_audit.events import Json
from dsh_audit.golden.normalise import Normaliser
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.text.to_json import to_json

SCHEMA = "dsh-audit/golden/1"


class GoldenError(AuditError):
    """A golden file could not be read."""


@dataclass(frozen=True, slots=True)
class PinnedValue:
    """One tool, message or system text.

    Args:
        name: of a tool, role of a message, ``system`` for a system text.
        size: bytes of its JSON text, normalised.
        sha256: of that text.
        parts: JSON pointer of each leaf → start of the SHA-256 of its text; the first ``MAX_PARTS``.
        type: of the event a message comes from; None for tools.
        seq: of the event in the recorded log; not compared.
        kinds: content blocks of a message, with the names of tool calls.
        source: kind of source of a message, as logged; not compared.
        value: the normalised value itself, in full cases only.
    """

    name: str
    size: int
    sha256: str
    parts: Mapping[str, str] = field(default_factory=dict)
    type: str | None = None
    seq: int | None = None
    kinds: tuple[str, ...] = ()
    source: str | None = None
    value: Json = None

    JSON: ClassVar = "name size sha256 type? seq? kinds? source? parts value?"


@dataclass(frozen=True, slots=True)
class PinnedRequest:
    """One request.

    Args:
        index, kind, turn, step, attempt: as in ``requests``.
        provider, model, protocol, claim: as in ``requests``.
        settings: of the request header; long texts as digests.
        system: index into the case's system texts (formats 0 to 2); None elsewhere, where it is a message.
        tools: index into the case's tool lists; None without tools.
        thread, count: the messages are the first ``count`` of this thread.
        constant: name of the fixed text sent as the last message.
        options: top-level members of the body other than tools, system and messages; long ones as digests.
        body_size, body_sha256: of the base body, normalised where normalisers are declared; None without a body.
        verified: verdict of the capture it was recorded with.
    """

    index: int
    kind: str
    turn: int | None
    step: int | None
    attempt: int | None
    provider: str
    model: str
    protocol: str
    claim: str
    settings: Mapping[str, Json]
    system: int | None
    tools: int | None
    thread: int
    count: int
    constant: str | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    body_size: int | None = None
    body_sha256: str | None = None
    verified: str | None = None

    JSON: ClassVar = (
        "index kind turn step attempt provider model protocol claim settings system tools messages constant? options "
        "body verified?"
    )

    @property
    def messages(self) -> dict[str, int]:
        """Where its messages are."""
        return {"thread": self.thread, "count": self.count}

    @property
    def body(self) -> dict[str, Json] | None:
        """Size and digest of its body."""
        return None if self.body_sha256 is None else {"size": self.body_size, "sha256": self.body_sha256}

    @property
    def label(self) -> tuple[str, int | None, int | None, int | None]:
        """What the request is in its run."""
        return self.kind, self.turn, self.step, self.attempt


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """Everything that is pinned about one session.

    Args:
        log: path of the log or session relative to the golden file; None where it must be named with ``--log``.
        session_id, format_version: of the recorded log; not compared.
        deployment: path of the deployment file relative to the golden file.
        recorded_by: release that recorded it; not compared.
        full: values are kept beside their digests.
        normalisers: in order.
        assumed: deployment values that a capture proved while the case was recorded, by name.
        findings: code → number of warnings and errors about the log.
        systems: system texts.
        tools: tool lists.
        threads: message lists.
    """

    log: str | None
    session_id: str
    format_version: int
    deployment: str | None
    recorded_by: str
    full: bool
    normalisers: tuple[Normaliser, ...]
    assumed: Mapping[str, Json]
    findings: Mapping[str, int]
    systems: tuple[PinnedValue, ...]
    tools: tuple[tuple[PinnedValue, ...], ...]
    threads: tuple[tuple[PinnedValue, ...], ...]
    requests: tuple[PinnedRequest, ...]


def render_case(case: GoldenCase) -> bytes:
    """The golden file: JSON with one line a request, tool and message, so that text diffs read well."""
    head: dict[str, Any] = {
        "schema": SCHEMA,
        "recorded_by": case.recorded_by,
        "log": {"path": case.log, "session_id": case.session_id, "format_version": case.format_version},
        "deployment": case.deployment,
        "full": case.full,
        "normalisers": to_json(case.normalisers),
        "assumed": dict(case.assumed),
        "findings": dict(case.findings),
    }
    lines = [f"  {ecma.stringify_text(name)}: {ecma.stringify_text(value)}" for name, value in head.items()]
    lines.append(f'  "requests": {_rows(to_json(case.requests))}')
    lines.append(f'  "systems": {_rows(to_json(case.systems))}')
    lines.append(f'  "tools": {_lists(case.tools)}')
    lines.append(f'  "threads": {_lists(case.threads)}')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace")


def _rows(rows: Sequence[Json], indent: str = "    ") -> str:
    if not rows:
        return "[]"
    inner = ",\n".join(indent + ecma.stringify_text(row) for row in rows)
    return f"[\n{inner}\n{indent[2:]}]"


def _lists(lists: Sequence[Sequence[PinnedValue]]) -> str:
    if not lists:
        return "[]"
    inner = ",\n".join("    " + _rows(to_json(items), " " * 6) for items in lists)
    return f"[\n{inner}\n  ]"


def parse_case(data: bytes, *, name: str) -> GoldenCase:
    """Read a golden file.

    Args:
        name: as the user knows the file.

    Raises:
        GoldenError: not a golden file of this format.
    """
    try:
        raw = ecma.parse(data)
    except ecma.EcmaSyntaxError as error:
        raise GoldenError(f"{name}: not a golden file: {error}", hint="merge conflicts leave such files") from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        hint = "record the case again, or use the release that wrote it"
        raise GoldenError(f"{name}: schema {schema!r} is not {SCHEMA}", hint=hint)
    try:
        return _case(raw)
    except UsageError as error:
        raise GoldenError(f"{name}: {error.message}", hint=error.hint) from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise GoldenError(f"{name}: a member is missing or malformed ({type(error).__name__}: {error})") from None


def _case(raw: dict[str, Json]) -> GoldenCase:
    case = GoldenCase(
        log=_relative(raw["log"]["path"]),
        session_id=_of(raw["log"]["session_id"], str),
        format_version=_of(raw["log"]["format_version"], int),
        deployment=_relative(raw["deployment"]),
        recorded_by=_of(raw["recorded_by"], str),
        full=_of(raw["full"], bool),
        normalisers=tuple(map(_normaliser, raw["normalisers"])),
        assumed=_of(raw["assumed"], dict),
        findings=_of(raw["findings"], dict),
        systems=tuple(map(_value, raw["systems"])),
        tools=tuple(tuple(map(_value, items)) for items in raw["tools"]),
        threads=tuple(tuple(map(_value, items)) for items in raw["threads"]),
        requests=tuple(map(_request, raw["requests"])),
    )
    for request in case.requests:
        _check_references(case, request)
    return case


def _check_references(case: GoldenCase, request: PinnedRequest) -> None:
    in_range = (
        0 <= request.count <= len(case.threads[request.thread]),
        request.system is None or 0 <= request.system < len(case.systems),
        request.tools is None or 0 <= request.tools < len(case.tools),
    )
    if request.thread < 0 or not all(in_range):
        raise ValueError(f"request {request.index} refers to what is not there")


def _normaliser(raw: dict[str, Json]) -> Normaliser:
    pattern = _optional(raw.get("pattern"), str)
    return Normaliser(_of(raw["name"], str), pattern, _of(raw.get("placeholder", ""), str))


def _value(raw: dict[str, Json]) -> PinnedValue:
    return PinnedValue(
        name=_of(raw["name"], str),
        size=_of(raw["size"], int),
        sha256=_digest(raw["sha256"]),
        parts=_of(raw.get("parts", {}), dict),
        type=_optional(raw.get("type"), str),
        seq=_optional(raw.get("seq"), int),
        kinds=tuple(_of(kind, str) for kind in raw.get("kinds", ())),
        source=_optional(raw.get("source"), str),
        value=raw.get("value"),
    )


def _request(raw: dict[str, Json]) -> PinnedRequest:
    body = raw["body"] or {"size": None, "sha256": None}
    return PinnedRequest(
        index=_of(raw["index"], int),
        kind=_of(raw["kind"], str),
        turn=_optional(raw["turn"], int),
        step=_optional(raw["step"], int),
        attempt=_optional(raw["attempt"], int),
        provider=_of(raw["provider"], str),
        model=_of(raw["model"], str),
        protocol=_of(raw["protocol"], str),
        claim=_of(raw["claim"], str),
        settings=_of(raw["settings"], dict),
        system=_optional(raw["system"], int),
        tools=_optional(raw["tools"], int),
        thread=_of(raw["messages"]["thread"], int),
        count=_of(raw["messages"]["count"], int),
        constant=_optional(raw.get("constant"), str),
        options=_of(raw["options"], dict),
        body_size=_optional(body["size"], int),
        body_sha256=_optional(body["sha256"], str),
        verified=_optional(raw.get("verified"), str),
    )


def _of(value: Json, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}")
    return value


def _optional(value: Json, kind: type) -> Any:
    return None if value is None else _of(value, kind)


def _relative(value: Json) -> Any:
    path: str | None = _optional(value, str)
    if path is not None and (PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive or "\0" in path):
        raise ValueError(f"{path[:80]!r} is not a path relative to the golden file")
    return path


def _digest(value: Json) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{64}", value):
        raise ValueError("expected a SHA-256")
    return value
