"""Every key that the deployment schema accepts changes something that is printed."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dsh_audit.wire.constants import CONSTANTS, Constant
from tests.cli import run
from tests.image_home import image, index, png, shown, store

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "golden"
TEXTS = {
    "compaction-instruction": "Sum up the errands so far.",
    "image-handle-path": "p" * 63,
    "image-handle-editing": "e" * 90,
    "image-offload-start": "o" * 44,
}
TEXT_ONLY = "image-text-only"
ONE, TWO = png(60, 40), png(20, 20)
Log = Callable[[Path], Path]


def golden(case: str) -> Log:
    """The log of a golden case."""
    return lambda _folder: next((GOLDEN / case).glob("sessions/*/*"))


def bare(folder: Path) -> Path:
    """A log of format 4 whose header names neither limit nor effort, and whose context names another model."""
    source = next((GOLDEN / "v4-drift-system-changed").glob("sessions/*/*/session*"))
    rows = [json.loads(line) for line in source.read_bytes().splitlines()]
    for row in rows:
        if row["type"] == "request/header":
            row["data"]["header"].pop("adapterDefaults", None)
            for name in ("maxTokens", "reasoningEffort"):
                row["data"]["header"]["config"].pop(name, None)
        elif row["type"] == "request/context":
            row["data"]["model"] = "another"
    log = folder / "session.v4.jsonl"
    log.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    return log


def images(version: int) -> Log:
    """A log with two images, in a home that has them and their file ids."""

    def build(folder: Path) -> Path:
        store(folder, ONE, TWO)
        index(folder, {"file-1": ONE, "file-2": TWO}, recipe=1 if version else 0)
        return shown(folder, [["look", image(ONE, 60, 40)], [image(TWO, 20, 20)]], version)

    return build


def pi(**more: Any) -> dict[str, Any]:
    return {"providers": {"toy": {**PROFILE["providers"]["toy"], **more}}}


PROFILE = json.loads((GOLDEN / "v4-pi-anthropic" / "deployment.json").read_text("utf-8"))
ON: dict[str, Any] = {"extensions": {"session_log": "on"}}
RC8: dict[str, Any] = {"harness": {"version": "0.1.0-rc.8"}}
FILES: dict[str, Any] = {"harness": {"version": "0.1.2-rc.1", "home": "/srv/home"}}
PACKAGES = [{"name": "p", "version": "1"}]

ROUTE: dict[str, tuple[Log, dict[str, Any], Any]] = {
    "protocol": (golden("v3-tools"), {}, "messages"),
    "base_url": (golden("v4-upload-alone"), {}, "http://elsewhere"),
    "thinking": (golden("v4-tools"), {}, "disabled"),
    "default_effort": (bare, {}, "low"),
    "max_tokens": (bare, {}, 99),
    "input": (images(3), {**FILES, "constants": {name: name for name in (*TEXTS, TEXT_ONLY)}}, ["text"]),
    "image_pixels": (images(3), FILES, 1000),
    "image_bytes": (images(3), FILES, 10),
    "max_images": (images(3), FILES, 1),
    "image_count_step": (images(3), {**FILES, "providers": {"*": {"max_images": 1}}}, 1),
    "max_image_bytes": (images(3), FILES, 10),
    "max_inline_bytes": (images(0), RC8, 10),
    "tool_update": (golden("v4-drift-tool-added-pro"), {}, "in-history"),
    "api": (golden("v0-pi-protocols"), {}, "openai-responses"),
    "system_prompt_update": (bare, {}, "in-history"),
}
EFFECTS: dict[str, tuple[Log, dict[str, Any], Any]] = {
    # key of the schema → log, the rest of the file, a value that changes something
    "harness.version": (golden("v3-tools"), {}, "0.1.6-rc.1"),
    "harness.home": (images(3), {}, "/srv/elsewhere"),
    "harness.user_id": (golden("v4-tools"), {}, "someone"),
    "extensions.session_log": (golden("v4-tools"), {}, "off"),
    "extensions.session_log_max_bytes": (golden("v4-retries"), ON, 300),
    "extensions.plugin_packages": (golden("v4-tools"), {}, PACKAGES),
    "extensions.formats.4.session_log": (golden("v4-tools"), {}, "off"),
    "extensions.formats.4.session_log_max_bytes": (golden("v4-retries"), ON, 300),
    "extensions.formats.4.plugin_packages": (golden("v4-tools"), {}, PACKAGES),
    "compaction.retain_tokens": (golden("v0-compaction"), {}, 1),
    "compaction.retain_ratio": (golden("v0-compaction"), {}, 0.9),
    "compaction.max_tokens": (golden("v0-compaction"), {}, 77),
    "constants.compaction-instruction": (golden("v0-compaction"), {}, "compaction-instruction"),
    "pi_ai.version": (golden("v4-pi-anthropic"), PROFILE, "0.60.0"),
    "pi_ai.catalog": (golden("v4-pi-anthropic"), pi(profile={}), "package"),
    "pi_ai.env.PI_CACHE_RETENTION": (golden("v4-pi-anthropic"), PROFILE, "long"),
    "pi_ai.routes": (golden("v4-pi-anthropic"), PROFILE, []),
    "providers.*.adapter": (golden("v4-tools"), {}, "llm-pi-ai"),
    "providers.*.profile": (golden("v4-pi-anthropic"), {}, PROFILE["providers"]["toy"]["profile"]),
    "providers.*.credential": (golden("v4-pi-anthropic"), PROFILE, "oauth"),
    **{f"providers.*.{name}": effect for name, effect in ROUTE.items()},
    **{f"providers.*.models.*.{name}": effect for name, effect in ROUTE.items()},
}


def keys(schema: dict[str, Any], rule: dict[str, Any], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all members that hold a value, ``*`` for a name of the user's choice."""
    shared = schema["$defs"][rule["$ref"].rpartition("/")[2]] if "$ref" in rule else {}
    members = {**shared.get("properties", {}), **rule.get("properties", {})}
    free = [rule.get("additionalProperties"), *rule.get("patternProperties", {}).values()]
    nested = [*members.items(), *(("*", one) for one in free if isinstance(one, dict))]
    for name, member in nested:
        yield from keys(schema, member, (*place, name))
    if not nested:
        yield place


