"""``schema``: the JSON Schemas of reports and input files."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from dsh_audit.cli.options import OUTPUT
from dsh_audit.cli.outputs import write_output
from dsh_audit.errors import UsageError
from dsh_audit.report import text


@click.command("schema")
@click.argument("name", metavar="[NAME]", required=False)
@OUTPUT
def command(name: str | None, output: str | None) -> None:
    """Print the JSON Schema NAME: "verify", or "dsh-audit/verify/1" as reports name it. Without NAME, list them all."""
    files = {path.name.removesuffix(".schema.json"): path.read_bytes() for path in _folder().iterdir()}
    parsed = {known: orjson.loads(data) for known, data in sorted(files.items())}
    if name is None:
        rows = [(known, schema.get("$id", "-"), schema["title"]) for known, schema in parsed.items()]
        write_output(text.table(("name", "schema", "describes"), rows) + "\n", output)
        return
    found = [known for known, schema in parsed.items() if name in (known, schema.get("$id"))]
    if not found:
        raise UsageError(f"there is no schema {name}", hint=f"there are: {', '.join(parsed)}")
    write_output(files[found[0]], output)


def _folder() -> Path:
    """Inside the package when it was built, beside the sources in a checkout."""
    package = Path(__file__).parents[1]
    packaged = package / "schemas"
    return packaged if packaged.is_dir() else package.parents[1] / "schemas"
