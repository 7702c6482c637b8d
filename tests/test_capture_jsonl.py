from __future__ import annotations

import base64
import gzip
import json
from contextvars import copy_context
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsh_audit.capture import Fidelity, read_capture
from dsh_audit.errors import CaptureError, UsageError
from dsh_audit.text.budget import BUDGET, Budget
from tests.capture_files import BODY, CHAT, SESSION

SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "capture-jsonl.schema.json").read_text())
TEXT = BODY.decode()
PARSED = json.loads(BODY)
LENGTH = "content-length"
BASE64 = base64.b64encode(BODY).decode()


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def request(**members: Any) -> dict[str, Any]:
    return {"method": "POST", "url": CHAT, "headers": {SESSION: "s"}} | members


@pytest.mark.parametrize(
    ("record", "fidelity"),
    [
        ({"request": request(body=PARSED), "response": {"status": 200}}, Fidelity.JSON),  # claude-trace
        (
            {
                "timestamp": "2026-01-01T00:00:00Z",
                "turn": 1,
                "request": {"method": "POST", "path": CHAT, "headers": {SESSION: "s"}, "body": PARSED},
                "response": {"status": 200},
                "upstream_base_url": "https://api.example/v1",
            },
            Fidelity.JSON,
        ),  # claude-tap
        (request(body=TEXT, status=200), Fidelity.TEXT),
        (request(body_base64=BASE64, status_code=200), Fidelity.RAW),
        (request(body=BASE64, body_encoding="base64", status=200), Fidelity.RAW),
        (request(body=TEXT, status=200, headers=[[SESSION, "s"], [LENGTH, len(BODY)]]), Fidelity.TEXT),
        (request(body=TEXT, status=200, headers=[{"name": SESSION, "value": "s"}]), Fidelity.TEXT),
        (request(body=TEXT, status=200, headers={SESSION: ["s", "t"]}, method=None), Fidelity.TEXT),
    ],
)
def test_shapes_in_use(tmp_path: Path, record: Any, fidelity: Fidelity) -> None:
    archive = read_capture(write(tmp_path / "a.jsonl", record))
    (exchange,) = archive.exchanges
    assert (archive.format, archive.fidelity) == ("jsonl", fidelity)
    assert (exchange.kind, exchange.session_id, exchange.status) == ("chat-completions", "s", 200)
    assert exchange.read_body() == BODY
    assert (exchange.load_value and exchange.load_value()) == (PARSED if fidelity is Fidelity.JSON else None)
    expected = ["capture/parsed-bodies"] if fidelity is Fidelity.JSON else []
    assert [finding.code for finding in archive.findings] == expected
    if record.get("method", "") is not None:
        jsonschema.Draft202012Validator(SCHEMA).validate(record)


def test_host(tmp_path: Path) -> None:
    record = {"request": {"path": CHAT, "body": TEXT}, "upstream_base_url": "https://api.example/v1"}
    exchange = read_capture(write(tmp_path / "a.jsonl", record)).exchanges[0]
    assert (exchange.host, exchange.url_path) == ("api.example", CHAT)


def test_named_fields(tmp_path: Path) -> None:
    record = {"http": [{"verb": "POST", "to": CHAT, "h": [[SESSION, "s"]], "raw": {"text": TEXT}}]}
    fields = {"method": "http.0.verb", "url": "http.0.to", "headers": "http.0.h", "body": "http.0.raw.text"}
    exchange = read_capture(write(tmp_path / "a.jsonl", record), fields=fields).exchanges[0]
    assert (exchange.session_id, exchange.read_body()) == ("s", BODY)
    for bad in ({"bodies": "x"}, {"body": ""}):
        with pytest.raises(UsageError):
            read_capture(tmp_path / "a.jsonl", fields=bad)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{\n", "capture/bad-record"),
        (b"\xff\n", "capture/bad-record"),
        (b"[" * 20_000 + b"\n", "capture/bad-record"),
        (json.dumps(request(body=7)).encode() + b"\n", "capture/bad-record"),
        (json.dumps(request(body_base64="!")).encode() + b"\n", "capture/bad-record"),
        (json.dumps(request(body_base64=7)).encode() + b"\n", "capture/bad-record"),
        (json.dumps(request(body=TEXT, headers=7)).encode() + b"\n", "capture/bad-record"),
        (json.dumps(request(body=TEXT, method=7)).encode() + b"\n", "capture/bad-record"),
        (b'{"note":"started"}\n', "capture/skipped-record"),
        (b"7\n", "capture/skipped-record"),
        (b"\n \r\n", None),
        (b'{"url":"/v1/cha', "capture/torn-record"),
        (json.dumps(request(body="{\ud800}")).encode() + b"\n", "capture/lossy-text"),
        (json.dumps(request()).encode() + b"\n", "capture/no-body"),
        (json.dumps(request(body="")).encode() + b"\n", "capture/no-body"),
        (json.dumps(request(body=TEXT, headers={LENGTH: "999"})).encode(), "capture/truncated-body"),
    ],
)
def test_a_bad_line_is_a_finding(tmp_path: Path, line: bytes, code: str | None) -> None:
    path = write(tmp_path / "a.jsonl", request(body=TEXT))
    path.write_bytes(path.read_bytes() + line)
    archive = read_capture(path)
    assert [finding.code for finding in archive.findings] == ([code] if code else [])
    assert archive.exchanges[0].read_body() == BODY
    for finding in archive.findings:
        assert "\n" not in finding.message


def test_line_over_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", request(body=TEXT * 100), request(body=TEXT))
    context = copy_context()
    context.run(BUDGET.set, Budget(5000))
    archive = context.run(read_capture, path)
    assert [finding.code for finding in archive.findings] == ["capture/too-large"]
    assert [exchange.read_body() for exchange in archive.exchanges] == [BODY]


def test_rows_break_at_newline_bytes_only(tmp_path: Path) -> None:
    body = '{"messages":["\u2028\u0085\x0c"]}'
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(request(body=body), ensure_ascii=False) + "\n", newline="\n")
    assert read_capture(path).exchanges[0].read_body() == body.encode()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "capture"])
def test_byte_order_mark_and_gzip(tmp_path: Path, name: str) -> None:
    data = b"\xef\xbb\xbf" + (json.dumps(request(body=PARSED)) + "\n").encode() * 2
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert [exchange.read_body() for exchange in read_capture(tmp_path / name).exchanges] == [BODY, BODY]


def test_a_file_that_changes_later(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", request(body=TEXT), request(body=PARSED))
    text, parsed = read_capture(path).exchanges
    path.write_bytes(b"{")
    assert text.read_body() is None
    assert parsed.load_value is not None and parsed.load_value() is None


@pytest.mark.parametrize("data", [b"\n\n", b'{"a":1}\n', b"[]\n"])
def test_no_records(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(CaptureError):
        read_capture(tmp_path / "a.jsonl")
