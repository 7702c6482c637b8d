"""From a case's phase to a command line: composition rows, patch file and environment of one runtime process.

Every file is JSON, which is YAML too. Our compositions leave out the tools and prompts that come with the
harness: what the model sees is the toy plugin's, so recorded cases hold no upstream prose.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.runtimes import Runtime, ensure_runtime, executable

Json = Any

SCOPE = "@deepseek-ai/"

_BARE_ROWS = (
    ("sdk-jsonrpc-server", "dsh-sdk-jsonrpc-server"),
    ("timer", "cordis-plugin-timer"),
    ("llm", "dsh-llm"),
    ("llm-deepseek", "dsh-llm-deepseek"),
    ("session", "dsh-session"),
    ("session-projection", "dsh-session-projection"),
    ("session-title", "dsh-session-title"),
    ("system-prompt", "dsh-system-prompt"),
    ("tools", "dsh-tools"),
    ("agent", "dsh-agent"),
    ("llm-retry", "dsh-llm-retry"),
    ("agent-loop", "dsh-agent-loop"),
    ("sessions", "dsh-session-persistence-jsonl"),
    ("session-checkpoint-policy", "dsh-session-checkpoint-policy"),
)
"""The composition of a release without profiles: row id, package."""

_BUILT_IN = {
    ("0.1.2rc1", "sdk-minimal"): ("persistent-bash", "str-replace-editor"),
    ("0.1.5rc1", "sdk-minimal"): ("persistent-bash",),
    ("0.2.1rc2", "sdk-minimal"): ("persistent-bash", "tool-fs", "tool-working-directory"),
}
"""Rows of a profile that put upstream tools before the model."""


@dataclass(frozen=True, slots=True)
class Places:
    """Directories and addresses of one run."""

    home: Path
    cwd: Path
    work: Path
    port: int


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one process."""

    argv: list[str]
    env: dict[str, str]


def build_launch(runtime: Runtime, case: Json, phase: Json, places: Places) -> Launch:
    """Write the files of one phase below `places.work` and say how to start it."""
    rows = _rows(runtime, case, phase, places)
    program = str(executable(ensure_runtime(runtime.version)))
    file = places.work / f"composition-{phase['index']}.json"
    file.write_text(json.dumps(rows, indent=1))
    env = _environment(case, phase, places)
    if case.get("base_url_from_env"):
        env["DEEPSEEK_BASE_URL"] = base_url(runtime, places.port)
    if runtime.has_profiles:
        return Launch([program, "--profile", _profile(case), "--patch", str(file)], env)
    return Launch([program], env | {"DSH_CORDIS_CONFIG": str(file)})


def base_url(runtime: Runtime, port: int) -> str:
    """Where the DeepSeek adapter is told to send."""
    return f"http://127.0.0.1:{port}" + ("" if runtime.protocol == "messages" else "/v1")


def _rows(runtime: Runtime, case: Json, phase: Json, places: Places) -> list[Json]:
    patches = _settings(runtime, case, phase, places)
    inserts = [{"id": "toy", "name": str(places.work / "plugin" / "toy.mjs")}, *phase.get("insert", [])]
    inserts = _fill(inserts, places)
    if not runtime.has_profiles:
        return [*_bare_rows(patches), *inserts]
    if _profile(case) == "sdk-minimal" and not case.get("no_checkpoints"):
        inserts.append({"id": "checkpoints", "name": f"{SCOPE}dsh-session-checkpoint-policy"})
    hidden = [{"id": row, "disabled": True} for row in _BUILT_IN.get((runtime.version, _profile(case)), ())]
    kept = [row for row in hidden if row["id"] not in patches]
    return [{"insert": inserts}, *kept, *({"id": row, **patch} for row, patch in patches.items())]


def _bare_rows(patches: Json) -> list[Json]:
    unknown = set(patches) - {row for row, _ in _BARE_ROWS}
    if unknown:
        raise ValueError(f"this release has no profile: insert {sorted(unknown)} instead of patching")
    rows = [{"id": row, "name": SCOPE + package, **patches.get(row, {})} for row, package in _BARE_ROWS]
    return [row for row in rows if not row.get("disabled")]


def _settings(runtime: Runtime, case: Json, phase: Json, places: Places) -> dict[str, Json]:
    rows: dict[str, Json] = {}

    def configure(row: str, **config: Json) -> None:
        rows.setdefault(row, {}).setdefault("config", {}).update(config)

    configure("llm-deepseek", apiKeyEnv="DEEPSEEK_API_KEY")
    if not case.get("base_url_from_env"):
        configure("llm-deepseek", baseURL=base_url(runtime, places.port))
    store = "sessions" if _profile(case) == "sdk-minimal" else "session-persistence-jsonl"
    if "pack" in case:
        configure(store, packChunks=case["pack"])
    # A patched config replaces the profile's as a whole, so the root is always given.
    configure(store, root=str(places.home / "sessions"), compression=case.get("compression", "none"))
    if not runtime.has_profiles:
        configure("session-title", fallbackMaxWords=5, fallbackMaxBytes=40, maxTitleBytes=80)
        configure("system-prompt", includeHarnessIdentity=False, includeRuntimeContext=False)
        configure("system-prompt", persona=phase.get("persona", case.get("persona", "")))
        configure("agent-loop", agents=[])
    for row, patch in _fill(phase.get("rows", {}), places).items():
        merged = {**rows.get(row, {}).get("config", {}), **patch.get("config", {})}
        rows[row] = {**patch, **({"config": merged} if merged else {})}
    return rows


def _environment(case: Json, phase: Json, places: Places) -> dict[str, str]:
    env = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(places.work / "nobody"),
        "DSH_HOME": str(places.home),
        "DSH_CWD": str(places.cwd),
        "DSH_TELEMETRY_MODE": "DISABLED",
        "DSH_TELEMETRY_DISABLED": "1",
        "DSH_PERMISSION_MODE": "danger-full-access",
        "DSH_SYSTEM_PROMPT": phase.get("persona", case.get("persona", "")),
        "DEEPSEEK_API_KEY": "sk-toy",
        "TOY_STATE": str(places.work / "state.json"),
        "TOY_PORT": str(places.work / "toy-port"),
        "TOY_RESUME": ",".join(phase.get("resume", [])),
    }
    more: dict[str, str] = _fill(phase.get("env", {}), places)
    return env | more


def _fill(value: Json, places: Places) -> Json:
    """Put the run's address into strings that name it."""
    text = json.dumps(value).replace("{loopback}", f"http://127.0.0.1:{places.port}")
    filled: Json = json.loads(text)
    return filled


def _profile(case: Json) -> str:
    return str(case.get("profile", "sdk-minimal"))
