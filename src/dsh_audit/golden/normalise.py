"""Normalisers: text that legitimately varies from run to run becomes a placeholder before anything is digested.

They work on the text of each JSON string, never across strings, so that what they give does not depend on how a
value is printed. The order in which they are declared is the order in which they are applied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from dsh_audit.errors import UsageError
from dsh_audit.events import Json, SessionHeader
from dsh_audit.record import dataclass
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body, PartRun
from dsh_audit.wire.parts import Part

_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
_PATH = r"[^\s\"'`<>|:;,)\]}\\]"

BUILT_IN: dict[str, tuple[str | None, str]] = {
    "session-ids": (None, "<session>"),
    "cwd": (None, "<cwd>"),
    "uuids": (r"(?<![0-9A-Fa-f-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Fa-f-])", "<uuid>"),
    "ids": (
        r"(?<![A-Za-z0-9])(?:call|toolu|msg|resp|req|chatcmpl|fc|rs)[-_](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]+",
        "<id>",
    ),
    "times": (
        rf"(?<!\d){_DAY}(?:[T ]{_CLOCK}(?:Z|\s?UTC|[+-]\d\d:?\d\d)?)?(?!\d)|(?<![\d.]){_CLOCK}(?![\d:])"
        r"|(?<![\d.])1[5-9]\d{8}(?:\d{3})?(?![\d.])",
        "<time>",
    ),
    "temp-paths": (
        rf"(?:/private)?/(?:var/)?tmp/{_PATH}+|(?:/private)?/var/folders/{_PATH}+"
        r"|[A-Za-z]:\\(?:[^\s\"'`<>|:\\]+\\)*Te?mp\\[^\s\"'`<>|:]+",
        "<temp>",
    ),
    "homes": (r"/(?:home|Users)/[^/\s\"'`<>|:;,)\]}\\]+", "<home>"),
    "ports": (r"(?:(?<=localhost:)|(?<=127\.0\.0\.1:)|(?<=\[::1\]:))\d{2,5}", "<port>"),
    "durations": (r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|min|minutes)(?!\w)", "<duration>"),
}
"""Name → pattern and placeholder; None where the text to replace comes from the session header."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Normaliser:
    """One declared normaliser.

    Args:
        name: a built-in one, or the user's.
        pattern: regular expression of the user's own; None for a built-in one.
        placeholder: what matches become.
    """

    name: str
    pattern: str | None = None
    placeholder: str = ""

    JSON: ClassVar = "name pattern? placeholder"

    def __post_init__(self) -> None:
        if self.pattern is None and self.name not in BUILT_IN:
            hint = f"known: {', '.join(BUILT_IN)}; or NAME=REGEX for your own"
            raise UsageError(f"there is no normaliser {self.name!r}", hint=hint)
        if not self.placeholder:
            default = f"<{self.name}>" if self.pattern is not None else BUILT_IN[self.name][1]
            object.__setattr__(self, "placeholder", default)
        try:
            re.compile(self.pattern or "")
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"normaliser {self.name}: not a regular expression: {error}") from None

    def compile(self, session_header: SessionHeader) -> re.Pattern[str] | None:
        """The pattern for one session; None where nothing can match."""
        if self.pattern is not None:
            return re.compile(self.pattern)
        pattern = BUILT_IN[self.name][0]
        if pattern is not None:
            return re.compile(pattern)
        literals = _literals(self.name, session_header)
        whole = rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, literals))})(?![A-Za-z0-9])"
        return re.compile(whole) if literals else None


def parse_normaliser(text: str) -> Normaliser:
    """``NAME`` or ``NAME=REGEX`` as on the command line.

    Raises:
        UsageError: unknown name or malformed pattern.
    """
    name, separator, pattern = text.partition("=")
    if separator and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name):
        raise UsageError(f"normaliser {text!r}: expected NAME or NAME=REGEX with a plain name")
    return Normaliser(name, pattern) if separator else Normaliser(name)


def _literals(name: str, session_header: SessionHeader) -> list[str]:
    """What a session-bound normaliser replaces, longest first."""
    identities = (session_header.id, session_header.parent_session)
    found = (session_header.cwd,) if name == "cwd" else identities
    return sorted((text for text in found if text is not None and len(text) > 1), key=len, reverse=True)


class Normalising:
    """Applies the declared normalisers to one session and counts what they replace.

    Args:
        declared: in order.
        session_header: gives the texts that session-bound normalisers replace.

    Attributes:
        replaced: name → matches replaced, each text counted once.
    """

    def __init__(self, declared: Iterable[Normaliser], session_header: SessionHeader) -> None:
        self.declared = tuple(declared)
        self.replaced: Counter[str] = Counter()
        compiled = ((item.name, item.compile(session_header), item.placeholder) for item in self.declared)
        self._steps = [(name, pattern, placeholder) for name, pattern, placeholder in compiled if pattern is not None]
        self._runs: dict[PartRun, PartRun] = {}

    def __bool__(self) -> bool:
        return bool(self.declared)

    def text(self, text: str) -> str:
        """The text with placeholders."""
        for name, pattern, placeholder in self._steps:
            text, count = pattern.subn(lambda _match, by=placeholder: by, text)  # type: ignore[misc]
            if count:
                self.replaced[name] += count
        return text

    def value(self, value: Json) -> Json:
        """A JSON value with every string normalised; names of members stay."""
        if not self._steps:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        return value

    def body(self, body: Body) -> Body:
        """A body with the strings of each part normalised; parts of a shared run are taken once."""
        if not self._steps:
            return body
        counted = self.replaced.copy()
        run = self._runs.setdefault(body.run, PartRun())
        for part in body.run.slice(len(run), body.count):
            run.append(self._part(part))
        head, tail = (tuple(map(self._part, side)) for side in (body.head, body.tail))
        self.replaced = counted
        return Body(head, run, body.count, tail)

    def _part(self, part: Part) -> Part:
        data = _STRING.sub(self._token, part.data)
        return part if data == part.data else Part(data, part.kind, part.name, part.path)

    def _token(self, match: re.Match[bytes]) -> bytes:
        token = match[0]
        text = ecma.parse(token)
        normalised = self.text(text)
        return token if normalised == text else ecma.stringify(normalised)
