"""What pi-ai requests say about themselves: provenance, refusals, resolution and headers."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_audit.errors import DeploymentError, UsageError
from dsh_audit.wire.pi import PiRefusedError, Seqs, encode_pi_request, resolve_model
from dsh_audit.wire.pi.catalogue import parse_catalogue
from dsh_audit.wire.pi.json_request import encode_pi_json_request
from dsh_audit.wire.pi.versions import VERSIONS, pi_version_of
from tests.harness.pi_cases import ASKED, CASES, SWITCH, TOOLS

APIS = ("openai-completions", "openai-responses", "anthropic-messages")


def model_of(api: str, **entry: Any) -> dict[str, Any]:
    profile = {"api": api, "baseURL": "http://127.0.0.1:1", "models": [{"id": "toy-1", **entry}]}
    return resolve_model("toy", "toy-1", profile)


def options(messages: list[Any]) -> dict[str, Any]:
    return {"provider": "toy", "model": "toy-1", "messages": messages, **ASKED}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("api", APIS)
def test_each_message_names_its_event(api: str, version: str) -> None:
    seqs = list(range(10, 10 + len(TOOLS)))
    body = encode_pi_request(
        options(TOOLS), model_of(api), version=version, message_seqs=seqs, seqs=Seqs(system=1, tools=2)
    )
    found = [seq for _, seq in body.pieces() if seq is not None]
    messages = [seq for seq in found if seq >= 10]
    assert list(dict.fromkeys(messages)) == seqs
    assert {1, 2} <= set(found)
    for needle, seq in ((b"kaput", 13), (b"Thanks", 14), (b"You are a toy", 1), (b"Adds two numbers", 2)):
        assert body.seq_at(body.to_bytes().index(needle)) == seq


@pytest.mark.parametrize("api", APIS)
def test_a_model_that_sees_images_is_sent_no_more_where_there_are_none(api: str) -> None:
    plain, seeing = (model_of(api) | {"input": kinds} for kinds in (["text"], ["text", "image"]))
    assert encode_pi_request(options(TOOLS), seeing).to_bytes() == encode_pi_request(options(TOOLS), plain).to_bytes()


@pytest.mark.parametrize("api", ["google-generative-ai", "mistral-conversations", "bedrock-converse-stream"])
def test_other_protocols_are_refused_with_the_rung_that_is_left(api: str) -> None:
    with pytest.raises(PiRefusedError) as refused:
        encode_pi_request(options(SWITCH), {**model_of(APIS[0]), "api": api})
    assert refused.value.kind == "not-encoded"
    assert refused.value.rung == "logical"
    assert api in refused.value.message


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(PiRefusedError) as refused:
        encode_pi_request(options(SWITCH), model_of(APIS[0]), version="0.83.0")
    assert refused.value.rung == "logical"
    assert pi_version_of("0.1.1-rc.2") == "0.82.1"
    with pytest.raises(PiRefusedError):
        pi_version_of("0.2.0-rc.2")


def test_replay_state_of_a_route_that_another_adapter_owns_is_not_used() -> None:
    given = CASES["claude-history"].request()
    owned, lost = (encode_pi_json_request({**given, "routes": routes}).to_bytes() for routes in (["toy"], ["other"]))
    assert owned == encode_pi_json_request(given).to_bytes()
    assert b'"signature":"sig"' in owned
    assert b'"signature"' not in lost


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        {"options": {}},
        {"options": {"provider": "toy", "model": "toy-1", "messages": [5]}, "resolvedModel": model_of(APIS[0])},
        {"options": {"provider": "toy", "model": "toy-1", "messages": [{}]}, "resolvedModel": model_of(APIS[0])},
        {"options": {"provider": "toy", "model": "toy-1", "messages": []}, "resolvedModel": {"api": APIS[0]}},
    ],
)
def test_a_request_of_another_shape_is_one_error(given: Any) -> None:
    with pytest.raises((UsageError, DeploymentError)):
        encode_pi_json_request(given)


CATALOGUE = parse_catalogue(
    b'{"openai-completions":{"chat:known":{"id":"known","api":"openai-completions","baseUrl":"u","reasoning":true,'
    b'"input":["text"],"contextWindow":9,"maxTokens":8,"compat":{"supportsStore":false}}},"x":{"i":{"id":"i","api":"x",'
    b'"type":"image"}}}',
    'createProvider({ baseUrl: "http://default" })',
)


@pytest.mark.parametrize(
    ("profile", "model_id", "expected"),
    [
        ({}, "known", {"maxTokens": 8, "baseUrl": "u", "compat": {"supportsStore": False}}),
        ({"modelOverrides": {"known": {"maxTokens": 5}}}, "known", {"maxTokens": 5, "contextWindow": 9}),
        ({"models": [{"id": "new"}]}, "new", {"api": "openai-completions", "baseUrl": "http://default"}),
        ({"models": [{"id": "new"}], "compat": {"chatTemplateKwargs": {}}}, "new", {"reasoning": False}),
        (
            {"compat": {"supportsStrictMode": False}},
            "known",
            {"compat": {"supportsStore": False, "supportsStrictMode": False}},
        ),
        (
            {"api": "anthropic-messages", "compat": {"supportsTemperature": False}},
            "known",
            {"compat": {"supportsTemperature": False}},
        ),
        (
            {"models": [{"id": "known", "reasoningEfforts": {"off": None, "low": "l"}}]},
            "known",
            {
                "thinkingLevelMap": {
                    "minimal": None,
                    "low": "l",
                    "medium": None,
                    "high": None,
                    "xhigh": None,
                    "max": None,
                }
            },
        ),
    ],
)
def test_resolution(profile: dict[str, Any], model_id: str, expected: dict[str, Any]) -> None:
    model = resolve_model("route", model_id, profile, CATALOGUE)
    assert {name: model.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("profile", "model_id"),
    [({}, "i"), ({}, "absent"), ({"models": [{"id": "other"}]}, "known"), ({"modelOverrides": {"new": {}}}, "new")],
)
def test_a_model_that_the_profile_does_not_describe(profile: dict[str, Any], model_id: str) -> None:
    with pytest.raises(DeploymentError):
        resolve_model("route", model_id, profile, CATALOGUE)
