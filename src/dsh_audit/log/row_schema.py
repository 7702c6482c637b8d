"""Rows of a log against the JSON Schema of its format."""

from __future__ import annotations

from collections.abc import Mapping

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from dsh_audit.events import Json
from dsh_audit.finding import Finding
from dsh_audit.log.container import ContainerStats, iter_rows
from dsh_audit.log.session_log import SessionLog
from dsh_audit.rules import log as rules
from dsh_audit.text import ecma

_MAX_FINDINGS = 200


def check_rows(log: SessionLog, schema: Mapping[str, Json]) -> list[Finding]:
    """One finding per row that the schema does not allow, with the pointer to the offending value."""
    validator = Draft202012Validator(schema)
    findings: list[Finding] = []
    with log.source.open() as stream:
        for row in iter_rows(stream, log.source.size, ContainerStats()):
            try:
                value = ecma.parse(row.data)
            except ecma.EcmaSyntaxError:
                continue
            error = best_match(validator.iter_errors(value))
            if error is None:
                continue
            pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)
            message = error.message if len(error.message) <= 200 else error.message[:200] + "…"
            where = log.where(line=row.line, frame=row.frame, pointer=pointer)
            findings.append(Finding(rules.SCHEMA, message, where))
            if len(findings) == _MAX_FINDINGS:
                break
    return findings