def test_every_key_of_the_schema_is_in_the_table() -> None:
    schema = json.loads((ROOT / "schemas" / "deployment.schema.json").read_text("utf-8"))
    wanted = {".".join(path) for path in keys(schema, schema)}
    free = ("extensions.formats", "constants", "pi_ai.env")
    pattern = re.compile(rf"^({'|'.join(map(re.escape, free))})\.[^.]+")
    assert {pattern.sub(r"\1.*", key) for key in EFFECTS} == wanted


@pytest.fixture(autouse=True)
def texts_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of the harness are not shipped; ours take their place."""
    for name, text in {**TEXTS, TEXT_ONLY: "only text"}.items():
        known = Constant(name, len(text), hashlib.sha256(text.encode()).hexdigest())
        monkeypatch.setitem(CONSTANTS, name, known)


def write_package(folder: Path) -> None:
    """An installed pi-ai with one model."""
    data = folder / "package" / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    (folder / "package" / "package.json").write_text('{"version":"0.82.1"}')
    entry = {"id": "toy-think", "api": "anthropic-messages", "baseUrl": "u", "reasoning": False, "input": ["text"]}
    (data / "toy.json").write_text(json.dumps({"anthropic-messages": {"toy-think": entry}}))


def printed(log: Path, settings: dict[str, Any], folder: Path) -> str:
    """What requests and uploads say under a deployment, the list of its values aside; and the HTTP headers."""
    file = folder / "deployment.json"
    file.write_text(json.dumps(settings))
    home = ["--home", str(folder)] if (folder / "attachments").is_dir() else []
    known = [str(log), "--deployment", str(file)]
    rows = json.loads(run("requests", *known, *home, "--format", "json").stdout)["requests"]
    for row in rows:
        del row["unlogged"]
    sent = json.loads(run("uploads", *known, "--format", "json").stdout)["uploads"]
    return repr((rows, [one["host"] for one in sent], run("render", *known, "--request", "0", "--part", "headers")))


@pytest.mark.parametrize("key", EFFECTS)
def test_each_key_alone_changes_something(key: str, tmp_path: Path) -> None:
    build, settings, value = EFFECTS[key]
    log = build(tmp_path)
    for name, text in {**TEXTS, TEXT_ONLY: "only text"}.items():
        (tmp_path / name).write_text(text)
    write_package(tmp_path)
    rows = json.loads(run("requests", log, "--format", "json").stdout)["requests"]
    routes = sorted({(row["provider"], row["model"]) for row in rows if row["provider"]})
    rest = copy.deepcopy(settings)
    if not key.startswith("constants"):
        rest.setdefault("constants", {name: name for name in TEXTS})
    changed = copy.deepcopy(rest)
    for provider, model in routes:
        if "*" in rest.get("providers", {}):
            rest["providers"][provider] = rest["providers"]["*"]
            changed["providers"][provider] = dict(rest["providers"]["*"])
        place = changed
        *holders, last = (
            model if one == "*" and before == "models" else provider if one == "*" else one
            for before, one in pairwise(("", *key.split(".")))
        )
        for name in holders:
            place = place.setdefault(name, {})
        place[last] = value
    assert printed(log, rest, tmp_path) != printed(log, changed, tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "compaction-instruction=wrong",
            b"constant compaction-instruction: not the text of the harness (5 UTF-16 units",
        ),
        ("compaction-instructions=wrong", b"constant compaction-instructions: no such text"),
    ],
)
def test_a_constant_is_the_text_of_the_harness(given: str, message: bytes, tmp_path: Path) -> None:
    file = tmp_path / "wrong"
    file.write_text("wrong")
    name = given.partition("=")[0]
    done = run("requests", golden("v0-compaction")(tmp_path), "--constant", f"{name}={file}")
    assert done.returncode == 2 and message in done.stderr
    (tmp_path / "d.json").write_text(json.dumps({"constants": {name: "wrong"}}))
    done = run("requests", golden("v0-compaction")(tmp_path), "--deployment", tmp_path / "d.json")
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.parametrize("text", ["[providers.x]\ncolour = 1\n", "[providers.x.models.y]\ntool_updates = 'none'\n"])
def test_keys_that_nobody_reads_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(text)
    done = run("requests", golden("v0-tools")(tmp_path), "--deployment", tmp_path / "d.toml")
    assert done.returncode == 2 and b"was unexpected" in done.stderr


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("models = 5", b"models is not a list of models with an id"),
        ("when = 2026-01-01", b"when is no JSON value"),
        ("compat = {x = nan}", b"compat/x is no JSON value"),
    ],
)
def test_profiles_of_another_shape_are_refused(profile: str, message: bytes, tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(f"[providers.toy.profile]\n{profile}\n")
    done = run("requests", golden("v0-tools")(tmp_path), "--deployment", tmp_path / "d.toml")
    assert done.returncode == 2 and message in done.stderr
