"""Requests with images: what is written, what stays open, and what damaged stores and captures show."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dsh_audit import open_session
from dsh_audit.attachments.references import Reference
from dsh_audit.attachments.versions import default_policy
from dsh_audit.wire.constants import CONSTANTS, Constant
from dsh_audit.wire.images import OffloadLimits
from tests.captures import write_bundle
from tests.cli import run
from tests.image_home import ident, image, index, jpeg, place_of, png, shown, store
from tests.toy_session import ToySession

Json = Any
A, B, C = png(60, 40), png(20, 20), png(1800, 1500)
TEXTS = {"image-handle-path": "p" * 63, "image-handle-editing": "e" * 90, "image-offload-start": "o" * 44}


def report(*arguments: str | Path, status: int = 0) -> Json:
    done = run(*arguments, "--format", "json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def rendered(log: Path, request: int, *more: str) -> bytes:
    done = run("render", log, "--request", str(request), *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def texts_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of the harness are not shipped; ours take their place."""
    for name, text in TEXTS.items():
        known = Constant(name, len(text), hashlib.sha256(text.encode()).hexdigest())
        monkeypatch.setitem(CONSTANTS, name, known)


def deployed(tmp_path: Path, **more: Json) -> list[str]:
    """A deployment file with texts of our own."""
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    settings = {"harness": {"home": "/srv/home"}, "constants": {name: name for name in TEXTS}, **more}
    (tmp_path / "dep.json").write_text(json.dumps(settings))
    return ["--deployment", str(tmp_path / "dep.json")]


def data_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


TWO: list[list[Json]] = [["look", image(A, 60, 40, name="a.png"), "and", image(B, 20, 20)], ["go on"]]


def test_files_by_the_index(tmp_path: Path) -> None:
    store(tmp_path, A, B)
    index(tmp_path, {"file-1": A, "file-2": B})
    log = shown(tmp_path, TWO)
    messages = json.loads(rendered(log, 1, "--part", "messages"))
    assert messages[1]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "text", "text": f"\nImage {ident(A)}; request image 60x40px."},
        {"type": "file", "file_id": "file-1"},
        {"type": "text", "text": "and"},
        {"type": "text", "text": f"\nImage {ident(B)}; request image 20x20px."},
        {"type": "file", "file_id": "file-2"},
    ]
    rows = report("requests", log)["requests"]
    assert [row["claim"] for row in rows] == ["logical"] * 2 and "does not say" in rows[0]["why"][0]
    assert [(one["attachment"], one["count"], one["sent_as"]) for one in rows[1]["images"]] == [
        (ident(A), 1, "file or inline"),
        (ident(B), 1, "file or inline"),
    ]


def test_inline_where_the_release_has_no_files(tmp_path: Path) -> None:
    store(tmp_path, A, B)
    log = shown(tmp_path, TWO)
    (tmp_path / "dep.toml").write_text('[harness]\nversion = "0.1.0-rc.8"\n')
    known = ["--deployment", str(tmp_path / "dep.toml")]
    messages = json.loads(rendered(log, 0, "--part", "messages", *known))
    kinds = [part["type"] for part in messages[1]["content"]]
    assert kinds == ["text", "image_url", "text", "image_url"]
    assert messages[1]["content"][1]["image_url"]["url"] == data_url(A)
    assert {row["claim"] for row in report("requests", log, *known)["requests"]} == {"bytes"}


@pytest.mark.parametrize("version", [3, 4])
def test_named_handles(version: int, tmp_path: Path) -> None:
    store(tmp_path, A, B)
    log = shown(tmp_path, TWO, version)
    body = rendered(log, 0, "--part", "messages", *deployed(tmp_path)).decode()
    path = f'\\"/srv/home/attachments/v1/objects/{ident(A)[7:9]}/{ident(A)[7:]}\\"'
    subject = f'Image \\"a.png\\" ({ident(A)}); request preview 60x40'
    assert f"{subject}{'p' * 63}{path} (60x40px, image/png{'e' * 90}.png before editing." in body
    assert base64.b64encode(A).decode() in body


