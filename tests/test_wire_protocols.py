"""A protocol, and a release of pi-ai, is one file and one line: a copy under a new name runs like the original."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dsh_audit.deployment import Deployment
from dsh_audit.replay.session_replay import Replay
from dsh_audit.wire import pi, protocols
from dsh_audit.wire.parts import SYSTEM_KEYS
from dsh_audit.wire.pi import encode_pi_request, resolve_model
from dsh_audit.wire.pi.versions import VERSIONS
from dsh_audit.wire.protocol import CHAT, MESSAGES
from dsh_audit.wire.protocols import PROTOCOLS
from dsh_audit.wire.session import SessionEncoder
from tests.harness.pi_cases import ASKED, TOOLS
from tests.toy_session import ToySession


@pytest.mark.parametrize(("name", "version"), [(CHAT, 0), (CHAT, 3), (MESSAGES, 4)])
def test_a_copy_of_a_protocol(monkeypatch: pytest.MonkeyPatch, name: str, version: int) -> None:
    session = ToySession(version)
    session.ask("one")
    monkeypatch.setitem(protocols.PROTOCOLS, "copy", replace(PROTOCOLS[name], name="copy"))
    (rebuilt,) = Replay(session.history(), Deployment())
    copied = SessionEncoder(Deployment()).encode(rebuilt.request, "copy")
    assert copied.body is not None and rebuilt.encoded.body is not None
    assert copied.body.to_bytes() == rebuilt.encoded.body.to_bytes()
    assert copied.url_path == PROTOCOLS[name].path


def pi_body(api: str, version: str) -> Any:
    profile = {"api": api, "baseURL": "http://127.0.0.1:1", "models": [{"id": "toy-1"}]}
    model = resolve_model("toy", "toy-1", {**profile, "api": "openai-completions"}) | {"api": api}
    options = {"provider": "toy", "model": "toy-1", "messages": TOOLS, **ASKED}
    return encode_pi_request(options, model, version=version)


@pytest.mark.parametrize("api", pi.PROTOCOLS)
def test_a_copy_of_a_pi_protocol_and_release(monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    expected = pi_body(api, "1.3.0").to_bytes()
    monkeypatch.setitem(VERSIONS, "9.9.9", replace(VERSIONS["1.3.0"], version="9.9.9"))
    assert pi_body(api, "9.9.9").to_bytes() == expected
    other = "copied" if api != "anthropic-messages" else api
    monkeypatch.setitem(pi.PROTOCOLS, other, pi.PROTOCOLS[api])
    assert pi_body(other, "9.9.9").size_bytes > 0


@pytest.mark.parametrize("name", [name for name, one in PROTOCOLS.items() if one.path])
def test_every_protocol_names_its_path_and_its_parts(name: str) -> None:
    record = PROTOCOLS[name]
    assert record.path.startswith("/") and record.name == name
    if record.adapter == "llm-pi-ai":
        parts = list(pi_body(name, "1.3.0").parts())
        assert {"setting", "tool", "system", "message", "mark"} <= {part.kind for part in parts}
        assert {part.kind for part in parts if part.name in SYSTEM_KEYS} <= {"system"}
