"""Files that capturing tools wrote (``tests/samples``), and small ones in the same formats."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dsh_audit.capture import IMPORTERS, Fidelity, read_capture
from dsh_audit.capture.response import read_facts
from dsh_audit.capture.tnetstring import TnetstringError, parse_tnetstring
from dsh_audit.cli.options import CAPTURE_FORMATS
from dsh_audit.errors import CaptureError
from tests.capture_files import BODY, CHAT, SESSION, har_entry, write_har
from tests.cli import run

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "tests" / "samples"
TEXT = BODY.decode()


@pytest.mark.parametrize(
    ("name", "case", "verdicts"),
    [
        ("mitmproxy-11.0.2.mitm", "v0-tools", {"identical": 5}),
        ("mitmproxy-12.3.1.mitm", "v0-tools", {"identical": 5}),
        ("mitmproxy-11.0.2.har", "v0-tools", {"identical": 5}),
        ("mitmproxy-11.0.2-streamed.mitm", "v0-json", {"not_checked": 3}),
        ("mitmproxy-11.0.2-streamed.har", "v0-json", {"not_checked": 3}),
        ("vcrpy-9.4.2.yaml", "v0-tools", {"identical": 5}),
        ("vcrpy-9.4.2.json", "v0-tools", {"identical": 5}),
        ("claude-tap-0.1.146.ctap.json", "v0-json", {"same_json": 3}),
        ("litellm-1.108.7.jsonl", "v0-tools", {"same_json": 2, "not_captured": 3}),
    ],
)
def test_files_of_real_tools(name: str, case: str, verdicts: dict[str, int]) -> None:
    done = run("verify", ROOT / "golden" / case / "sessions", "--capture", SAMPLES / name, "--format", "json")
    report = json.loads(done.stdout)
    counts = {key: count for key, count in report["summary"].items() if count and key != "captured"}
    assert counts == verdicts


@pytest.mark.parametrize(
    "name",
    ["mitmproxy-11.0.2.mitm", "mitmproxy-12.3.1.mitm", "mitmproxy-11.0.2.har", "vcrpy-9.4.2.yaml", "vcrpy-9.4.2.json"],
)
def test_streamed_answers_of_real_tools(name: str) -> None:
    for exchange in read_capture(SAMPLES / name).exchanges:
        assert exchange.response is not None
        facts = read_facts(exchange.response)
        assert facts.usage is not None
        assert (facts.usage["prompt_tokens"], facts.is_streamed, facts.is_complete) == (100, True, True)
        assert "sk-toy" not in repr(exchange)


@pytest.mark.parametrize(
    ("headers", "body", "usage", "told"),
    [
        ([["request-id", "r1"]], b'{"id":"m","usage":{"input_tokens":3},"diagnostics":{"cache_miss_reason":null}}',
         {"input_tokens": 3}, {"cache_miss_reason": None}),
        ([["x-request-id", "r1"]], b'data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":3}}}\n\n'
         b'data: {"type":"message_delta","usage":{"output_tokens":9}}\n\ndata: {"type":"message_stop"}\n',
         {"input_tokens": 3, "output_tokens": 9}, None),
        ([["request-id", "r1"], ["content-encoding", "gzip"]], gzip.compress(
            b'data: {"type":"response.completed","response":{"id":"m","usage":{"input_tokens":3},'
            b'"prompt_cache_diagnostics":{"reason":"x"}}}\n', mtime=0), {"input_tokens": 3}, {"reason": "x"}),
    ],
)  # fmt: skip
def test_facts_of_an_answer(tmp_path: Path, headers: Any, body: bytes, usage: Any, told: Any) -> None:
    flow = {"type": "http", "request": request(), "response": {"status_code": 200, "headers": pairs(headers),
            "content": body}}  # fmt: skip
    (exchange,) = read_capture(write_flows(tmp_path, flow)).exchanges
    assert exchange.response is not None
    facts = read_facts(exchange.response)
    assert (facts.usage, facts.id, facts.request_id, facts.diagnostics) == (usage, "m", "r1", told)
    assert facts.is_complete


def dump(value: Any) -> bytes:
    """A tagged netstring."""
    if isinstance(value, dict):
        payload, tag = b"".join(dump(key) + dump(item) for key, item in value.items()), b"}"
    elif isinstance(value, list):
        payload, tag = b"".join(map(dump, value)), b"]"
    elif isinstance(value, bytes):
        payload, tag = value, b","
    elif isinstance(value, str):
        payload, tag = value.encode(), b";"
    elif value is None:
        payload, tag = b"", b"~"
    elif isinstance(value, bool):
        payload, tag = str(value).lower().encode(), b"!"
    else:
        payload, tag = str(value).encode(), b"^" if isinstance(value, float) else b"#"
    return b"%d:%s%s" % (len(payload), payload, tag)


def pairs(headers: list[list[str]]) -> list[list[bytes]]:
    return [[name.encode(), value.encode()] for name, value in headers]


def request(**members: Any) -> dict[str, Any]:
    base = {"method": b"POST", "path": CHAT.encode(), "host": "api.example", "port": 443, "content": BODY}
    return base | {"headers": pairs([[SESSION, "s"], ["authorization", "Bearer sk-1"]])} | members


def write_flows(folder: Path, *flows: Any) -> Path:
    path = folder / "flows"
    path.write_bytes(b"".join(map(dump, flows)))
    return path


@pytest.mark.parametrize(
    "value",
    [{}, [], None, True, False, 7, -1, 1.5, "é", ["a", [None, {"b": 1}]], {"a": {"b": [1, "x"]}}],
)
def test_netstrings(value: Any) -> None:
    assert parse_tnetstring(dump(value)) == (value, len(dump(value)))


@pytest.mark.parametrize(
    "data",
    [b"", b":", b"x", b"1:", b"1:a", b"01:a,", b"1:a?", b"1:x#", b"2:ab!", b"4:9:a,}", b"3:0:~}", b"6:1:a,0:]",
     b"5:3:a,,]", b"9" * 50, b"1:\x001", dump("x") [:-1], b"6:1:1#0:~}", b"99999:" + b"9" * 99999 + b"#"],
)  # fmt: skip
def test_no_netstring(data: bytes) -> None:
    with pytest.raises(TnetstringError):
        parse_tnetstring(data)


def test_deep_nesting_is_refused() -> None:
    data: bytes = b"0:]"
    for _ in range(60):
        data = b"%d:%s]" % (len(data), data)
    with pytest.raises(TnetstringError):
        parse_tnetstring(data)


def test_flows_old_and_new(tmp_path: Path) -> None:
    late = {"id": "b", "request": request(timestamp_start=2.0), "response": None}
    old = {b"version": [0, 17], b"request": {key.encode(): item for key, item in request(timestamp_start=1.0).items()},
           b"response": {b"code": 429, b"headers": [], b"content": b""}}  # fmt: skip
    tcp = {"id": "c", "type": "tcp", "messages": []}
    archive = read_capture(write_flows(tmp_path, late, old, tcp, late))
    assert [(item.id, item.status, item.host, item.read_body()) for item in archive.exchanges] == [
        ("0001", 429, "api.example:443", BODY),
        ("0000", None, "api.example:443", BODY),
    ]
    assert (archive.format, archive.fidelity) == ("mitmproxy", Fidelity.RAW)
    assert [(finding.code, finding.message) for finding in archive.findings] == [
        ("capture/skipped-record", "2 flows are no HTTP or there twice, the first is flow 2")
    ]


@pytest.mark.parametrize(
    ("flow", "code"),
    [
        ({"request": 7}, "capture/bad-record"),
        ({"request": request(headers=7)}, "capture/bad-record"),
        ({"request": request(headers=[[b"a"]])}, "capture/bad-record"),
        ({"request": request(path=None)}, "capture/bad-record"),
        ({"request": request(content=None)}, "capture/no-body"),
        ({"request": request(content=b"\xff{")}, "capture/not-utf8"),
        ({"request": request(content=gzip.compress(BODY, mtime=0), headers=pairs([["content-encoding", "gzip"]]))},
         "capture/encoded-body"),
        ({"request": request(headers=pairs([["content-length", "9999"]]))}, "capture/truncated-body"),
    ],
)  # fmt: skip
def test_a_bad_flow_loses_one_request_only(tmp_path: Path, flow: Any, code: str) -> None:
    archive = read_capture(write_flows(tmp_path, flow, {"request": request()}))
    assert [finding.code for finding in archive.findings] == [code]
    assert archive.exchanges[-1].read_body() == BODY


def test_a_flow_file_cut_anywhere(tmp_path: Path) -> None:
    flow = dump({"request": request(), "response": None})
    path = tmp_path / "flows"
    for end in range(len(flow) + 1, 2 * len(flow), 7):
        path.write_bytes((flow * 2)[:end])
        archive = read_capture(path)
        assert [finding.code for finding in archive.findings] in (["capture/torn-record"], ["capture/bad-record"])
        assert [exchange.read_body() for exchange in archive.exchanges] == [BODY]
    path.write_bytes(gzip.compress(flow))
    assert read_capture(path).exchanges[0].read_body() == BODY


def escaped(text: str) -> str:
    """As nginx writes a variable by default."""
    data = text.encode()
    return "".join(chr(byte) if 32 <= byte <= 126 and byte not in (34, 92) else f"\\x{byte:02X}" for byte in data)


WIDE = '{"model":"m","messages":[{"role":"user","content":"é\\n\\"{x} 😀\\\\"}]}'


@pytest.mark.parametrize(
    "line",
    [
        '10.0.0.7 - - [01/Dec/2026:10:00:00 +0000] "POST {path} HTTP/1.1" 200 512 "-" "node" "{body}"',
        '[01/Dec/2026] "POST {path} HTTP/2.0" 200 "{body}" "node" 0.012',
        '10.0.0.7 "POST {path} HTTP/1.1" 200 {body} end',
        '{{"time":"x","request":"POST {path} HTTP/1.1","status":200,"request_body":"{body}"}}',
        '{{"method":"POST","uri":"{path}","status":200,"request_body":"{body}"}}',
    ],
)
def test_access_logs_lose_nothing(tmp_path: Path, line: str) -> None:
    path = tmp_path / "access.log"
    lines = [line.format(path=CHAT, body=escaped(body)) for body in (TEXT, WIDE, TEXT)]
    path.write_text("\n".join([*lines, line.format(path="/x", body="-").replace("POST", "GET"), ""]))
    exchanges = [item for item in read_capture(path).exchanges if item.kind == "chat-completions"]
    assert [exchange.read_body() for exchange in exchanges] == [BODY, WIDE.encode(), BODY]
    assert {(exchange.status, exchange.fidelity) for exchange in exchanges} == {(200, Fidelity.TEXT)}


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        ('"-"', "capture/no-body", "the log holds no body"),
        ("-", "capture/no-body", "the log holds no body"),
        (f'"{escaped(TEXT)[:80]}', "capture/truncated-body", "the body is cut after"),
    ],
)
def test_access_log_without_the_body(tmp_path: Path, body: str, code: str, why: str) -> None:
    path = tmp_path / "access.log"
    path.write_text(f'10.0.0.7 - - [x] "POST {CHAT} HTTP/1.1" 200 512 "-" "node" {body}\n')
    archive = read_capture(path)
    assert [finding.code for finding in archive.findings] == [code]
    assert archive.exchanges[0].truncation is not None
    assert archive.exchanges[0].truncation.startswith(why)


RECORDS = [{"method": "POST", "url": CHAT, "body": TEXT}, {"path": CHAT[1:], "request": json.loads(BODY)}]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(RECORDS).encode(),
        json.dumps(RECORDS, indent=1).encode("utf-8-sig"),
        "\n".join(map(json.dumps, RECORDS)).encode("utf-16"),
        "\r\n".join(map(json.dumps, RECORDS)).encode("utf-16-le"),
        gzip.compress(json.dumps(RECORDS).encode("utf-16-be"), mtime=0),
    ],
)
def test_arrays_encodings_and_gateway_records(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "log").write_bytes(data)
    exchanges = read_capture(tmp_path / "log").exchanges
    assert [(item.kind, item.url_path, item.fidelity) for item in exchanges] == [
        ("chat-completions", CHAT, Fidelity.TEXT),
        ("chat-completions", CHAT, Fidelity.JSON),
    ]
    assert [item.read_body() for item in exchanges] == [BODY, BODY]


def test_litellm_members_are_left_out_and_told(tmp_path: Path) -> None:
    body = json.loads(BODY) | {"litellm_metadata": {"user_api_key": "x"}, "litellm_call_id": "c"}
    record = {"litellm_params": {"proxy_server_request": {"url": f"http://h{CHAT}", "method": "POST", "body": body}}}
    shortened = json.dumps(record).replace('"hi"', '"a... (litellm_truncated 9 chars) ...b"')
    cut = json.loads(shortened.replace('"c"', '"d"'))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(item) + "\n" for item in (record, record, cut)))
    archive = read_capture(tmp_path / "a.jsonl")
    assert [item.fidelity for item in archive.exchanges] == [Fidelity.JSON, Fidelity.PARTIAL]
    assert archive.exchanges[0].read_body() == BODY
    assert [(finding.code, finding.message) for finding in archive.findings][1:3] == [
        ("capture/skipped-record", "1 record left out, the first on line 2"),
        ("capture/added-members", "left out of the bodies: litellm_call_id (2), litellm_metadata (2)"),
    ]


@pytest.mark.parametrize(
    "data",
    [b"interactions: [", b"interactions: 7\n", b'{"version": 1, "interactions": [', b'{"interactions":[',
     b"interactions:\n- !!python/name:os.x\n", b"interactions: " + b"[" * 5000],
)  # fmt: skip
def test_no_cassette(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CaptureError) as caught:
        read_capture(tmp_path / "a")
    assert "\n" not in caught.value.message


def database(name: str) -> bytes:
    return b"SQLite format 3\0" + f"CREATE TABLE {name} (x)".encode()


TAR = b"captures/0000.body".ljust(257, b"\0") + b"ustar\0".ljust(512, b"\0")


@pytest.mark.parametrize(
    ("data", "what", "hint"),
    [
        (database("t"), "an SQLite database", "sqlite3 -json"),
        (database("record_blobs"), "an SQLite database", "claude-tap export"),
        (TAR, "a tar archive", "Unpack"),
        (gzip.compress(TAR, mtime=0), "a tar archive", "Unpack"),
        (b"PK\x03\x04....", "a ZIP archive", "Unpack"),
        (b"\x0a\x0d\x0d\x0a....", "a packet capture", "mitmdump"),
        (b"<!doctype html>", "an HTML page", "HAR"),
        (b"%PDF-1.7", "a PDF", ""),
    ],
)
def test_what_is_no_capture_is_named(tmp_path: Path, data: bytes, what: str, hint: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(CaptureError) as caught:
        read_capture(tmp_path / "a")
    assert caught.value.message.endswith(f"no capture: {what}")
    assert hint in (caught.value.hint or "")


def test_a_folder_or_a_log_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "flows.mitm").touch()
    with pytest.raises(CaptureError) as caught:
        read_capture(tmp_path)
    assert caught.value.hint == "Did you mean flows.mitm in it?"
    with pytest.raises(CaptureError) as caught:
        read_capture(next((ROOT / "golden" / "v0-tools" / "sessions").rglob("session.jsonl")))
    assert "give it as LOG" in (caught.value.hint or "")


def inspect(*paths: Path, **options: str) -> tuple[int, Any]:
    named = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    done = run("capture", "inspect", *paths, *named, "--format", "json")
    report = json.loads(done.stdout)
    schema = json.loads((ROOT / "schemas" / "capture-inspect.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(report)
    return done.returncode, report["archives"]


@pytest.mark.parametrize(
    ("name", "tool", "claims"),
    [
        ("mitmproxy-12.3.1.mitm", "mitmproxy", {"identical": 5}),
        ("mitmproxy-11.0.2.har", "mitmproxy 11.0.2", {"identical": 5}),
        ("mitmproxy-11.0.2-streamed.mitm", "mitmproxy", {"not-checked": 3}),
        ("vcrpy-9.4.2.yaml", "vcrpy", {"identical": 5}),
        ("claude-tap-0.1.146.ctap.json", "claude-tap", {"same-json": 3}),
        ("litellm-1.108.7.jsonl", "LiteLLM", {"same-json": 2}),
    ],
)
def test_inspect_says_what_can_be_claimed(name: str, tool: str, claims: dict[str, int]) -> None:
    code, (archive,) = inspect(SAMPLES / name)
    assert code == ("not-checked" in claims)
    assert (archive["tool"], archive["verified"], archive["counts"]["claims"]) == (tool, True, claims)
    shown = run("capture", "inspect", SAMPLES / name).stdout.decode()
    assert "sk-toy" not in shown and f"{sum(claims.values())} {next(iter(claims))}" in shown


def test_inspect_keeps_the_digest_of_the_bytes_as_sent(tmp_path: Path) -> None:
    packed = gzip.compress(BODY, mtime=0)
    headers = pairs([["content-encoding", "gzip"], ["x-api-key", "sk-secret"]])
    _, (archive,) = inspect(write_flows(tmp_path, {"request": request(content=packed, headers=headers)}))
    (item,) = archive["exchanges"]
    assert (item["encoded"]["sha256"], item["body"]["sha256"]) == (sha256(packed).hexdigest(), sha256(BODY).hexdigest())
    assert item["masked"] == ["x-api-key"]


def test_unverified_tools_say_so(tmp_path: Path) -> None:
    path = write_har(tmp_path / "a.har", har_entry(bodySize=len(BODY)))
    assert "an unknown tool (unverified: " in run("capture", "inspect", path).stdout.decode()


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b" \n" + json.dumps(RECORDS[0]).encode())
    assert inspect(path, capture_format="jsonl")[1][0]["format"] == "jsonl"
    done = run("capture", "inspect", path, "--capture-format", "mitmproxy")
    assert done.returncode == 2
    assert tuple(importer.format for importer in IMPORTERS) == CAPTURE_FORMATS


def test_one_run_captured_twice(tmp_path: Path) -> None:
    log = ROOT / "golden" / "v0-tools" / "sessions"
    flows, har = SAMPLES / "mitmproxy-11.0.2.mitm", SAMPLES / "mitmproxy-11.0.2.har"
    done = run("verify", log, "--capture", flows, "--capture", har, "--format", "json")
    report = json.loads(done.stdout)
    counts = {key: count for key, count in report["summary"].items() if count}
    assert (done.returncode, counts) == (0, {"captured": 10, "identical": 5, "other": 5})
    notes = [pair["notes"] for pair in report["pairs"] if pair["verdict"] == "other"]
    assert all("one request, captured twice" in note[0] for note in notes)
