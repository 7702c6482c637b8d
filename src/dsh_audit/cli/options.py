"""The options and arguments that several commands share, each declared once.

Options that belong together reach a command as one value with a method that reads what they name, so that another
option for all commands is one line here and none in the commands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsh_audit.cli.config import OutputPath
from dsh_audit.errors import UsageError
from dsh_audit.record import dataclass
from dsh_audit.text.budget import BUDGET, DEFAULT_MEMORY, Budget

if TYPE_CHECKING:
    from dsh_audit.capture import CaptureArchive
    from dsh_audit.checks.cache import CacheOptions
    from dsh_audit.deployment import Deployment
    from dsh_audit.finding import Finding
    from dsh_audit.log.generations import SessionHistory
    from dsh_audit.log.locate import SessionFiles
    from dsh_audit.log.session_log import SessionLog

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

_MIN_MEMORY = 16_000_000
_FILE = click.Path(dir_okay=False)


def _option(*names: str, **settings: Any) -> Decorator[Any]:
    return click.option(*names, **settings)


class _Size(click.ParamType):  # type: ignore[type-arg]
    """Bytes, as a number with K, M or G behind it (powers of 1000)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().upper().removesuffix("B")
        number, factor = text.rstrip("KMG"), {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
        if not (number.isascii() and number.isdigit()) or len(text) - len(number) > 1 or len(number) > 15:
            self.fail(f"{value!r} is no size such as 800M or 2G", param, ctx)
        if int(number) * factor < _MIN_MEMORY:
            self.fail(f"{value!r} is less than {_MIN_MEMORY // 10**6}M", param, ctx)
        return int(number) * factor


def _set_memory(context: click.Context, _: click.Parameter, value: int) -> None:
    if not context.resilient_parsing:
        BUDGET.set(Budget(value))


MEMORY_LIMIT = _option(
    "--memory-limit",
    type=_Size(),
    default=DEFAULT_MEMORY,
    envvar="DSH_AUDIT_MEMORY_LIMIT",
    metavar="SIZE",
    expose_value=False,
    callback=_set_memory,
    help="A row or file is read if 5 x its bytes + 80 x its values fit. Before the command. [default: 400M]",
)
"""The budget of the whole program."""

OUTPUT = _option("-o", "--output", type=OutputPath(dir_okay=False), metavar="FILE", help="Write here, not to stdout.")


def format_option(*formats: str) -> Decorator[Any]:
    """``--format``."""
    return _option("--format", "output_format", type=click.Choice(formats), default="text", show_default=True)


def output_options(command: F) -> F:
    """``--format`` text or json, ``-o``."""
    decorated: F = format_option("text", "json")(OUTPUT(command))
    return decorated


def normalise_option(command: F) -> F:
    """``--normalise``."""
    from dsh_audit.golden.normalise import BUILT_IN

    decorated: F = click.option(
        "--normalise",
        multiple=True,
        metavar="NAME[=REGEX]",
        help=f"Replace what varies by a placeholder: {', '.join(BUILT_IN)}, or a name and pattern. Repeatable.",
    )(command)
    return decorated


@dataclass(frozen=True, slots=True)
class LogChoice:
    """What LOG, ``--session``, ``--generation`` and ``--through`` say."""

    names: tuple[str, ...]
    session: str | None = None
    generation: int | None = None
    through: int | None = None

    def open_one(self) -> tuple[SessionLog, SessionFiles, list[Finding]]:
        """The only log that is named."""
        from dsh_audit.cli import common

        return common.open_one(self.names[0], self.session, self.generation)

    def read_one(self) -> tuple[SessionHistory, list[Finding]]:
        """The only log that is named, with its older generations."""
        from dsh_audit.cli import common

        log, files, findings = self.open_one()
        return common.read_history(log, files), findings

    def open_all(self) -> tuple[list[tuple[SessionLog, SessionFiles]], list[Finding]]:
        """Every log that is named; one that cannot be read becomes a finding when there are others."""
        from dsh_audit.cli import common

        return common.open_many(self.names, self.session, self.generation)

    def read_all(self) -> tuple[list[SessionHistory], list[Finding]]:
        """Every log that is named, with its older generations."""
        from dsh_audit.cli import common

        logs, findings = self.open_all()
        shown = common.with_progress(logs, "reading", len(logs))
        return [common.read_history(log, files) for log, files in shown], findings


_LOG = (
    _option("--session", metavar="ID", help="Session id, or a unique prefix, inside a home or export."),
    _option("--generation", type=click.IntRange(min=0), metavar="N", help="Format version to read, if several exist."),
    _option("--through", type=click.IntRange(min=0), metavar="SEQ", help="Read events up to this seq only."),
)


@dataclass(frozen=True, slots=True)
class DeploymentChoice:
    """What ``--deployment``, ``--constant``, ``--catalog``, ``--home`` and ``--objects`` say."""

    deployment_file: str | None = None
    constants: tuple[str, ...] = ()
    catalog: str | None = None
    homes: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()

    def read(self) -> Deployment:
        """The deployment that they describe."""
        from dsh_audit.cli import common

        deployment = common.read_deployment(self.deployment_file, self.constants, self.catalog)
        if not self.homes and not self.objects:
            return deployment
        return replace(deployment, attachments=common.read_attachments(self.homes, self.objects))


_DEPLOYMENT = (
    _option(
        "--deployment",
        "deployment_file",
        type=_FILE,
        metavar="FILE",
        help="TOML or JSON file with what the log cannot know (schemas/deployment.schema.json).",
    ),
    _option(
        "--constant",
        "constants",
        multiple=True,
        metavar="NAME=FILE",
        help="Exact text of a long fixed text of the harness, e.g. compaction-instruction=FILE.",
    ),
    _option(
        "--catalog",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="Installed pi-ai package, or a directory with it in node_modules, to read its model list from.",
    ),
    _option(
        "--home",
        "homes",
        multiple=True,
        type=click.Path(),
        metavar="DIR",
        help="Harness home with the images of the sessions; by default the one they lie in. Repeatable.",
    ),
    _option(
        "--objects",
        "objects",
        multiple=True,
        type=click.Path(),
        metavar="DIR",
        help="Folder of stored images, each named by the SHA-256 of its bytes. Repeatable.",
    ),
)


@dataclass(frozen=True, slots=True)
class CaptureChoice:
    """What ``--capture``, ``--capture-field`` and ``--capture-format`` say."""

    captures: tuple[str, ...] = ()
    capture_fields: tuple[str, ...] = ()
    capture_format: str | None = None

    def read(self) -> list[CaptureArchive]:
        """The captures that are named."""
        from dsh_audit.capture import read_capture

        fields = self._read_fields() or None
        return [read_capture(Path(path), fields=fields, chosen=self.capture_format) for path in self.captures]

    def _read_fields(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for item in self.capture_fields:
            name, separator, path = item.partition("=")
            if not separator or not name or not path:
                raise UsageError(f"--capture-field {item}: expected NAME=PATH")
            found[name] = path
        return found


CAPTURE_FORMATS = ("bundle", "mitmproxy", "har", "claude-tap", "vcr", "access-log", "jsonl")

_CAPTURE_HELP = (
    "Captured requests: a directory of NNNN.body + NNNN.meta.json, mitmproxy flows, a HAR file, JSONL, … Repeatable."
)
_CAPTURE_FIELD = _option(
    "--capture-field",
    "capture_fields",
    multiple=True,
    metavar="NAME=PATH",
    help="Where a JSONL record keeps something, as a dotted path, e.g. body=request.payload.",
)
_CAPTURE_FORMAT = _option(
    "--capture-format",
    type=click.Choice(CAPTURE_FORMATS),
    help="Read captures as this format, whatever their content looks like.",
)


def capture_options(help_text: str = _CAPTURE_HELP, *, required: bool = False) -> Decorator[Any]:
    """``--capture`` and how to read it, as a CaptureChoice ``captures``."""
    capture = _option(
        "--capture",
        "captures",
        multiple=True,
        required=required,
        type=click.Path(),
        metavar="PATH",
        help=help_text,
    )
    return _collected("captures", CaptureChoice, (capture, _CAPTURE_FIELD, _CAPTURE_FORMAT))


@dataclass(frozen=True, slots=True)
class PriceChoice:
    """What ``--prices`` and ``--currency`` say."""

    prices: str | None = None
    currency: str = "USD"

    def read(self, rules: str | None = None, grain: int | None = None) -> CacheOptions:
        """Price table and cache rules, as the options of a cache audit.

        Args:
            rules: cache rules for every route instead of each provider's own.
            grain: cached lengths are multiples of it.
        """
        from dsh_audit.checks.cache import CacheOptions
        from dsh_audit.checks.provider_rules import parse_rules
        from dsh_audit.cli import common
        from dsh_audit.pricing import parse_prices

        if self.prices is None:
            table = parse_prices(common.read_data("prices.json"), name="built-in prices", schema=None)
        else:
            data, schema = common.read_binary_file(self.prices), common.read_schema("prices")
            table = parse_prices(data, name=self.prices, schema=schema)
        book = parse_rules(common.read_data("cache_rules.json"), chosen=rules, grain=grain)
        return CacheOptions(book, table, self.currency.upper())


_PRICES = (
    _option("--prices", type=_FILE, metavar="FILE", help="Price file instead of the built-in one."),
    _option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency of the price table to use."),
)


def _collected(target: str, kind: Any, options: tuple[Decorator[Any], ...]) -> Decorator[Any]:
    """Options that reach the command as one value ``target`` of a type whose fields they fill."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**values: Any) -> Any:
            own = {name: values.pop(name) for name in kind.__match_args__ if name in values}
            return command(**values, **{target: kind(**own)})

        wrapped: Callable[..., Any] = wrapper
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


ONE_LOG = _collected(
    "logs", LogChoice, (click.argument("names", metavar="LOG", callback=lambda *given: given[2:]), *_LOG)
)
"""One LOG and the options that choose in it, as ``logs``."""
LOGS = _collected("logs", LogChoice, (click.argument("names", metavar="LOG...", nargs=-1, required=True), *_LOG))
"""Several of them."""
ANY_LOGS = _collected("logs", LogChoice, (click.argument("names", metavar="[LOG]...", nargs=-1), *_LOG))
"""Several, or none."""
CAPTURE_READING = _collected("reading", CaptureChoice, (_CAPTURE_FIELD, _CAPTURE_FORMAT))
"""How to read archives that are arguments, as ``reading``."""
DEPLOYMENT = _collected("deployment", DeploymentChoice, _DEPLOYMENT)
"""``--deployment``, ``--constant``, ``--catalog``, ``--home``, ``--objects``, as ``deployment``."""
PRICES = _collected("prices", PriceChoice, _PRICES)
"""``--prices``, ``--currency``, as ``prices``."""