def test_a_version_comes_from_the_cache_and_its_size_by_formula_without(tmp_path: Path) -> None:
    store(tmp_path, C)
    log = shown(tmp_path, [[image(C, 1800, 1500)]], 3)
    known = deployed(tmp_path)
    done = run("render", log, "--request", "0", *known)
    assert done.returncode == 2 and b"not in the cache any more" in done.stderr
    variant = default_policy("request-image-v5").variant_id(Reference(ident(C), "image/png", 1800, 1500, len(C)))
    place = place_of(tmp_path / "attachments/v1/request-images", variant)
    place.parent.mkdir(parents=True)
    sent = jpeg(876, 730)
    place.write_bytes(sent)
    body = rendered(log, 0, *known)
    assert b"request preview 876x730" in body and base64.b64encode(sent) in body
    place.write_bytes(sent[:-5])
    found = report("requests", log, *known, status=1)["findings"]
    assert [(one["code"], one["details"]["requests"]) for one in found] == [("attachments/damaged-version", [0])]


def test_a_placeholder_shows_what_cannot_be_written(tmp_path: Path) -> None:
    log = shown(tmp_path, TWO, 4)
    done = run("render", log, "--request", "1", "--part", "messages")
    assert done.returncode == 0 and b"not byte-exact" in done.stderr
    blocks = json.loads(done.stdout)[0]["content"]
    assert f'[image "a.png" {ident(A)} (image/png, 60x40, {len(A)} bytes)' in blocks[1]["text"]
    assert run("render", log, "--request", "1").returncode == 2


def test_marked_images_are_notes(tmp_path: Path) -> None:
    toy = ToySession(4)
    toy.begin("Look")
    toy.rows[toy.surface[-1] + 1]["data"]["content"].append(image(A, 60, 40))
    toy.answer("A well.")
    toy.add("image/offload", {"targets": [{"seq": toy.surface[1], "imageIndexes": [0]}]})
    toy.begin("Go on")
    toy.answer("Gone.")
    store(tmp_path, A)
    log = tmp_path / "session.v4.jsonl"
    log.write_bytes(toy.plain())
    known = [*deployed(tmp_path), "--home", str(tmp_path)]
    rows = report("requests", log, *known)["requests"]
    assert [row["images"][0]["sent_as"] for row in rows] == ["file or inline", "note"]
    note = json.loads(rendered(log, 1, "--part", "messages", *known))[0]["content"][1]["text"]
    assert note.startswith("o" * 44 + ident(A) + "p" * 61) and note.endswith(".png before editing.]")


@pytest.mark.parametrize(
    ("what", "limits", "sizes", "count"),
    [
        ("within", OffloadLimits(100, 50, 3, 2), [10, 10, 10], 0),
        ("one image too many takes a whole step", OffloadLimits(100, 50, 3, 2), [10] * 4, 2),
        ("bytes go past the step", OffloadLimits(100, 50, None, 1), [25] * 5, 3),
        ("a step of one byte is reached", OffloadLimits(100, 1, None, 1), [25] * 5, 1),
        ("base64", OffloadLimits(100, 1, None, 1, True), [27, 30, 30], 1),
        ("more than there is", OffloadLimits(1, 50, None, 1), [25], 1),
    ],
)
def test_offload(what: str, limits: OffloadLimits, sizes: list[int], count: int) -> None:
    assert limits.count(sizes) == count


def test_old_images_are_left_out_request_by_request(tmp_path: Path) -> None:
    store(tmp_path, A, B)
    log = shown(tmp_path, [[image(A, 60, 40)], [image(B, 20, 20)]], 3)
    known = deployed(tmp_path, providers={"deepseek-official": {"max_images": 1}})
    rows = report("requests", log, *known)["requests"]
    kinds = [[one["sent_as"] for one in row["images"]] for row in rows]
    assert kinds == [["file or inline"], ["note", "note"]]  # steps of 20


def captured(tmp_path: Path, log: Path, bodies: list[bytes], *more: str, status: int = 0) -> Json:
    write_bundle(tmp_path / "captures", bodies, "toy")
    return report("verify", log, "--capture", tmp_path / "captures", *more, status=status)


