"""For every finding code a small run that gives it; its files are written to the current directory."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.attachments.references import Reference
from dsh_audit.attachments.versions import default_policy
from dsh_audit.capture.files import read_regular
from dsh_audit.deployment import Deployment
from dsh_audit.log import container
from dsh_audit.log.generations import build_history
from dsh_audit.replay.session_replay import Replay
from dsh_audit.request.neutral import COMPACTION_INSTRUCTION
from dsh_audit.wire import constants
from tests import image_home
from tests.capture_files import BODY, write_har, write_pair
from tests.captures import write_bundle
from tests.cli import run
from tests.golden_logs import EDITS, GOLDEN, TOOLS_LOG, edited
from tests.logs import SessionV0, frame, two_turns
from tests.toy_session import ToySession, usage

Patch = pytest.MonkeyPatch
Make = Callable[[Patch], list[str]]
LOG, ZSTD = "session.jsonl", "session.jsonl.zstd"
LONG = "word " * 2000
ROWS = two_turns().plain().splitlines(keepends=True)
MIGRATED = GOLDEN / "mig-v3-v4" / "sessions" / "--srv-toy-ws--" / "sess-1"


def write(data: bytes, name: str = LOG, command: str = "inspect") -> list[str]:
    """A command on a file of these bytes."""
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(data)
    return [command, name]


def log(*rows: bytes, name: str = LOG, command: str = "inspect") -> Make:
    return lambda _: write(b"".join(rows), name, command)


def session(build: Callable[[SessionV0], object], command: str = "inspect") -> Make:
    """Two turns, and what ``build`` adds."""

    def make(_: Patch) -> list[str]:
        toy = two_turns()
        build(toy)
        return write(toy.plain(), command=command)

    return make


def without(key: str, *keys: str) -> bytes:
    rows = [{name: value for name, value in row.items() if name not in (key, *keys)} for row in two_turns().rows[1:]]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def off_surface(toy: SessionV0) -> None:
    message = toy.message("user", [], {"kind": "user"})
    toy.add("user/message", message, surfaceOp={"op": "replace", "start": 1, "end": 1}, sourceEventSeqs=[1])


def mixed(_: Patch) -> list[str]:
    write(two_turns().plain(), f"toy/{LOG}")
    write(two_turns().zstd(), f"toy/{ZSTD}")
    return ["inspect", "toy"]


def as_migrated(_: Patch) -> list[str]:
    return write((MIGRATED / "session.v4.jsonl").read_bytes(), "session.v4.jsonl", "requests")


def not_continued(_: Patch) -> list[str]:
    rows = (MIGRATED / "session.v3.jsonl").read_bytes().splitlines(keepends=True)
    row = json.loads(rows[3])
    rows[3] = json.dumps({**row, "time": row["time"] + 1}).encode() + b"\n"
    write(b"".join(rows), "sess-1/session.v3.jsonl")
    write((MIGRATED / "session.v4.jsonl").read_bytes(), "sess-1/session.v4.jsonl")
    return ["requests", "sess-1"]


def huge_row(patch: Patch) -> list[str]:
    patch.setattr(container, "MAX_ROW_BYTES", 1 << 16)
    return write(frame(ROWS[0]) + frame(b"x" * (1 << 18)), ZSTD)


def wrong_type(_: Patch) -> list[str]:
    toy = two_turns()
    toy.rows[1]["time"] = "noon"
    return [*write(toy.plain()), "--schema"]


def one_empty(_: Patch) -> list[str]:
    write(two_turns().plain(), f"logs/a/{LOG}")
    write(b"", f"logs/b/{LOG}")
    return ["inspect", "logs"]


def traversal(_: Patch) -> list[str]:
    with zipfile.ZipFile("evil.zip", "w") as archive:
        archive.writestr(f"../../escaped/{LOG}", two_turns().plain())
    return ["inspect", "evil.zip"]


def bodies_of(toy: SessionV0) -> list[bytes]:
    replay = Replay(build_history(toy.log()), Deployment())
    return [item.encoded.body.to_bytes() for item in replay if item.encoded.body is not None]


def verified(spoil: Callable[[Path, Patch], object]) -> Make:
    """The captures of a sound session in the folder ``c``, and what ``spoil`` does to them."""

    def make(patch: Patch) -> list[str]:
        write(two_turns().plain())
        spoil(write_bundle(Path("c"), bodies_of(two_turns())), patch)
        return ["verify", LOG, "--capture", "c"]

    return make


def paired(name: str, body: bytes | None = BODY, *headers: tuple[str, str], **meta: Any) -> Make:
    """One more pair in the folder."""
    return verified(lambda folder, _: write_pair(folder, name, body, headers, **meta))


def archive(name: str, content: bytes) -> Make:
    """An archive in one file."""

    def make(_: Patch) -> list[str]:
        write(two_turns().plain())
        write(content, name)
        return ["verify", LOG, "--capture", name]

    return make


def har(entry: dict[str, Any]) -> Make:
    def make(_: Patch) -> list[str]:
        write(two_turns().plain())
        return ["verify", LOG, "--capture", str(write_har(Path("a.har"), entry))]

    return make


def record(**members: Any) -> bytes:
    return json.dumps({"method": "POST", "url": "/v1/chat/completions", "body": BODY.decode()} | members).encode()


def added_members() -> bytes:
    return record(body=json.loads(BODY) | {"litellm_call_id": "c"})


def meta(data: bytes) -> Make:
    """Another meta file of the second request."""
    return verified(lambda folder, _: (folder / "0001.meta.json").write_bytes(data))


def unreadable(folder: Path, patch: Patch) -> None:
    def read(path: Path, limit: int) -> bytes | None:
        if path.name == "0001.meta.json":
            raise PermissionError(13, "Permission denied")
        return read_regular(path, limit)

    patch.setattr("dsh_audit.capture.bundle.read_regular", read)


def link(folder: Path, _: Patch) -> None:
    (folder / "0001.body").rename("elsewhere")
    (folder / "0001.body").symlink_to(Path("elsewhere").resolve())


def two_copies(_: Patch) -> list[str]:
    write(two_turns().plain(), f"logs/a/{LOG}")
    write(b"".join(ROWS[:12]), f"logs/b/{LOG}")
    write_bundle(Path("c"), bodies_of(two_turns()))
    return ["verify", "logs", "--capture", "c"]


def edit_body(folder: Path, _: Patch) -> None:
    path = folder / "0001.body"
    path.write_bytes(path.read_bytes().replace(b"What is 1+2?", b"What is 2+2?"))


def repeat_body(folder: Path, _: Patch) -> None:
    write_bundle(folder, [*bodies_of(two_turns()), bodies_of(two_turns())[2]])


def cache(build: Callable[[ToySession], object], *options: str, version: int = 0) -> Make:
    """The cache report of a toy session."""

    def make(_: Patch) -> list[str]:
        toy = ToySession(version)
        build(toy)
        name = LOG if version == 0 else f"session.v{version}.jsonl"
        return [*write(toy.plain(), name, "cache"), *options]

    return make


def missed(pause_s: float, *, fails: bool = False, blocks: int = 0, **settings: Any) -> Callable[[ToySession], object]:
    """A second turn whose prompt only grew and that the provider read nothing of."""

    def build(toy: ToySession) -> None:
        toy.ask(LONG, counts=usage(4000, 0))
        for _ in range(blocks):
            toy.user("note")
        toy.settings = settings
        toy.time_ms += int(pause_s * 1000)
        toy.begin("two")
        if fails:
            toy.fail()
        toy.answer("Done.", counts=usage(4100, 0))

    return build


def replaced(toy: ToySession) -> None:
    toy.ask("one")
    toy.replace("user/message", toy.message("user", "other words", toy.source("toy")), [toy.surface[0]])
    toy.ask("two")


def compacted_apart(patch: Patch) -> list[str]:
    """A compaction that pays for the prompt which it shares with the steps."""
    text = "Sum up."
    known = constants.Constant(COMPACTION_INSTRUCTION, len(text), hashlib.sha256(text.encode()).hexdigest())
    patch.setitem(constants.CONSTANTS, COMPACTION_INSTRUCTION, known)
    Path("sum-up.txt").write_text(text, "utf-8")

    def build(toy: ToySession) -> None:
        toy.ask(LONG, counts=usage(4000, 0))
        toy.time_ms += 60_000
        toy.ask("two", counts=usage(100, 3968))
        toy.compact(toy.surface[1:3], counts=usage(4100, 0))

    return cache(build, "--constant", f"{COMPACTION_INSTRUCTION}=sum-up.txt", version=4)(patch)


def mode_switched(toy: ToySession) -> None:
    toy.ask("one")
    toy.add("plan/mode", {"mode": "plan"})
    toy.prompt = "Plan errands."
    toy.ask("two")


def with_image(is_offloaded: bool) -> Make:
    """A message with an image, whose requests are known from the capture; the second differs in it."""

    def make(_: Patch) -> list[str]:
        toy = ToySession(4)
        image = {"type": "image", "attachmentId": "0" * 64, "mediaType": "image/png"}
        toy.begin("Look")
        toy.rows[toy.surface[-1] + 1]["data"]["content"].append(image)
        toy.answer("A well.")
        if is_offloaded:
            toy.add("image/offload", {"targets": [{"seq": toy.surface[1], "imageIndexes": [0]}]})
        toy.begin("Go on")
        toy.answer("Gone.")
        log_file = write(toy.plain(), "session.v4.jsonl")[1]
        first, answer, more = ({"role": role, "content": text} for role, text in (
            ("user", "Look [image]"), ("assistant", "A well."), ("user", "Go on")))  # fmt: skip
        changed = {"role": "user", "content": "Look [note]"}
        values = [{"model": toy.model, "system": toy.prompt, "messages": messages, "max_tokens": 9}
                  for messages in ([first], [changed, answer, more])]  # fmt: skip
        write_bundle(Path("c"), [json.dumps(value).encode() for value in values], "toy", "/anthropic/v1/messages")
        return ["cache", log_file, "--capture", "c"]

    return make


def damaged_store(damage: str) -> Make:
    """A session in a home with two images, one of them damaged."""

    def make(_: Patch) -> list[str]:
        one, two = image_home.png(60, 40), image_home.png(20, 20)
        home = Path("home")
        folder = image_home.store(home, one, two)
        place = image_home.place_of(folder, image_home.ident(one))
        media_type = "image/gif" if damage == "mistyped" else "image/png"
        if damage == "missing":
            place.unlink()
        elif damage in ("altered", "swapped"):
            place.write_bytes(two if damage == "swapped" else one[:-1])
        block = image_home.image(one, 60, 40, media_type)
        if damage == "version":
            block["attachment"].update(width=1800, height=1500)
            reference = Reference(image_home.ident(one), media_type, 1800, 1500, len(one))
            version = default_policy("request-image-v4").variant_id(reference)
            cached = image_home.place_of(home / "attachments/v1/request-images", version)
            cached.parent.mkdir(parents=True)
            cached.write_bytes(b"?")
        return ["requests", str(image_home.shown(home, [["first"], ["look", block]]))]

    return make


def rewritten(_: Patch) -> list[str]:
    write(two_turns().plain())
    sent = bodies_of(two_turns())
    write_bundle(Path("c"), [*sent[:2], sent[2].replace(b"What is 1+2?", b"What is 2+2?")])
    return ["cache", LOG, "--capture", "c"]


def altered(_: Patch) -> list[str]:
    case = GOLDEN / "v4-upload-alone"
    shutil.copytree(case / "captures", "c")
    body = Path("c/0000.body")
    head, field = body.read_bytes().split(b'"dsh_session_log"')
    body.write_bytes(head + b'"dsh_session_log"' + field.replace(b'"text":"one"', b'"text":"0ne"'))
    (source,) = case.glob("sessions/*/*/session.v4.jsonl")
    return [*write(source.read_bytes(), "session.v4.jsonl", "uploads"), "--capture", "c"]


def renamed(_: Patch) -> list[str]:
    (source,) = GOLDEN.glob("v4-tools/sessions/*/*/session.v4.jsonl")
    head, rest = source.read_bytes().split(b"\n", 1)
    return write(head.replace(b'"sess-1"', b'"imported"') + b"\n" + rest, "session.v4.jsonl", "uploads")


def golden(edit: str | None, *options: str) -> Make:
    """A recorded case, and the check after an edit of its log; without the edit the log is gone."""

    def make(patch: Patch) -> list[str]:
        patch.delenv("CI", raising=False)
        edited(TOOLS_LOG, Path("logs") / LOG, EDITS["effort"][0])
        assert run("golden", "record", f"logs/{LOG}", "-o", "cases", "--name", "tools").returncode == 0
        if edit is None:
            Path("logs", LOG).unlink()
        else:
            edited(TOOLS_LOG, Path("logs") / LOG, EDITS[edit][0])
        return ["golden", "check", "cases", *options]

    return make


def unpinned(patch: Patch) -> list[str]:
    """Logs of other sessions than the one that is pinned."""
    arguments = golden("effort")(patch)
    for ident in ("sess-2", "sess-3"):
        write(TOOLS_LOG.read_bytes().replace(b"sess-1", ident.encode()), f"runs/{ident}/{LOG}")
    return [*arguments, "--log", "runs"]


def not_as_captured(patch: Patch) -> list[str]:
    patch.delenv("CI", raising=False)
    edited(TOOLS_LOG, Path(LOG), EDITS["prompt-edited"][0])
    captures = os.path.relpath(GOLDEN / "v0-tools" / "captures")
    return ["golden", "record", LOG, "--capture", captures, "-o", "cases", "--name", "tools"]


def two_runs(edit: str) -> Make:
    def make(_: Patch) -> list[str]:
        write(TOOLS_LOG.read_bytes())
        edited(TOOLS_LOG, Path("other") / LOG, EDITS[edit][0])
        return ["diff", LOG, f"other/{LOG}"]

    return make


def without_body(_: Patch) -> list[str]:
    for name in ("one", "two"):
        write_bundle(Path(name), bodies_of(two_turns()))
    Path("two/0001.body").unlink()
    return ["diff", "one", "two"]


def recorded(case: str, output: str) -> Make:
    """A command of a golden case, run where it was recorded."""

    def make(patch: Patch) -> list[str]:
        patch.chdir(GOLDEN / case)
        command: str = json.loads(Path("expected/commands.json").read_bytes())[output]["command"]
        return command.split()

    return make
