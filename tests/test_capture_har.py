from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.capture import Fidelity, read_capture
from dsh_audit.errors import AuditError, CaptureError
from tests.capture_files import BODY, CHAT, SESSION, har_entry, write_har

BASE64 = base64.b64encode(BODY).decode()


@pytest.mark.parametrize(
    ("entry", "fidelity", "code"),
    [
        (har_entry(bodySize=len(BODY)), Fidelity.TEXT, None),
        (har_entry(headers=[{"name": "Content-Length", "value": str(len(BODY))}]), Fidelity.TEXT, None),
        (har_entry(bodySize=len(BODY) + 1), Fidelity.PARTIAL, "capture/truncated-body"),
        (har_entry(bodySize=-1), Fidelity.PARTIAL, "capture/unknown-length"),
        (har_entry("{\ud800}"), Fidelity.PARTIAL, "capture/lossy-text"),
        (har_entry(None), Fidelity.PARTIAL, "capture/no-body"),
        (har_entry(bodySize=9, headers=[{"name": "content-encoding", "value": "gzip"}]), Fidelity.TEXT,
         "capture/encoded-body"),
        (har_entry(bodySize=len(BODY), postData={"text": BASE64, "encoding": "base64"}),
         Fidelity.RAW, None),
    ],
)  # fmt: skip
def test_fidelity(tmp_path: Path, entry: Any, fidelity: Fidelity, code: str | None) -> None:
    archive = read_capture(write_har(tmp_path / "a.har", entry))
    assert [finding.code for finding in archive.findings] == ([code] if code else [])
    assert (archive.format, archive.fidelity) == ("har", fidelity)
    if fidelity is not Fidelity.PARTIAL:
        assert archive.exchanges[0].read_body() == BODY


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {"request": []},
        har_entry(method=None),
        har_entry(url=""),
        har_entry(headers=[7]),
        har_entry(postData=[]),
        har_entry(postData={"text": 7}),
        har_entry(postData={"text": "!", "encoding": "base64"}),
    ],
)
def test_a_bad_entry_loses_one_request_only(tmp_path: Path, entry: Any) -> None:
    archive = read_capture(write_har(tmp_path / "x", entry, har_entry(bodySize=len(BODY))))
    assert [finding.code for finding in archive.findings] == ["capture/bad-record"]
    assert [exchange.id for exchange in archive.exchanges] == ["0001"]


def test_order_is_by_start_time_and_ids_by_place(tmp_path: Path) -> None:
    late, early = har_entry(bodySize=len(BODY)), har_entry(bodySize=len(BODY))
    late["startedDateTime"] = "2026-01-01T00:00:01.5Z"
    early["startedDateTime"] = "2026-01-01T02:00:00+02:00"
    exchanges = read_capture(write_har(tmp_path / "a.har", late, early)).exchanges
    assert [exchange.id for exchange in exchanges] == ["0001", "0000"]
    early["startedDateTime"] = "yesterday"
    exchanges = read_capture(write_har(tmp_path / "a.har", late, early)).exchanges
    assert [exchange.id for exchange in exchanges] == ["0000", "0001"]


def test_request_members(tmp_path: Path) -> None:
    headers = [{"name": "Authorization", "value": "Bearer sk-1"}, {"name": SESSION, "value": "s"}]
    entry = har_entry(bodySize=len(BODY), headers=headers)
    exchange = read_capture(write_har(tmp_path / "a.har", entry)).exchanges[0]
    assert (exchange.host, exchange.url_path, exchange.status) == ("api.example", CHAT, 200)
    assert exchange.session_id == "s"
    assert "sk-1" not in repr(exchange)


@pytest.mark.parametrize("name", ["a.har", "a.har.gz", "a"])
def test_byte_order_mark_and_gzip(tmp_path: Path, name: str) -> None:
    data = b"\xef\xbb\xbf" + json.dumps({"log": {"entries": [har_entry(bodySize=len(BODY))]}}).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read_capture(tmp_path / name).exchanges[0].read_body() == BODY


def test_cut_anywhere_is_one_clear_error(tmp_path: Path) -> None:
    data = write_har(tmp_path / "a.har", har_entry()).read_bytes()
    for end in range(len(data)):
        (tmp_path / "a.har").write_bytes(data[:end])
        with pytest.raises(CaptureError) as caught:
            read_capture(tmp_path / "a.har")
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("data", [b"{}", b"[]", b'{"log":{}}', b'{"log":[]}', b"\xff", b"[" * 30_000])
def test_no_har(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.har").write_bytes(data)
    with pytest.raises(CaptureError):
        read_capture(tmp_path / "a.har")


def test_cut_gzip_and_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.har.gz"
    path.write_bytes(gzip.compress(write_har(tmp_path / "a.har", har_entry()).read_bytes())[:-9])
    with pytest.raises(CaptureError):
        read_capture(path)
    with pytest.raises(AuditError):
        read_capture(tmp_path / "a.har", fields={"body": "x"})
