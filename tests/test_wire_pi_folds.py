"""A body over a history that grew message by message is that over the whole history, in every protocol and release."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest

from dsh_audit.text import ecma
from dsh_audit.wire.body import Body
from dsh_audit.wire.pi import (
    ImageSource,
    ImageVersion,
    PiRefusedError,
    build_settings,
    encode_pi_request,
    protocol_encoder,
    resolve_model,
)
from dsh_audit.wire.pi.assemble import Seqs
from dsh_audit.wire.pi.context import Conversation
from dsh_audit.wire.pi.http_headers import check_sendable
from dsh_audit.wire.pi.versions import VERSIONS
from tests.harness.pi_requests import Release, random_request

RELEASES = {
    "0.82.1": Release(),
    "0.84.4": Release("v0", True),
    "0.85.1": Release("v3", True, True),
    "1.3.0": Release("v4", True, True),
}
IN_HISTORY = (
    *("supportsMidConvoSystemMessages", "supportsMidConvoToolAdditions", "supportsMidConvoToolChanges"),
    *("supportsAdditionalTools", "supportsToolSearch", "supportsMidConvoEffort"),
)


def read_image(attachment: dict[str, Any]) -> ImageVersion:
    return ImageVersion(b"\x01\x02", attachment["mediaType"], attachment["width"], attachment["height"])


IMAGES = ImageSource(read_image, offloaded=lambda attachment: f"offloaded {attachment['attachmentId']}")


class Growing:
    """One session's bodies over ever longer histories, as the encoder of a log makes them."""

    def __init__(self, request: dict[str, Any], model: dict[str, Any], version: str) -> None:
        self.request, self.model, self.version = request, model, version
        self.encoder = protocol_encoder(model)
        self.conversation: Conversation | None = None

    def body(self, messages: list[Any], tools: list[Any]) -> Body:
        options, profile = self.request["options"], self.request["profile"]
        args = (self.version, profile, self.request["key"], self.request["env"])
        settings = build_settings(options, self.model, *args)
        start = len(messages) - 1
        if self.conversation is None or not self.conversation.set_tools(tools):
            has_system = options.get("system") is not None
            self.conversation = Conversation(settings.rules, images=IMAGES, has_system=has_system)
            self.conversation.set_tools(tools)
            start = 0
        for index in range(start, len(messages)):
            self.conversation.add(messages[index], index)
        context = self.conversation.context(options.get("system"))
        check_sendable(settings)
        return self.encoder.encode(context, settings, Seqs(None, 900))


def whole(request: dict[str, Any], model: dict[str, Any], version: str, messages: list[Any], tools: list[Any]) -> Body:
    options = {**request["options"], "messages": messages, "tools": tools}
    return encode_pi_request(
        options,
        model,
        version=version,
        profile=request["profile"],
        key=request["key"],
        env=request["env"],
        images=IMAGES,
        message_seqs=range(len(messages)),
        seqs=Seqs(None, 900),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_folded_bodies_are_those_from_scratch(version: str) -> None:
    rng = Random(version)
    seen, refused = set(), 0
    for _ in range(150):
        request = ecma.parse(json.dumps(random_request(rng, {}, RELEASES[version])).replace("Infinity", "1e400"))
        route = request["route"]
        model = resolve_model(route, request["options"]["model"], request["profile"])
        if version == "1.3.0" and rng.random() < 0.7:
            model["compat"] = {**(model.get("compat") or {}), **{name: rng.random() < 0.7 for name in IN_HISTORY}}
        messages, tools = request["options"]["messages"] * rng.choice((1, 1, 2)), request["options"].get("tools") or []
        growing = Growing(request, model, version)
        for count in range(1, len(messages) + 1):
            if rng.random() < 0.2:
                tools = copy.deepcopy(tools[: rng.randrange(4)]) or tools
            try:
                expected: Body | str = whole(request, model, version, messages[:count], tools)
            except PiRefusedError as refusal:
                expected, refused = refusal.message, refused + 1
            if isinstance(expected, str) and "does not take images" in expected:
                break
            try:
                body: Body | str = growing.body(messages[:count], tools)
            except PiRefusedError as refusal:
                body = refusal.message
            if isinstance(body, str) or isinstance(expected, str):
                assert body == expected
                continue
            assert body.to_bytes() == expected.to_bytes()
            assert [p.path for p in body.parts()] == [p.path for p in expected.parts()]
            assert [p.seqs for p in body.parts()] == [p.seqs for p in expected.parts()]
            assert body.sha256() == expected.sha256()
            seen.add(model["api"])
    assert len(seen) > 2 and refused < 1000


@pytest.mark.parametrize("api", ["openai-completions", "openai-responses", "anthropic-messages"])
def test_a_growing_session_prints_each_message_once(api: str) -> None:
    profile = {"api": api, "baseURL": "http://127.0.0.1:1", "models": [{"id": "toy-1"}]}
    model = resolve_model("toy", "toy-1", profile)
    request = {"options": {}, "profile": profile, "key": "", "env": {}}
    growing, messages, before = Growing(request, model, "1.3.0"), [], None
    for number in range(40):
        block = {"type": "text", "text": f"text {number}"}
        source = {"kind": "model", "provider": "other", "model": "m"} if number % 2 else {"kind": "user"}
        messages.append({"role": "assistant" if number % 2 else "user", "content": [block], "source": source})
        body = growing.body(messages, [{"name": "t", "description": "d", "parameters": {"type": "object"}}])
        if before is not None:
            fresh = {id(part) for part in body.parts()} - {id(part) for part in before.parts()}
            assert len(fresh) <= 4, [part.pointer for part in body.parts() if id(part) in fresh]
            assert body.run is before.run
        before = body
