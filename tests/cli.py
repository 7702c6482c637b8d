"""Runs ``dsh-audit`` inside the test process, as a user would see it."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from dsh_audit.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a run left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run(*arguments: str | Path, env: dict[str, str] | None = None) -> Done:
    """Run a command; the exit status and both outputs."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    status = 0
    with (
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
        mock.patch.dict(os.environ, {"NO_COLOR": "1", **(env or {})}),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            status = exit_.code if isinstance(exit_.code, int) else 1
    streams = []
    for stream in (out, err):
        stream.flush()
        buffer = stream.buffer
        assert isinstance(buffer, io.BytesIO)
        streams.append(buffer.getvalue())
    return Done(status, *streams)
