"""``dsh-audit encode``: one request given as JSON."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run

GOLDEN = Path(__file__).parent.parent / "golden" / "pi-ai"
DEEPSEEK: dict[str, Any] = {
    "provider": "deepseek-official",
    "model": "deepseek-chat",
    "system": "You are a toy.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}], "source": {"kind": "user"}}],
    "maxTokens": 16,
    "reasoningEffort": "high",
}


def test_prints_the_exact_body() -> None:
    case = GOLDEN / "chat-switch"
    done = run("encode", case / "input.json")
    assert (done.returncode, done.stdout) == (0, (case / "body.json").read_bytes())


def test_a_request_that_does_not_leave_is_one_error() -> None:
    done = run("encode", GOLDEN / "chat-stop-refused" / "input.json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: the adapter does not support stop sequences")


@pytest.mark.parametrize("packed", [False, True])
def test_lines_give_a_digest_each(tmp_path: Path, packed: bool) -> None:
    cases = [GOLDEN / name for name in ("chat-switch", "chat-stop-refused", "claude-oauth")]
    rows: list[Any] = [json.loads((case / "input.json").read_bytes()) for case in cases]
    google = {**rows[0], "resolvedModel": {"id": "g", "api": "google-generative-ai", "input": ["text"]}}
    google["resolvedModel"] |= {"provider": "g", "baseUrl": "u", "reasoning": False}
    lines = [*rows, {"input": rows[0]}, google, 5]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines) + b"{\n"
    file = tmp_path / "rows"
    file.write_bytes(gzip.compress(data) if packed else data)
    done = run("encode", "--jsonl", file)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    bodies = [(case / "body.json").read_bytes() if (case / "body.json").exists() else b"" for case in cases]
    digests = [{"size": len(body), "sha256": hashlib.sha256(body).hexdigest()} for body in bodies]
    assert done.returncode == 0
    assert [found[0], found[2], found[3]] == [digests[0], digests[2], digests[0]]
    assert list(found[1]) == list(found[5]) == list(found[6]) == ["error"]
    assert found[4]["rung"] == "logical"


@pytest.mark.parametrize(
    ("protocol", "start"),
    [
        (
            "deepseek-chat-completions",
            b'{"model":"deepseek-chat","messages":[{"role":"system","content":"You are a toy."}',
        ),
        ("deepseek-messages", b'{"model":"deepseek-chat","stream":true,"messages":[{"role":"user","content":'),
    ],
)
def test_the_deepseek_protocols(tmp_path: Path, protocol: str, start: bytes) -> None:
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"protocol": protocol, "options": DEEPSEEK}), "utf-8")
    done = run("encode", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(start)
    assert b'"max_tokens":16' in done.stdout


def test_an_image_without_bytes_takes_those_that_are_named(tmp_path: Path) -> None:
    given = json.loads((GOLDEN / "claude-images" / "input.json").read_bytes())
    for image in given["images"].values():
        del image["data"]
    file, pixel = tmp_path / "input.json", tmp_path / "pixel"
    file.write_text(json.dumps(given), "utf-8")
    pixel.write_bytes(bytes((1, 2, 3, 255)))
    assert run("encode", file).returncode == 2
    done = run("encode", "--image", pixel, file)
    assert done.stdout == (GOLDEN / "claude-images" / "body.json").read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", b"not JSON"),
        ("[]", b"the request has no options"),
        ('{"options":{"provider":"p","model":"m","messages":[]}}', b'the profile describes no model "m"'),
        ('{"protocol":"deepseek-messages"}', b"no options with messages"),
        ('{"protocol":"deepseek-message"}', b"protocol 'deepseek-message' is none of"),
        ('{"protocol":[]}', b"protocol [] is none of"),
        ('{"protocol":"deepseek-messages","options":{"messages":[],"maxTokens":"9"}}', b"maxTokens is not a number"),
        ('{"protocol":"deepseek-messages","options":{"messages":[],"model":{}}}', b"model is not a string"),
        ('{"profileKey":["a"],"options":{"provider":"a","model":"b","messages":[]}}', b"another shape"),
        ('{"protocol":"deepseek-messages","options":{"messages":[5]}}', b"another shape"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, text: str, message: bytes) -> None:
    file = tmp_path / "input.json"
    file.write_text(text, "utf-8")
    done = run("encode", file)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_catalogue_comes_from_an_installed_package(tmp_path: Path) -> None:
    data = tmp_path / "node_modules" / "@earendil-works" / "pi-ai" / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    (data.parents[2] / "package.json").write_text('{"version":"0.84.4"}', "utf-8")
    entry = {"id": "known", "api": "openai-responses", "baseUrl": "u", "reasoning": False, "input": ["text"]}
    group = {"openai-responses": {"known": {**entry, "contextWindow": 9000, "maxTokens": 77}}}
    (data / "acme.json").write_text(json.dumps(group), "utf-8")
    given = {"options": {**DEEPSEEK, "provider": "acme", "model": "known"}, "profile": {}}
    del given["options"]["reasoningEffort"], given["options"]["maxTokens"]
    file = tmp_path / "input.json"
    file.write_text(json.dumps(given), "utf-8")
    done = run("encode", file, "--catalog", tmp_path)
    assert b'"max_output_tokens":77' in done.stdout, done.stderr
    assert run("encode", file, "--catalog", data).returncode == 2


@pytest.mark.parametrize(
    ("package", "provider"),
    [
        ("{", "{}"),
        ("[]", "{}"),
        ('{"version":"1.3.0"}', "[]"),
        ('{"version":"1.3.0"}', '{"a":{"b":5}}'),
        ('{"version":"1.3.0"}', '{"a":{"b":{"id":[],"api":"x"}}}'),
        ('{"version":"1.3.0"}', '{"a":{"b":{"id":"known","api":[]}}}'),
        ('{"version":"1.3.0"}', '{"a":{"b":{"id":"known","api":"openai-responses"}}}'),
        ('{"version":"../../x"}', "{}"),
    ],
)
def test_a_hostile_catalogue_is_one_error(tmp_path: Path, package: str, provider: str) -> None:
    data = tmp_path / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    (tmp_path / "package.json").write_text(package, "utf-8")
    (data / "acme.json").write_text(provider, "utf-8")
    (data.parent / "acme.js").write_bytes(b'baseUrl: "\xff"')
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"options": {**DEEPSEEK, "provider": "acme", "model": "known"}}), "utf-8")
    done = run("encode", file, "--catalog", tmp_path)
    assert done.returncode == 2 and b"internal" not in done.stderr and done.stdout == b""


def test_a_damaged_gzip_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "rows.gz"
    file.write_bytes(gzip.compress(json.dumps({"options": DEEPSEEK}).encode() * 50)[:-20])
    done = run("encode", "--jsonl", file)
    assert done.returncode == 2 and b"damaged gzip" in done.stderr


def test_a_request_nested_too_deeply_is_one_error(tmp_path: Path) -> None:
    given = json.loads((GOLDEN / "chat-switch" / "input.json").read_bytes())
    given["options"]["messages"] = [{"role": "user", "content": "HERE"}]
    deep = '[{"type":"tool-result","toolCallId":"a","content":' * 3000 + "[]" + "}]" * 3000
    file = tmp_path / "input.json"
    file.write_text(json.dumps(given).replace('"HERE"', deep), "utf-8")
    done = run("encode", file)
    assert done.returncode == 2 and b"nested too deeply" in done.stderr
