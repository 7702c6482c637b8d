"""``encode``: the exact body of one request that is given as JSON."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import click

from dsh_audit.cli import common
from dsh_audit.cli.options import DEPLOYMENT, OUTPUT, DeploymentChoice
from dsh_audit.cli.outputs import write_output
from dsh_audit.errors import AuditError, UsageError
from dsh_audit.text import ecma
from dsh_audit.text.budget import BUDGET, BudgetError
from dsh_audit.wire.body import Body
from dsh_audit.wire.json_request import encode_json_request
from dsh_audit.wire.pi.catalogue import read_catalog, read_version
from dsh_audit.wire.pi.json_request import DEFAULT_VERSION
from dsh_audit.wire.pi.profile import Catalogue
from dsh_audit.wire.pi.refusal import PiRefusedError

_GZIP = b"\x1f\x8b"


@click.command("encode")
@click.argument("named", metavar="INPUT.json")
@click.option("--jsonl", is_flag=True, help="INPUT holds one request a line; print a size and a digest for each.")
@click.option("--pi-version", metavar="VERSION", help="pi-ai release for requests that name none.")
@click.option(
    "--image",
    "image_file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Bytes of every image that the request holds without giving its own in images.",
)
@DEPLOYMENT
@OUTPUT
def command(
    named: str,
    jsonl: bool,
    pi_version: str | None,
    image_file: str | None,
    deployment: DeploymentChoice,
    output: str | None,
) -> None:
    """Print the exact body of the one request that INPUT.json describes; no newline is added.

    INPUT.json holds the options that the harness calls its adapter with, and the route: "options", "resolvedModel"
    or "profile", "key" or "credential", "env", "piVersion"; or "protocol" deepseek-chat-completions or
    deepseek-messages for the DeepSeek adapter. With --jsonl each line gives {"size","sha256"}, or {"error"} where no
    request would leave. "-" reads standard input.
    """
    settings = deployment.read()
    directory = None if deployment.catalog is None else Path(deployment.catalog)
    image = None if image_file is None else common.read_binary_file(image_file, "image")
    version = pi_version or (read_version(directory) if directory is not None else DEFAULT_VERSION)

    @cache
    def find_catalogue(provider: str) -> Catalogue | None:
        return None if directory is None else read_catalog(directory, provider)

    def encode(data: bytes) -> Body:
        try:
            given = ecma.parse(data)
        except BudgetError as error:
            raise UsageError(f"{named}: {error}") from None
        except ecma.EcmaSyntaxError as error:
            raise UsageError(f"{named}: not JSON: {error}") from None
        is_row = isinstance(given, dict) and "options" not in given and "input" in given
        given = given["input"] if is_row else given
        return encode_json_request(given, settings, find_catalogue, pi_version=version, image=image)

    if jsonl:
        write_output(b"".join(_rows(named, encode)), output)
        return
    with _open(named) as stream:
        data = stream.read(BUDGET.get().document_bytes + 1)
    write_output(encode(data).to_bytes(), output)


def _rows(named: str, encode: Callable[[bytes], Body]) -> Iterator[bytes]:
    with _open(named) as stream:
        while line := stream.readline(BUDGET.get().document_bytes + 1):
            if len(line) > BUDGET.get().document_bytes:
                raise UsageError(f"{named}: a line is larger than {BUDGET.get().text}")
            if line.strip():
                yield ecma.stringify(_row(line, encode)) + b"\n"


def _row(line: bytes, encode: Callable[[bytes], Body]) -> dict[str, Any]:
    try:
        body = encode(line)
    except PiRefusedError as refusal:
        return {"error": refusal.message, "rung": refusal.rung} if refusal.kind == "not-encoded" else _error(refusal)
    except AuditError as error:
        return _error(error)
    return {"size": body.size_bytes, "sha256": body.sha256()}


def _error(error: AuditError) -> dict[str, Any]:
    return {"error": error.message}


@contextmanager
def _open(named: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file, unpacked when it is gzip, or of standard input."""
    if named == "-":
        yield sys.stdin.buffer
        return
    try:
        with common.open_input(named) as stream:
            head = stream.peek(2) if isinstance(stream, BufferedReader) else b""
            if head.startswith(_GZIP):
                with gzip.open(stream) as unpacked:
                    yield unpacked
            else:
                yield stream
    except OSError as error:
        raise UsageError(f"{named}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{named}: cannot be read: no file has such a name") from None
    except (EOFError, zlib.error):
        raise UsageError(f"{named}: cannot be read: a damaged gzip file") from None
