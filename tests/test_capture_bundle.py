from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import zstandard

from dsh_audit.capture import Fidelity, read_capture
from dsh_audit.capture.coding import ContentCodingError, decode_content
from dsh_audit.errors import AuditError, CaptureError
from tests.capture_files import BODY, CHAT, SESSION, write_pair

CODING = "content-encoding"
SCHEMA = json.loads((Path(__file__).parents[1] / "schemas" / "capture-bundle.schema.json").read_text())


def codes(path: Path) -> list[str]:
    return [finding.code for finding in read_capture(path).findings]


def test_reads_pairs_in_order_of_receipt(tmp_path: Path) -> None:
    write_pair(tmp_path, "10000", headers=[(SESSION, "b")])
    write_pair(tmp_path, "0002", headers=[(SESSION, "a"), ("X-DeepSeek-Harness-Compact", "1")], status=200)
    (tmp_path / "digests.json").write_text("{}")
    archive = read_capture(tmp_path)
    first, second = archive.exchanges
    assert (archive.format, archive.fidelity, archive.findings) == ("bundle", Fidelity.RAW, ())
    assert (first.id, first.received_order, first.session_id, first.is_compaction) == ("0002", 0, "a", True)
    assert (second.id, second.received_order, second.session_id, second.is_compaction) == (
        "10000", 1, "b", False,
    )  # fmt: skip
    assert (first.status, first.method, first.url_path, first.kind) == (200, "POST", CHAT, "chat-completions")
    assert first.read_body() == BODY


META_CASES: list[tuple[bytes, str]] = [
    (b"", "capture/bad-meta"),
    (b"[1]", "capture/bad-meta"),
    (b'{"method":"POST"', "capture/bad-meta"),
    (b'{"method":"POST"}', "capture/bad-meta"),
    (b'{"method":"POST","path":7}', "capture/bad-meta"),
    (b'{"method":"","path":"/x"}', "capture/bad-meta"),
    (b'{"method":"POST","path":"/x","headers":"none"}', "capture/bad-meta"),
    (b'{"method":"POST","path":"/x","headers":[["only name"]]}', "capture/bad-meta"),
    (b'{"method":"POST","path":"/x","headers":[["n",null]]}', "capture/bad-meta"),
    (b'{"method":"POST","path":"/x\xff"}', "capture/bad-meta"),
    (b"[" * 20_000, "capture/bad-meta"),
    (b" " * (1 << 20) + b"{}", "capture/too-large"),
]


@pytest.mark.parametrize(("meta", "code"), META_CASES)
def test_bad_meta_loses_one_request_only(tmp_path: Path, meta: bytes, code: str) -> None:
    write_pair(tmp_path, "0000")
    (tmp_path / "0001.body").write_bytes(BODY)
    (tmp_path / "0001.meta.json").write_bytes(meta)
    assert [exchange.id for exchange in read_capture(tmp_path).exchanges] == ["0000"]
    assert codes(tmp_path) == [code]


@pytest.mark.parametrize("meta", [meta for meta, code in META_CASES if code == "capture/bad-meta"])
def test_schema_refuses_what_the_reader_refuses(meta: bytes) -> None:
    try:
        value = json.loads(meta)
    except (ValueError, RecursionError):
        return
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(value)


def test_schema_accepts_what_the_reader_accepts(tmp_path: Path) -> None:
    write_pair(tmp_path, "0000", headers=[("Host", "x")], status=200, receivedAt=1.5)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads((tmp_path / "0000.meta.json").read_text()))
    assert read_capture(tmp_path).exchanges[0].host == "x"


def test_capture_without_bodies(tmp_path: Path) -> None:
    write_pair(tmp_path, "0000", None)
    write_pair(tmp_path, "0001", None, method="GET", path="/v1/models")
    archive = read_capture(tmp_path)
    assert [finding.code for finding in archive.findings] == ["capture/no-body"]
    assert [exchange.read_body() for exchange in archive.exchanges] == [None, None]
    assert archive.fidelity is Fidelity.PARTIAL


def test_body_without_meta(tmp_path: Path) -> None:
    (tmp_path / "0000.body").write_bytes(BODY)
    assert codes(tmp_path) == ["capture/no-meta"]


