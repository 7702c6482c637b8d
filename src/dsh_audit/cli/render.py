"""``render``: the exact bytes of one request."""

from __future__ import annotations

import click

from dsh_audit.audit import find_request
from dsh_audit.cli.options import DEPLOYMENT, ONE_LOG, OUTPUT, DeploymentChoice, LogChoice
from dsh_audit.cli.outputs import write_output
from dsh_audit.errors import NotReconstructibleError, UsageError
from dsh_audit.events import Json
from dsh_audit.report.json import render_json
from dsh_audit.text import ecma
from dsh_audit.wire.body import Body
from dsh_audit.wire.images import PLACEHOLDER
from dsh_audit.wire.session import SessionEncoder

_PARTS = ("body", "base", "headers", "messages", "options")


@click.command("render")
@ONE_LOG
@click.option("--request", "index", type=click.IntRange(min=0), required=True, metavar="N", help="Index, see requests.")
@click.option(
    "--part",
    type=click.Choice(_PARTS),
    default="body",
    show_default=True,
    help="body: exact bytes; base: without extension fields; headers: HTTP headers as JSON; "
    "messages, options: that part of the body.",
)
@DEPLOYMENT
@OUTPUT
def command(logs: LogChoice, index: int, part: str, deployment: DeploymentChoice, output: str | None) -> None:
    """Print one request of LOG exactly as it went over the wire: no newline is added to the body.

    To read it: dsh-audit render LOG --request N | jq . Members that no log explains, such as dsh_plugin_packages,
    are not in it; verify names them.

    Where the images of a request cannot be written, --part messages shows a placeholder for each.

    Request headers that cannot be known (keys, user id) are null.
    """
    settings = deployment.read()
    history, _findings = logs.read_one()
    rebuilt = find_request(history, settings, index, logs.through)
    if rebuilt is None:
        raise UsageError(f"{logs.names[0]}: there is no request {index}", hint="dsh-audit requests LOG lists them")
    encoded = rebuilt.encoded
    if part == "headers":
        headers = [{"name": name, "value": value} for name, value in encoded.http_headers]
        write_output(render_json(headers), output)
        return
    if part in ("messages", "options") and encoded.images and (encoded.body is None or encoded.problems):
        encoded = SessionEncoder(settings).encode(rebuilt.request, encoded.protocol, PLACEHOLDER)
        if encoded.body is not None:
            click.echo(f"note: request {index} has placeholders for its images; it is not byte-exact", err=True)
    elif encoded.problems:
        raise NotReconstructibleError(f"request {index}: {'; '.join(found.what for _, found in encoded.problems)}")
    if encoded.body is None:
        reason = "; ".join(encoded.why) or "no reason is known"
        raise NotReconstructibleError(f"request {index} cannot be rebuilt to the byte: {reason}")
    body = encoded.body if part == "base" else rebuilt.extended(encoded.body).body
    write_output(body.to_bytes() if part in ("body", "base") else _part(body, part), output)


def _part(body: Body, part: str) -> bytes:
    """The messages member alone, or everything else, as compact JSON."""
    value: Json = ecma.parse(body.to_bytes())
    key = "messages" if "messages" in value else "input"
    if part == "messages":
        return ecma.stringify(value[key]) + b"\n"
    return ecma.stringify({name: item for name, item in value.items() if name != key}) + b"\n"