def test_every_form_is_compared_and_ids_of_the_capture_are_named(tmp_path: Path) -> None:
    store(tmp_path, A, B)
    index(tmp_path, {"file-1": A, "file-2": B})
    log = shown(tmp_path, [*TWO, ["more"]])
    files = [rendered(log, number) for number in range(3)]
    inline = files[1]
    for name, data in (("file-1", A), ("file-2", B)):
        part = json.dumps({"type": "image_url", "image_url": {"url": data_url(data)}}, separators=(",", ":"))
        inline = inline.replace(f'{{"type":"file","file_id":"{name}"}}'.encode(), part.encode())
    stale = files[2].replace(b'"file-2"', b'"file-9"')
    found = captured(tmp_path, log, [files[0], inline, stale])
    assert [pair["verdict"] for pair in found["pairs"]] == ["identical", "identical", "identical-except-unlogged"]
    assert [[one["sent_as"] for one in pair["images"]] for pair in found["pairs"]] == [
        ["file"] * 2,
        ["inline"] * 2,
        ["file"] * 2,
    ]
    unlogged = found["pairs"][2]["unlogged"]
    assert [(one["name"], one["pointer"]) for one in unlogged] == [("file_id", "/messages/1/content/5/file_id")]
    assert stale[unlogged[0]["offset"] :][: unlogged[0]["size"]] == b'"file-9"'


def test_lost_ids_come_from_the_capture_and_everything_else_is_compared(tmp_path: Path) -> None:
    store(tmp_path, A, B)
    index(tmp_path, {"file-1": A, "file-2": B})
    log = shown(tmp_path, TWO)
    bodies = [rendered(log, number) for number in range(2)]
    index(tmp_path, {"file-1": A})
    found = captured(tmp_path, log, bodies)
    for pair in found["pairs"]:
        assert pair["verdict"] == "identical-except-unlogged"
        assert [one["pointer"] for one in pair["unlogged"]] == ["/messages/1/content/5/file_id"]
    edited = captured(tmp_path, log, [body.replace(b'"look"', b'"book"') for body in bodies], status=1)
    assert {pair["verdict"] for pair in edited["pairs"]} == {"different"}
    assert edited["pairs"][0]["first_difference"]["pointer"] == "/messages/1/content/0/text"


FAULTS = [
    ("one byte", lambda home: place_of(home, ident(A)).write_bytes(A[:-1] + b"?"), "attachments/altered"),
    ("deleted", lambda home: place_of(home, ident(A)).unlink(), "attachments/missing"),
    ("swapped", lambda home: place_of(home, ident(A)).write_bytes(B), "attachments/swapped"),
]


@pytest.mark.parametrize(("what", "damage", "code"), FAULTS, ids=[case[0] for case in FAULTS])
def test_damage_is_found_with_the_requests_it_affects(what: str, damage: Any, code: str, tmp_path: Path) -> None:
    folder = store(tmp_path, A, B)
    index(tmp_path, {"file-1": A, "file-2": B})
    log = shown(tmp_path, [["first", image(B, 20, 20)], ["second", image(A, 60, 40)], ["third"]])
    bodies = [rendered(log, number) for number in range(3)]
    damage(folder)
    found = captured(tmp_path, log, bodies, status=1)
    assert [(one["code"], one["details"]["requests"]) for one in found["findings"]] == [(code, [1, 2])]
    assert {pair["verdict"] for pair in found["pairs"]} == {"identical"}
    done = run("render", log, "--request", "1")
    assert done.returncode == 2 and ident(A).encode() in done.stderr
    assert run("render", log, "--request", "0").returncode == 0


def test_a_message_that_claims_another_type_is_found(tmp_path: Path) -> None:
    store(tmp_path, A)
    log = shown(tmp_path, [["look", image(A, 60, 40, "image/jpeg")]])
    found = report("requests", log, status=1)["findings"]
    assert [one["code"] for one in found] == ["attachments/mistyped"]


@pytest.mark.parametrize("option", ["--home", "--objects"])
def test_a_store_that_is_not_there_is_an_error(option: str, tmp_path: Path) -> None:
    log = shown(tmp_path, TWO)
    done = run("requests", log, option, str(tmp_path / "nothing"))
    assert done.returncode == 2 and b"nothing" in done.stderr