def test_links_and_special_files_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    root = tmp_path / "captures"
    root.mkdir()
    write_pair(root, "0000", None)
    (root / "0000.body").symlink_to(secret)
    write_pair(root, "0001", None)
    os.mkfifo(root / "0001.body")
    (root / "0002.meta.json").symlink_to("/dev/zero")
    write_pair(root, "0003", None)
    (root / "0003.body").mkdir()
    assert [exchange.read_body() for exchange in read_capture(root).exchanges] == [None, None, None]
    assert codes(root) == ["capture/unsafe-file", "capture/no-body"] * 2 + [
        "capture/unsafe-file", "capture/unsafe-file", "capture/no-body",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "headers", "code", "fidelity", "read"),
    [
        (BODY, [("content-length", str(len(BODY)))], None, Fidelity.RAW, BODY),
        (BODY[:30], [("Content-Length", "75")], "capture/truncated-body", Fidelity.PARTIAL, BODY[:30]),
        (BODY, [("content-length", "junk")], None, Fidelity.RAW, BODY),
        (b"", [], None, Fidelity.RAW, b""),
        (b'{"a":"\xff"}', [], "capture/not-utf8", Fidelity.RAW, b'{"a":"\xff"}'),
        (gzip.compress(BODY, mtime=0), [(CODING, "gzip")], "capture/encoded-body", Fidelity.RAW, BODY),
        (zstandard.compress(BODY), [(CODING, "zstd")], "capture/encoded-body", Fidelity.RAW, BODY),
        (gzip.compress(BODY, mtime=0), [], "capture/encoded-body", Fidelity.RAW, BODY),
        (
            BODY,
            [(CODING, "gzip"), ("content-length", "9")],
            "capture/encoded-body",
            Fidelity.RAW,
            BODY,
        ),
        (
            gzip.compress(BODY, mtime=0)[:-9],
            [(CODING, "gzip")],
            "capture/undecodable-body",
            Fidelity.PARTIAL,
            None,
        ),
        (b"\x01\x02", [(CODING, "br")], "capture/undecodable-body", Fidelity.PARTIAL, None),
    ],
)
def test_bodies(
    tmp_path: Path,
    body: bytes,
    headers: list[tuple[str, str]],
    code: str | None,
    fidelity: Fidelity,
    read: bytes | None,
) -> None:
    write_pair(tmp_path, "0000", body, headers)
    archive = read_capture(tmp_path)
    assert [finding.code for finding in archive.findings] == ([code] if code else [])
    assert archive.exchanges[0].fidelity is fidelity
    assert (archive.exchanges[0].truncation is None) == (fidelity is Fidelity.RAW)
    assert archive.exchanges[0].read_body() == read


def test_bodies_stay_on_disk(tmp_path: Path) -> None:
    write_pair(tmp_path, "0000")
    exchange = read_capture(tmp_path).exchanges[0]
    (tmp_path / "0000.body").write_bytes(b"{}")
    assert exchange.read_body() == b"{}"
    (tmp_path / "0000.body").unlink()
    assert exchange.read_body() is None


@pytest.mark.parametrize("coding", ["gzip", "zstd", "deflate"])
def test_decompression_is_bounded(coding: str) -> None:
    data = bytes(1 << 22)
    packed = {"gzip": gzip.compress, "zstd": zstandard.compress, "deflate": __import__("zlib").compress}
    with pytest.raises(ContentCodingError, match="bytes when decompressed"):
        decode_content(packed[coding](data), coding, limit=1 << 20)
    assert decode_content(packed[coding](data), coding) == data


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_concatenated_members(compress: Any) -> None:
    coding = "gzip" if compress is gzip.compress else "zstd"
    pieces = [random.Random(size).randbytes(size) for size in (0, 1, 700, 70_000)]
    assert decode_content(b"".join(map(compress, pieces)), coding) == b"".join(pieces)
    with pytest.raises(ContentCodingError):
        decode_content(b"".join(map(compress, pieces))[:-1], coding)
    with pytest.raises(ContentCodingError):
        decode_content(compress(b"x") + b"junk", coding)
    with pytest.raises(ContentCodingError):
        decode_content(gzip.compress(b"") * 1001, "gzip")


def test_what_cannot_be_read_at_all(tmp_path: Path) -> None:
    (tmp_path / "case" / "captures").mkdir(parents=True)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "flow").write_bytes(b"12:4:test,")
    os.mkfifo(tmp_path / "pipe")
    for name in ("case", "empty", "flow", "pipe", "missing"):
        with pytest.raises(CaptureError) as caught:
            read_capture(tmp_path / name)
        assert "\n" not in caught.value.message
    with pytest.raises(CaptureError) as caught:
        read_capture(tmp_path / "case")
    assert caught.value.hint is not None and "captures" in caught.value.hint
    write_pair(tmp_path, "0000")
    with pytest.raises(AuditError):
        read_capture(tmp_path, fields={"body": "x"})
