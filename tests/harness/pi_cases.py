"""Our own requests for golden/pi-ai: each aims at one rule; ``record_pi`` writes them with the real body."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = Any

URL = "http://127.0.0.1:1/v1"
LONE = "\ud83d"
CALC = {
    "name": "calc",
    "description": "Adds two numbers",
    "parameters": {
        "type": "object",
        "properties": {"10": {"type": "number", "minimum": 1e21}, "2": {"type": "number"}},
        "required": ["10"],
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    },
}
NOTE = {"name": "Note", "description": f"Keeps a note {LONE}", "parameters": {"type": "object"}}
EFFORTS = {"off": None, "low": "low", "medium": "mid", "high": "high"}
IMAGE_ID = f"sha256:{'ab' * 32}"
IMAGES = {IMAGE_ID: {"data": "AQID/w==", "mediaType": "image/png", "width": 2, "height": 3, "handle": None}}


@dataclass(frozen=True, slots=True)
class Case:
    """One golden request.

    Args:
        messages: the history.
        pi: version of pi-ai.
        route: provider key; its model is ``toy-1``.
        api: protocol of the route.
        profile: members of the profile beside api, baseURL and models.
        entry: members of the model's entry.
        options: members of the options beside provider, model and messages.
        model_patch: members of the resolved model that only a catalogue can set.
    """

    messages: list[Json]
    pi: str = "0.82.1"
    route: str = "toy"
    api: str = "openai-completions"
    url: str = URL
    model: str = "toy-1"
    profile: dict[str, Json] = field(default_factory=dict)
    entry: dict[str, Json] = field(default_factory=dict)
    options: dict[str, Json] = field(default_factory=dict)
    key: str = "sk-toy"
    env: dict[str, str] = field(default_factory=dict)
    model_patch: dict[str, Json] = field(default_factory=dict)

    def request(self) -> dict[str, Json]:
        """The case as the oracle takes it."""
        models = [{"id": self.model, **self.entry}]
        profile = {"api": self.api, "baseURL": self.url, "models": models, **self.profile}
        options = {"provider": self.route, "model": self.model, "messages": self.messages, **self.options}
        request: dict[str, Json] = {"piVersion": self.pi, "route": self.route, "profile": profile}
        request |= {"options": options, "key": self.key, "env": self.env}
        if self.model_patch:
            request["modelPatch"] = self.model_patch
        return request


def user(*texts: str) -> Json:
    return {"role": "user", "content": [text(item) for item in texts], "source": {"kind": "user"}}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(call_id: str, arguments: str = "{}", name: str = "calc") -> Json:
    return {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}


def result(call_id: str, *texts: str, error: bool = False) -> Json:
    block = {"type": "tool-result", "toolCallId": call_id, "content": [text(item) for item in texts], "isError": error}
    return {"role": "user", "content": [block], "source": {"kind": "tool", "callId": call_id}}


def tool(call_id: str, *texts: str, error: bool = False) -> Json:
    """A result as format 4 has it."""
    content = [text(item) for item in texts]
    return {"role": "tool", "toolCallId": call_id, "content": content, "isError": error, "source": {"kind": "tool"}}


def image() -> Json:
    attachment = {"attachmentId": IMAGE_ID, "mediaType": "image/png", "bytes": 4, "width": 2, "height": 3}
    return {"type": "image", "attachment": attachment}


def said(
    *blocks: Json,
    api: str = "openai-completions",
    provider: str = "toy",
    model: str = "toy-1",
    stop: str = "stop",
    replay: tuple[Json, ...] = (),
    **response: Json,
) -> Json:
    """A native assistant message; ``replay`` holds signatures by block, in order."""
    kinds = [{"type": block["type"]} for block in blocks]
    states = [{**kind, **(replay[at] if at < len(replay) else {})} for at, kind in enumerate(kinds)]
    envelope = {"kind": "pi-ai", "version": 2, "api": api, "provider": provider, "model": model, "stopReason": stop}
    source: dict[str, Json] = {"kind": "model", "provider": provider, "model": model}
    source["replayState"] = {"response": {**envelope, **response}, "blocks": states}
    return {"role": "assistant", "content": list(blocks), "source": source}


def foreign(*blocks: Json) -> Json:
    source = {"kind": "model", "provider": "deepseek-official", "model": "deepseek-chat"}
    return {"role": "assistant", "content": list(blocks), "source": source}


def thinking(value: str) -> Json:
    return {"type": "reasoning", "text": value}


def system(value: str) -> Json:
    return {"role": "system", "content": [text(value)], "source": {"kind": "plugin", "plugin": "toy"}}


HELLO = [user("Hello toy")]
SWITCH = [
    user("What is 1 + 2?"),
    foreign(thinking("Use the tool."), text("Adding."), call("call_00|fc odd/id"), call("x" * 70, '{"b":1.0}', "Note")),
    result("call_00|fc odd/id", "3"),
    result("x" * 70),
    said(thinking("older"), text("It is 3."), model="toy-0", replay=({"thinkingSignature": "reasoning_content"},)),
    user("And now?"),
]
TOOLS = [
    user("Add"),
    said(thinking("hm"), text("Adding"), call("c1", '{"10":1,"2":2}'), call("c2", "{}", "Note"), stop="toolUse"),
    result("c1", "3"),
    result("c2", "kaput", error=True),
    user("Thanks"),
]
MALFORMED = [
    user("Go"),
    said(
        *(call(f"c{at}", raw) for at, raw in enumerate(('{"a":1', "[1]", "null", '"s"', "", '{"n":-0,"e":1e400}'))),
        stop="toolUse",
    ),
    *(result(f"c{at}", "ok") for at in range(6)),
]
SURROGATES = [
    user(f"pair over two {LONE}", "\ude00 blocks", LONE),
    said(
        text(f"lone {LONE}"),
        text("\ude00 half"),
        thinking(f"t {LONE}"),
        call("c1", f'{{"k":"\\{LONE.encode("unicode_escape").decode()[1:]}"}}'),
    ),
    result("c1", f"r {LONE}"),
    user(LONE),
]
ERRORED = [
    user("Go"),
    said(text("partial"), call("c1"), stop="error"),
    result("c1", "late"),
    said(call("c2"), call("c3"), stop="toolUse"),
    result("c3", "third"),
    user("Orphan above"),
    said(text("gone"), stop="aborted"),
    user("   "),
    user(""),
]
PICTURES = [
    {"role": "user", "content": [text("look "), text("here"), image()], "source": {"kind": "user"}},
    said(call("c1"), call("c2"), stop="toolUse"),
    {**result("c1"), "content": [{**result("c1")["content"][0], "content": [image()]}]},
    {**result("c2"), "content": [{**result("c2")["content"][0], "content": [text("after"), image(), text("")]}]},
    user("plain"),
]
THOUGHT = [
    user("Think"),
    said(thinking("one"), thinking("two"), text("done"), replay=({"thinkingSignature": "reasoning"},)),
    said(thinking("unsigned"), text("ok")),
    said(thinking(" "), text(" ")),
    said(call("c1"), replay=({"thoughtSignature": '{"type":"reasoning.encrypted","id":"c1","data":"d","2":1.0}'},)),
    result("c1", "r"),
]
RESPONSES = [
    user("Think"),
    said(
        *(thinking("t"), text("a"), text("b"), call("call_1|fc_1"), call("call_2|ctc_2")),
        api="openai-responses",
        replay=(
            {"thinkingSignature": '{"type":"reasoning","id":"rs_1","summary":[],"9":1.0}'},
            {"textSignature": '{"v":1,"id":"msg_a","phase":"commentary"}'},
            {"textSignature": "m" * 70},
        ),
    ),
    result("call_1|fc_1", "r1"),
    result("call_2|ctc_2"),
    said(text("sibling"), call("call_3|fc_3"), api="openai-responses", model="toy-0"),
    result("call_3|fc_3", "r3"),
    foreign(text("from elsewhere"), call("call_4|item+=")),
    result("call_4|item+=", "r4"),
]
CLAUDE = [
    user("Think"),
    said(
        *(
            thinking("signed"),
            thinking("[redacted]"),
            thinking("open"),
            text("hi"),
            call("toolu_1", '{"b":1.0,"2":2}', "bash"),
        ),
        api="anthropic-messages",
        stop="toolUse",
        replay=({"thinkingSignature": "sig"}, {"thinkingSignature": "opaque", "redacted": True}),
    ),
    result("toolu_1", "r1", "r2"),
    user("Next"),
]
LATER = [
    system("You are a toy."),
    system("Be brief."),
    user("Go"),
    said(call("c1"), stop="toolUse"),
    system("Mind the gap."),
    tool("c1", "r"),
    {
        "role": "developer",
        "content": [text("Tools changed."), {"type": "tool-addition", "toolName": "Note"}],
        "source": {"kind": "plugin", "plugin": "toy"},
    },
    user("On"),
    foreign(thinking("gone"), text("kept")),
]
ASKED: dict[str, Json] = {"system": f"You are a toy {LONE}.", "tools": [CALC, NOTE], "sessionId": "ses_toy"}
REASONS = {"reasoningEfforts": EFFORTS}
FORMATS = (
    *("openai", "deepseek", "openrouter", "together", "zai", "qwen", "qwen-chat-template", "chat-template"),
    *("string-thinking", "ant-ling"),
)
KWARGS = {"on": {"$var": "thinking.enabled"}, "level": {"$var": "thinking.effort", "omitWhenOff": True}, "x": 1.5}


def _formats() -> dict[str, Case]:
    """Each thinking format with an effort and without."""
    cases = {}
    for name in FORMATS:
        compat = {"thinkingFormat": name, **({"chatTemplateKwargs": KWARGS} if name == "chat-template" else {})}
        entry = {**REASONS, "compat": compat}
        cases[f"chat-format-{name}-medium"] = Case(HELLO, entry=entry, options={"reasoningEffort": "medium"})
        cases[f"chat-format-{name}-off"] = Case(HELLO, entry=entry, options={"reasoningEffort": "off"})
    return cases


def _claude(**members: Any) -> Case:
    return Case(**{"messages": CLAUDE, "api": "anthropic-messages", "options": ASKED, **members})


def _of_a_plugin() -> Json:
    message = said(thinking("t"), text("a"), api="anthropic-messages", replay=({"thinkingSignature": "s"},))
    message["source"]["kind"] = "plugin"
    return message


NULL_SCHEMA = {"type": "object", "properties": None, "required": None}
REDACTED = [
    user("Hi"),
    *(
        said(thinking(value), text("a"), api="anthropic-messages", replay=({"thinkingSignature": "", "redacted": red},))
        for value, red in (("hidden", True), ("", True), ("seen", False))
    ),
    user("b"),
]
LONG_IDS = [
    user("Hi"),
    *(
        message
        for call_id in ("c!" + "a" * 30 + "|fc_1", "c!" + "a" * 60 + "|" + "x" * 80, "b" * 41)
        for message in (foreign(call(call_id)), result(call_id, "r"))
    ),
    user("b"),
]

CASES: dict[str, Case] = {
    "chat-switch": Case(SWITCH, options=ASKED),
    "chat-malformed-arguments": Case(MALFORMED, options=ASKED),
    "chat-lone-surrogate": Case(SURROGATES, options=ASKED),
    "chat-errored-turn": Case(ERRORED, options=ASKED),
    "chat-images": Case(PICTURES, entry={"input": ["text", "image"]}, options=ASKED),
    "chat-reasoning-keys": Case(THOUGHT, entry=REASONS, options=ASKED),
    "chat-tool-history-without-tools": Case(TOOLS, options={"temperature": 0}),
    "chat-quirks": Case(
        TOOLS,
        entry={
            **REASONS,
            "compat": {
                "requiresToolResultName": True,
                "requiresAssistantAfterToolResult": True,
                "supportsStore": False,
                "requiresThinkingAsText": True,
                "supportsUsageInStreaming": False,
                "supportsStrictMode": False,
                "maxTokensField": "max_tokens",
            },
        },
        options=ASKED,
    ),
    "chat-markers-long": Case(
        TOOLS, profile={"cacheRetention": "long", "compat": {"cacheControlFormat": "anthropic"}}, options=ASKED
    ),
    "chat-markers-none": Case(
        TOOLS, profile={"cacheRetention": "none", "compat": {"cacheControlFormat": "anthropic"}}, options=ASKED
    ),
    "chat-cache-key": Case(
        HELLO, url="http://127.0.0.1:1/api.openai.com/v1", options={**ASKED, "sessionId": "s" * 70 + "é"}
    ),
    "chat-environment-long": Case(HELLO, env={"PI_CACHE_RETENTION": "long"}, options=ASKED),
    "chat-vendor-by-path": Case(TOOLS, url="http://127.0.0.1:1/deepseek.com/v1", entry=REASONS, options=ASKED),
    "chat-output-limit": Case(
        [user("x" * 4000)], entry={"contextWindow": 6000, "maxTokens": 5000}, options={**ASKED, "maxTokens": 4000}
    ),
    "chat-effort-refused": Case(HELLO, options={"reasoningEffort": "high"}),
    "chat-stop-refused": Case(HELLO, options={"stop": ["x"]}),
    **_formats(),
    "responses-history": Case(RESPONSES, api="openai-responses", entry=REASONS, options=ASKED),
    "responses-openai-ids": Case(
        RESPONSES, route="openai", api="openai-responses", entry=REASONS, options={**ASKED, "reasoningEffort": "high"}
    ),
    "responses-images": Case(PICTURES, api="openai-responses", entry={"input": ["text", "image"]}, options=ASKED),
    "responses-long": Case(HELLO, api="openai-responses", profile={"cacheRetention": "long"}, options=ASKED),
    "responses-none": Case(
        HELLO, api="openai-responses", profile={"cacheRetention": "none"}, options={**ASKED, "maxTokens": 3}
    ),
    "responses-signature-not-json": Case(
        [said(thinking("t"), api="openai-responses", replay=({"thinkingSignature": "opaque"},))], api="openai-responses"
    ),
    "responses-session-header": Case(HELLO, api="openai-responses", options={"sessionId": "ses\u0100"}),
    "claude-history": _claude(),
    "claude-switch": _claude(messages=SWITCH),
    "claude-malformed-arguments": _claude(messages=MALFORMED),
    "claude-lone-surrogate": _claude(messages=SURROGATES),
    "claude-errored-turn": _claude(messages=ERRORED),
    "claude-images": _claude(messages=PICTURES, entry={"input": ["text", "image"]}),
    "claude-oauth": _claude(key="sk-ant-oat01-toy"),
    "claude-long": _claude(profile={"cacheRetention": "long"}),
    "claude-none": _claude(profile={"cacheRetention": "none"}),
    "claude-budget": _claude(
        entry={**REASONS, "maxTokens": 9000},
        profile={"thinkingBudgets": {"medium": 3000}},
        options={**ASKED, "reasoningEffort": "medium", "maxTokens": 1000, "temperature": 1},
    ),
    "claude-budget-small": _claude(
        entry={**REASONS, "contextWindow": 5300}, options={**ASKED, "reasoningEffort": "high"}
    ),
    "claude-thinking-off": _claude(entry=REASONS, options={**ASKED, "temperature": 0.5}),
    "claude-adaptive": _claude(
        entry={**REASONS, "compat": {"forceAdaptiveThinking": True}}, options={**ASKED, "reasoningEffort": "medium"}
    ),
    "claude-quirks": _claude(
        entry={
            "compat": {
                "allowEmptySignature": True,
                "supportsEagerToolInputStreaming": False,
                "supportsCacheControlOnTools": False,
                "supportsTemperature": False,
            }
        },
        options={**ASKED, "temperature": 1},
    ),
    "claude-redacted-unsigned": _claude(messages=REDACTED, entry=REASONS),
    "claude-null-schema": _claude(messages=HELLO, options={"tools": [{**NOTE, "parameters": NULL_SCHEMA}]}),
    "chat-id-half-cut": Case(LONG_IDS, options=ASKED),
    "chat-nvidia-long": Case(HELLO, route="nvidia", profile={"cacheRetention": "long"}, options=ASKED),
    "chat-ant-ling-long": Case(HELLO, route="ant-ling", profile={"cacheRetention": "long"}, options=ASKED),
    "chat-string-thinking-off-null": Case(
        HELLO,
        entry={"compat": {"thinkingFormat": "string-thinking"}},
        model_patch={"reasoning": True, "thinkingLevelMap": {"off": None}},
    ),
    "chat-openrouter-off-named": Case(
        HELLO,
        entry={"compat": {"thinkingFormat": "openrouter"}},
        model_patch={"reasoning": True, "thinkingLevelMap": {"off": "nought"}},
    ),
    "responses-copilot-without-effort": Case(HELLO, route="github-copilot", api="openai-responses", entry=REASONS),
    "v84-chat-switch": Case(SWITCH, pi="0.84.4", options=ASKED),
    "v84-chat-reasoning-details": Case(THOUGHT, pi="0.84.4", entry=REASONS, options=ASKED),
    "v84-chat-budget": Case(
        HELLO,
        pi="0.84.4",
        entry={**REASONS, "compat": {"thinkingFormat": "qwen", "supportsThinkingTokenBudget": True}},
        options={"reasoningEffort": "medium"},
    ),
    "v84-chat-baseten": Case(
        HELLO,
        pi="0.84.4",
        entry={**REASONS, "compat": {"thinkingFormat": "baseten", "chatTemplateArgs": KWARGS}},
        options={"reasoningEffort": "low"},
    ),
    "v84-chat-deepseek-route": Case(TOOLS, pi="0.84.4", route="deepseek", entry=REASONS, options=ASKED),
    "v85-chat-priority": Case(
        [system("You are a toy."), *TOOLS, system("Later.")], pi="0.85.1", entry={"compat": {"vllmPriority": -1}}
    ),
    "v85-responses-no-limit": Case(
        RESPONSES,
        pi="0.85.1",
        api="openai-responses",
        entry={"compat": {"supportsMaxOutputTokens": False}},
        profile={"cacheRetention": "long"},
        options=ASKED,
        model_patch={"compat": {"supportsMaxOutputTokens": False, "supportsExplicitPromptCacheMode": True}},
    ),
    "v85-claude-answered-by-another": _claude(
        pi="0.85.1",
        messages=[
            user("Hi"),
            said(thinking("t"), api="anthropic-messages", replay=({"thinkingSignature": "s"},), responseModel="toy-2"),
        ],
    ),
    "v85-claude-managed-effort": _claude(
        pi="0.85.1",
        messages=[user("Hi"), said(text("a"), api="anthropic-messages", providerThinkingLevel="low"), user("b")],
        entry=REASONS,
        model_patch={"compat": {"supportsMidConvoEffort": True}},
    ),
    "v130-chat-collapsed": Case(LATER, pi="1.3.0", options={"tools": [CALC, NOTE, CALC], "sessionId": "ses_toy"}),
    "v130-chat-in-place": Case(
        LATER,
        pi="1.3.0",
        options={"tools": [CALC, NOTE]},
        model_patch={"compat": {"supportsMidConvoSystemMessages": True, "supportsMidConvoToolAdditions": True}},
    ),
    "v130-responses-search": Case(
        LATER,
        pi="1.3.0",
        api="openai-responses",
        entry=REASONS,
        options={"tools": [CALC, NOTE], "reasoningEffort": "high"},
        model_patch={
            "compat": {
                "supportsMidConvoSystemMessages": True,
                "supportsToolSearch": True,
                "supportsMidConvoEffort": True,
            }
        },
    ),
    "v130-claude-in-place": _claude(
        pi="1.3.0",
        messages=LATER,
        options={"tools": [CALC, NOTE]},
        model_patch={"compat": {"supportsMidConvoSystemMessages": True, "supportsMidConvoToolChanges": True}},
    ),
    "v130-claude-managed-effort": _claude(
        pi="1.3.0",
        messages=[user("Hi"), said(text("a"), api="anthropic-messages", providerThinkingLevel="low"), user("b")],
        entry={**REASONS, "compat": {"forceAdaptiveThinking": True}},
        options={**ASKED, "reasoningEffort": "medium"},
        model_patch={"compat": {"forceAdaptiveThinking": True, "supportsMidConvoEffort": True}},
    ),
    "v130-claude-replay-of-a-plugin": _claude(pi="1.3.0", messages=[user("Hi"), _of_a_plugin(), user("b")]),
    "v130-chat-estimate": Case(
        [user("x" * 4000)], pi="1.3.0", entry={"contextWindow": 6000, "maxTokens": 5000}, options=ASKED
    ),
    "v130-responses-sign-in": Case(
        HELLO,
        pi="1.3.0",
        route="openai",
        api="openai-responses",
        url="https://api.openai.com/v1",
        key="sign-in",
        options={**ASKED, "temperature": 1},
    ),
}