def test_objects_apart_from_a_home(tmp_path: Path) -> None:
    log = shown(tmp_path / "one", TWO)
    objects = tmp_path / "objects"
    objects.mkdir()
    for data in (A, B):
        (objects / ident(data)[7:]).write_bytes(data)
    (tmp_path / "dep.toml").write_text('[harness]\nversion = "0.1.0-rc.8"\n')
    known = ["--deployment", str(tmp_path / "dep.toml"), "--objects", str(objects)]
    assert {row["claim"] for row in report("requests", log, *known)["requests"]} == {"bytes"}


SEES = {"input": ["text", "image"], "reasoningEfforts": {"high": "high"}}
PI_MODEL = {"id": "m", "contextWindow": 65536, "maxTokens": 4096, **SEES}


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses", "anthropic-messages"])
@pytest.mark.parametrize("version", [0, 4])
def test_routes_of_pi_ai(api: str, version: int, tmp_path: Path) -> None:
    store(tmp_path, A, B)
    turns = [*TWO, [image(A, 60, 40)]]
    log = shown(tmp_path, turns, version, provider="acme", model="m")
    profile = {"api": api, "baseURL": "https://llm.example/v1", "models": [PI_MODEL]}
    acme = {"adapter": "llm-pi-ai", "profile": profile}
    known = deployed(tmp_path, providers={"acme": acme})
    rows = report("requests", log, *known)["requests"]
    assert {(row["claim"], *row["why"]) for row in rows} == {("bytes",)}
    assert {one["sent_as"] for row in rows for one in row["images"]} == {"inline"}
    body = rendered(log, 2, *known)
    assert body.count(base64.b64encode(A)) == 2 and body.count(base64.b64encode(B)) == 1
    place_of(tmp_path / "attachments/v1/objects", ident(B)).unlink()
    rows = report("requests", log, *known, status=1)["requests"]
    assert [row["body"] for row in rows] == [None] * 3 and ident(B) in rows[0]["why"][0]


def test_a_single_request_takes_its_images_from_a_store(tmp_path: Path) -> None:
    store(tmp_path, A)
    messages = [{"role": "user", "content": [image(A, 60, 40)]}]
    model: dict[str, Json] = {"id": "m", "api": "openai-completions", "provider": "acme", "baseUrl": "https://llm.example/v1"}
    model |= {"contextWindow": 9999, "maxTokens": 9}
    given = {
        "options": {"provider": "acme", "model": "m", "messages": messages},
        "resolvedModel": {**model, "input": ["text", "image"], "reasoning": False},
    }
    (tmp_path / "given.json").write_text(json.dumps(given))
    done = run("encode", tmp_path / "given.json", "--home", tmp_path)
    assert done.returncode == 0, done.stderr
    assert data_url(A).encode() in done.stdout and b"request image 60x40px." in done.stdout
    place_of(tmp_path / "attachments/v1/objects", ident(A)).write_bytes(b"?")
    done = run("encode", tmp_path / "given.json", "--home", tmp_path)
    assert done.returncode == 2 and ident(A).encode() in done.stderr


GOLDEN = Path(__file__).parent.parent / "golden"


def test_an_upload_is_told_with_the_request_that_needed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the capture shows the texts of the harness
    case = tmp_path / "case"
    shutil.copytree(GOLDEN / "v4-images-files", case)
    known: list[str | Path] = [case / "sessions", "--capture", case / "captures", "--home", case / "home"]
    uploads = [pair["upload"] for pair in report("verify", *known)["pairs"] if "upload" in pair]
    assert [(one["needed_by"], one["stored"]) for one in uploads] == [(0, True), (1, True), (1, True)]
    first = case / "captures" / "0000.body"
    data = first.read_bytes()
    at = data.index(b"IDAT")
    first.write_bytes(data[:at] + b"?" + data[at + 1 :])
    pairs = report("verify", *known)["pairs"]
    assert pairs[0]["upload"]["stored"] is False
    first.write_bytes(data.replace(b"created_at", b"created_by"))
    assert "upload" not in report("verify", *known)["pairs"][0]


def test_the_store_of_an_open_session() -> None:
    case = GOLDEN / "v4-images-files"
    session = open_session(case / "sessions", home=case / "home")
    attachments = session.attachments()
    assert attachments is not None and len(attachments.file_records) == 3
    images = [image for request in session.requests() for image in request.images]
    assert all(attachments.object(image.attachment or "") is not None for image in images)
